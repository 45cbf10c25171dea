"""Algorithms of the literature that run by name, on features that were standardized privately.

``algorithm="catoni-descent"`` and the other `NAMES` of an estimator; and, without privacy, an
accelerated descent.
"""

from privtail.published.names import NAMES

__all__ = ["NAMES"]
