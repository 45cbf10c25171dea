"""The first stages: what is released of the columns, and the map that follows."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.default.columns import SummarizeColumns
from privtail.losses import LogisticLoss, PoissonLoss, RelativeHuberLoss
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from tests.default.conftest import staged

NOISE = GaussianNoise(0.5)


def table(n=4_000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) * [1.0, 1e4] + [0.0, 3e4]
    return X, 5.0 + 2.0 * rng.normal(size=n)


def test_features_and_target_are_located_and_scaled():
    fit = staged(
        [SummarizeColumns(ColumnSummaries(target=True), NOISE)], *table()
    )  # fmt: skip
    assert fit.standard.scales == pytest.approx([1.0, 1e4], rel=0.5)
    assert fit.standard.centres[1] == pytest.approx(3e4, rel=0.1)
    assert fit.standard.target.location == pytest.approx(5.0, abs=0.3)
    assert fit.standard.target.scale == pytest.approx(2.0, rel=0.5)


def test_the_target_alone_leaves_features_as_they_are():
    stage = SummarizeColumns(ColumnSummaries(target=True), NOISE, features=False)
    fit = staged([stage], *table())
    assert fit.standard.scales.tolist() == [1.0, 1.0]
    assert not fit.standard.centres.any()
    assert fit.standard.target.scale == pytest.approx(2.0, rel=0.5)
    every = SummarizeColumns(ColumnSummaries(target=True), NOISE)
    problem = Problem(n=100, d=2)
    counts = [sum(len(r.events) for r in each.plan(problem)) for each in (stage, every)]
    assert counts == [1, 2]


def test_a_loss_in_scales_of_the_target_gets_its_unit():
    X, y = table()
    stages = [SummarizeColumns(ColumnSummaries(target=True), NOISE)]
    one, other = (
        staged(stages, X, u * y, RelativeHuberLoss(threshold=1.35)).loss for u in (1.0, 4.0)
    )
    assert other.lipschitz == pytest.approx(4 * one.lipschitz, rel=0.05)


def test_tails_are_adjusted_beside_numbers_and_counts_but_not_labels():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(2 * rng.normal(size=4_000)), rng.normal(size=(4_000, 4))])
    y = rng.normal(size=4_000)
    numbers, counts, labels = (
        staged([SummarizeColumns(ColumnSummaries(target=target is None), NOISE)],
               X, y if target is None else (y > 0).astype(float), target,
               classes=(0, 1) if isinstance(target, LogisticLoss) else None).standard.scales[:2]
        for target in (None, PoissonLoss(), LogisticLoss())
    )  # fmt: skip
    assert numbers == pytest.approx(counts, rel=0.3)
    assert numbers[0] > 4 * numbers[1]
    assert numbers[0] > 2 * labels[0]
