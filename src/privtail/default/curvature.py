"""How curved losses are for steps: also those with a kink."""

from __future__ import annotations

import math

from privtail.losses import Loss

STEEPEST = 2.0**20
"""A curvature beyond this (a kink, an exponential) says nothing about where the records are."""


def bend(loss: Loss, unit: float) -> float:
    """Curvature of a loss; of one with a kink, over moves of the target's scale."""
    bend = loss.curvature if loss.curvature < STEEPEST else loss.lipschitz / unit
    return bend if 0 < bend < math.inf else 1.0


def kinked(loss: Loss) -> bool:
    """Whether derivatives jump, so that no step is short enough for its curvature."""
    return loss.lipschitz < STEEPEST <= loss.curvature
