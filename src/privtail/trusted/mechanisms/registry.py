"""The mechanisms that may open a sensitive value; each has its proof in its docstring."""

from __future__ import annotations

from privtail.trusted.mechanisms.aggregate import SampleAndAggregate
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyMax, NoisyTopK
from privtail.trusted.mechanisms.trimmed import TrimmedMean

MECHANISMS: tuple[type, ...] = (GaussianNoise, LaplaceNoise, NoisyMax, NoisyTopK, LaplaceMax)

SMOOTH_MECHANISMS: tuple[type, ...] = (TrimmedMean, SampleAndAggregate)
"""They open a question of their own, since no bound on one sum is their sensitivity."""
