"""How far the slopes of the default are off, by noise and by sampling: nothing more is released."""

from privtail.inference.slope_errors import SlopeErrors

__all__ = ["SlopeErrors"]
