"""Whether the slopes of a fit are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """What the acceptance test found.

    Attributes
    ----------
    kept : whether the slopes are kept.
    significant : whether the improvement over the intercept-only model is significant.
    gains : the two mean improvements, in standard deviations of their noise.
    part : part of the margins of labels that is kept.
    """

    kept: bool = True
    significant: bool = True
    gains: tuple[float, float] = (math.inf, math.inf)
    part: float = 1.0
