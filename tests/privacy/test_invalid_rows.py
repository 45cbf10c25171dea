"""How many rows count as zero: one number, which one record moves by at most one."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from privtail.errors import InvalidInput
from privtail.losses import SquaredLoss
from privtail.robust_means import ClampedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Batch, Curator
from privtail.trusted.events import Round
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling

N, D = 11, 3
X = np.random.default_rng(0).standard_t(1.5, (N, D))
Y = np.arange(N, dtype=float)
CELLS = (0.0, 1.0, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan)
BITS = Problem(n=N, d=D).bits


def batch(
    x: Any, y: Any = None, sampling: Sampling | None = None, map: FeatureMap | None = None,
    **options: Any,
) -> Batch:  # fmt: skip
    curator = Curator(x, y, budget=Budget(5.0, 1e-6), random_state=0, **options)
    curator.open((Round(sampling=sampling or Everyone(), events=()),))
    return next(curator.rounds(sampling or Everyone(), 1, map))


def count(b: Batch) -> int:
    answer = b.invalid_rows()
    (steps,) = (int(v) for v in answer._value)
    assert steps % 2**b.problem.bits == 0
    return steps >> b.problem.bits


def test_it_counts_what_is_not_finite_or_not_declared() -> None:
    x, y = X.copy(), Y.copy()
    x[0, 1], x[3, 2], x[4, 0], y[4], y[7] = math.nan, math.inf, 1e308, -math.inf, math.nan
    assert count(batch(X, Y)) == 0
    assert count(batch(x, y)) == count(batch(sp.csr_matrix(x), y)) == 4
    assert count(batch(x)) == 2  # no target, nothing to miss there
    table = {"a": x[:, 1], "b": x[:, 2], "c": ["r", "s", None] * 3 + ["r", "r"]}
    assert count(batch(table, y, categories={"c": ["r"]})) == 4  # an odd category is no gap
    labels = np.array(["yes", "no", "maybe", "no"] * 2 + ["yes"] * 3, dtype=object)
    labels[9] = None
    assert count(batch(X, labels, classes=("no", "yes"))) == 3
    assert count(batch(x, labels, classes=("no", "yes"))) == 5
    with pytest.raises(InvalidInput, match="Declare"):
        batch(X, labels, classes=()).invalid_rows()


def test_it_counts_the_rows_that_add_nothing_to_a_gradient() -> None:
    """Whatever the public map of the features is."""
    for scale in (1e-300, 1.0, 1e300):
        for cell in CELLS:
            for target in CELLS:
                b = batch(
                    np.full((1, 2), cell), np.array([target]), intercept=True,
                    map=FeatureMap.of(2, np.full(2, scale)),
                )  # fmt: skip
                w = np.zeros((3, 1))
                w[2] = 1.0 if target != 1.0 else 2.0
                for question in (b.gradient, b.derivatives):
                    moved = bool(question(SquaredLoss(), w, ClampedMean(1.0))._value.any())
                    assert count(b) == (0 if moved else 1)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
def test_one_record_moves_it_by_at_most_one(storage: Any) -> None:
    worst = 0
    for n in (1, 2, N):
        problem = Problem(n=n, d=D)
        for neighbour in ("radius", "diameter"):
            bound = getattr(problem.invalid_rows(), neighbour)
            for cell in CELLS:
                for target in CELLS:
                    x, y = X[:n].copy(), Y[:n].copy()
                    x[0, 0], y[-1] = math.nan, math.nan  # others are invalid too
                    before = batch(storage(x), y).invalid_rows()
                    x[-1] = math.nan if neighbour == "radius" else cell
                    y[-1] = target
                    after = batch(storage(x), y).invalid_rows()
                    moved = abs(int(before._value[0]) - int(after._value[0]))
                    assert before.sensitivity == problem.invalid_rows()
                    for norm in (bound.l1, bound.l2, bound.linf):
                        assert moved <= Fraction(norm)
                    worst = max(worst, int(moved / bound.l1))
    assert worst == 1


def test_a_count_of_cells_instead_of_rows_is_caught() -> None:
    """The twin: a row with three gaps must not count three times."""
    x = X.copy()
    x[2] = math.nan
    assert count(batch(x, Y)) - count(batch(X, Y)) == 1
    assert np.count_nonzero(~np.isfinite(x)) == D


@pytest.mark.parametrize("noise", [GaussianNoise(0.5), LaplaceNoise(0.5)])
@pytest.mark.parametrize("sampling", [Everyone(), PoissonBatches(0.5), DisjointParts(2)])
def test_it_is_planned_and_released_like_any_question(noise: Any, sampling: Sampling) -> None:
    n = 4000
    x = np.ones((n, 1))
    x[::2] = math.nan
    curator = Curator(x, budget=Budget(math.inf), noise="simulated", random_state=1)
    event = noise.event(curator.problem.sampled(sampling).invalid_rows())
    curator = Curator(x, budget=Budget(50.0, 1e-6), noise="simulated", random_state=1)
    curator.open((Round(sampling=sampling, events=(event,)),))
    (found,) = next(curator.rounds(sampling, 1)).invalid_rows().release(noise)
    seen = n // 2 if isinstance(sampling, Everyone) else n // 4
    assert abs(found - seen) < 200  # below 1e-9: the deal's standard deviation is at most 32
    assert event.question == "invalid rows"
    assert event.scale == 0.5 * 2 ** Problem(n=n, d=1).bits
