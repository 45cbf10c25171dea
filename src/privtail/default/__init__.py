"""The default, ``algorithm="auto"``: named stages, each a few private releases. From no paper."""

from __future__ import annotations

from privtail.algorithms import Row
from privtail.default.pipeline import ScaledDescent
from privtail.default.tuning import Tuning

AUTO = Row(
    "auto", "-", "-", ScaledDescent, "nothing",
    "Gaussian histograms, second moments, gradients and gains; under much noise of many features a "
    "noisy top s before them",
    "(epsilon, delta) by Gaussian DP, with a top s by its bounded range",
)  # fmt: skip
"""The default in the table of `privtail.algorithms`."""

__all__ = ["AUTO", "ScaledDescent", "Tuning"]
