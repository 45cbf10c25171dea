"""A mean of derivatives, with and without ranges of predictions, moves no farther than its bound.

Argument: the ranges are public numbers, a row and its margin are clipped to them by themselves, and
what the loss says is forced onto the range of the mean afterwards. So a record adds a function of
itself within the range, whatever the ranges are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from privtail.losses import LogisticLoss, MultinomialLoss, PoissonLoss, SquaredLoss
from privtail.robust_means import ClampedMean, ClippedMean
from privtail.trusted import questions
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.maps import MappedRows, PredictionRanges
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sensitivity import Sensitivity

N, D = 30, 2
HOSTILE = [0.0, -0.0, 5e-324, -1e-310, 1.0, -3.0, 1e30, 1e308, -1e308, np.nan, np.inf, -np.inf]
LOSSES = [SquaredLoss(), LogisticLoss(), PoissonLoss(), MultinomialLoss(classes=3)]
MEANS = [ClippedMean(0.5), ClippedMean(2.0, blocks=4), ClampedMean(1.0)]
ENDLESS = [-np.inf, np.inf]
RANGES = [
    None,
    PredictionRanges.of(np.tile([-1.0, 2.0], (D, 1)), [-2.0, 2.0]),
    PredictionRanges.of(np.tile(ENDLESS, (D, 1)), [-1e300, 5.0]),
    PredictionRanges.of([[0.0, 0.0], ENDLESS], ENDLESS),
]


def answers(X: Any, y: Any) -> Iterator[tuple[Any, Sensitivity]]:
    for loss, mean, ranges in itertools.product(LOSSES, MEANS, RANGES):
        curator = Curator(
            X, y, intercept=True, outputs=loss.outputs, budget=Budget(5.0, 1e-6), random_state=0
        )
        curator.open((Round(events=(GaussianNoise(50.0).event(curator.problem.invalid_rows()),)),))
        w = np.linspace(-1, 1, (D + 1) * loss.outputs).reshape(D + 1, -1)
        found = curator.everyone().derivatives(loss, w, mean, ranges)
        yield found._value.astype(object), found.sensitivity


def neighbours() -> Iterator[tuple[Any, Any, Any, bool]]:
    """A table, its target, one record in the place of the first, and whether that adds nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_t(2, (N, D)), rng.integers(0, 3, N).astype(float)
    X[1], y[2] = [1e308, -1e308], 1e308
    for cells in [*zip(HOSTILE, HOSTILE[::-1], HOSTILE[3:] + HOSTILE[:3], strict=True)]:
        yield X, y, cells, not np.isfinite(cells).all()


def require_within() -> None:
    for X, y, cells, empty in neighbours():
        other, target = X.copy(), y.copy()
        other[0], target[0] = cells[:D], cells[D]
        for (one, bounds), (two, _) in zip(answers(X, y), answers(other, target), strict=True):
            moved = float(np.sqrt(float(((one - two) ** 2).sum())))
            assert moved <= (bounds.radius if empty else bounds.diameter).l2


def test_a_record_moves_derivatives_no_farther_than_their_bound() -> None:
    require_within()


def unforced(self: Any, block: Any, sums: Any) -> None:
    """The sabotaged twin: what the loss says is added without its range."""
    margins, _, counted = block.margins(self.w, self.ranges)
    said = self.loss.derivatives(margins, block.y) * 2.0**block.problem.bits
    np.add.at(sums[:, 0], block.labels, np.nan_to_num(np.rint(said)) * counted[:, None])


def twice(self: Any, block: Any, sums: Any) -> None:
    """The sabotaged twin: every row counts twice."""
    margins, _, counted = block.margins(self.w, self.ranges)
    said = self.loss.derivatives(margins, block.y)
    ones = MappedRows.as_they_are(np.ones((len(block.y), 1)))
    for _ in range(2):
        block.add_rows(ones, counted, said, self.range, sums)


def among_others(self: MappedRows, ranges: Any) -> MappedRows:
    """The sabotaged twin: rows are clipped to what the others of their block reach."""
    z = self.transformed()
    ends = np.nan_to_num(z).min(axis=0), np.nan_to_num(z).max(axis=0)
    return self.as_they_are(np.clip(z, *ends) / np.maximum(np.abs(ends).max(axis=0), 1.0))


@pytest.mark.parametrize(
    ("owner", "name", "twin"),
    [
        (questions.Derivatives, "add", unforced),
        (questions.Derivatives, "add", twice),
        (MappedRows, "clipped", among_others),
    ],
)
def test_derivatives_that_move_farther_are_seen(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, twin: Any
) -> None:
    monkeypatch.setattr(owner, name, twin)
    with np.errstate(all="ignore"), pytest.raises(AssertionError):
        require_within()
