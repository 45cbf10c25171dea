"""The default, ``algorithm="auto"``: named stages, each a few private releases. From no paper."""

from __future__ import annotations

from privtail.algorithms import Row
from privtail.default.pipeline import ScaledDescent
from privtail.default.tuning import Tuning

AUTO = Row(
    "auto", "-", "-", ScaledDescent, "nothing",
    "Gaussian histograms, second moments, gradients and mean gains; with many features and much "
    "noise also a noisy top k, which selects features",
    "(epsilon, delta) by Gaussian DP; the noisy top k by its bounded range",
)  # fmt: skip
"""The default in the table of `privtail.algorithms`."""

__all__ = ["AUTO", "ScaledDescent", "Tuning"]
