"""The mechanisms that may open a sensitive value; each has its proof in its docstring."""

from __future__ import annotations

from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyMax, NoisyTopK

MECHANISMS: tuple[type, ...] = (GaussianNoise, LaplaceNoise, NoisyMax, NoisyTopK, LaplaceMax)
"""Those of `trusted.smooth` open questions of their own: no bound on one sum is enough there."""
