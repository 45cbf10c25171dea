"""Claims of the papers, and verdicts that are computed from results.

A claim is a sentence and a check, put together from building blocks over named lines:

    Claim("Algorithm 4 is comparable to RGD", close("Algorithm 4", "RGD", within=1.5))

Blocks (a, b are names of methods; a list of names means "each of them"):

- ``lower(a, b)``: a's metric is below b's; ``close(a, b, within=1.5)``: at most that factor above;
- ``decreasing(a, along="n")``, ``increasing(a, along="d")``: from the first to the last value of
  the axis (or of ``"epsilon"``, at equal x); ``flat(a, along="x", within=1.3)``;
- ``slope(a, exponent, within=0.15)``: of log metric against log x;
- ``steadier(a, b)``: a varies less over repetitions than b (ratio of interquartile ranges);
- ``all_of(check, ...)``.

Every block takes ``metric=`` (default: the study's first), ``epsilons=`` and ``datasets=`` (only
these), and of an iteration curve the last point counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found under one accounting: effect, its 95 % interval, and whether it holds.

    ``holds`` is None where the results do not have what the check needs.
    """

    holds: bool | None
    effect: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    unit: str = ""


Check = Callable[[pd.DataFrame], Finding]
"""Of the rows of one study, one variant and one accounting (with the baselines)."""


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and its check."""

    sentence: str
    check: Check
