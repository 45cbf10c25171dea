"""The histogram of residuals, and the thresholds that it suggests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor

from privtail.linear_model import DPHuberRegressor
from privtail.losses import LogisticLoss, SquaredLoss, WeightedLoss
from privtail.summaries.histograms import Histogram
from privtail.summaries.residuals import SIZE_CELLS, ResidualHistogram
from privtail.trusted.budget import Budget
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import curated, identity


def counted(sizes, noise=0.0, rng=None):
    counts = np.bincount(
        np.searchsorted(SIZE_CELLS.edges, sizes), minlength=len(SIZE_CELLS.edges) + 1
    )
    return counts + (rng.normal(0, noise, len(counts)) if noise else 0.0)


def measured(X, y, w, loss=None, noise=1.0, **options):
    curator = curated(X, y, budget=Budget(1e30, 1e-6), intercept=False, **options)
    curator.open(ResidualHistogram.plan(GaussianNoise(noise), curator.problem))
    batch = curator.everyone(identity(X.shape[1]).map)
    return ResidualHistogram.released(batch, GaussianNoise(noise), loss or SquaredLoss(), w)


def test_a_quantile_is_an_edge_above_that_part_of_the_residuals():
    rng = np.random.default_rng(0)
    y = rng.normal(size=20_000)
    found = measured(np.ones((len(y), 1)), y, np.zeros((1, 1)))
    for part in (0.5, 0.8, 0.95):
        right = np.quantile(np.abs(y), part)
        assert right < found.quantile(part) * 1.02 < 1.5 * right
    assert found.mean_square() == pytest.approx(1.0, rel=0.5)
    assert found.part == 1.0


def test_records_that_are_left_out_are_no_residuals_of_zero():
    X = np.ones((4_000, 1))
    X[::2] = np.nan
    found = measured(X, np.random.default_rng(0).normal(size=4_000), np.zeros((1, 1)))
    assert found.part == pytest.approx(0.5, abs=0.02)


def test_class_weights_do_not_sort_classes_into_cells():
    X, y = np.ones((1_000, 1)), np.arange(1_000) % 2.0
    loss = WeightedLoss(loss=LogisticLoss(), weights=(1.0, 9.0))
    w = np.zeros((1, 1))
    plain, weighted = (
        measured(X, y, w, each, classes=(0, 1)).counts for each in (LogisticLoss(), loss)
    )
    assert np.array_equal(plain, weighted)


def test_no_residuals_have_no_threshold():
    empty = ResidualHistogram(np.zeros(len(SIZE_CELLS.edges) + 1))
    assert empty.quantile(0.8) == math.inf
    assert empty.proposed(1.35) == math.inf
    assert not empty.known


def test_a_balanced_threshold_misses_as_much_as_its_noise_adds():
    found = ResidualHistogram(counted(np.random.default_rng(0).lognormal(0, 1, 20_000)))
    thresholds = [found.balanced(deviation) for deviation in (1e-4, 1e-2, 0.3)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > 10 > thresholds[2]


def test_hubers_threshold_is_that_of_scikit_learn_where_the_target_is_wider_than_residuals():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 3))
    y = X @ [3.0, -2.0, 1.0] + rng.lognormal(0, 1, 20_000)
    twin = HuberRegressor(alpha=0.0).fit(X, y)
    model = DPHuberRegressor(
        epsilon=2.0, delta=1e-6, alpha=0.0, noise="simulated", random_state=0
    ).fit(X, y)  # fmt: skip
    assert model.threshold_ == pytest.approx(1.35 * twin.scale_, rel=0.4)
    assert model.coef_ == pytest.approx(twin.coef_, abs=0.05)
    assert model.intercept_ == pytest.approx(twin.intercept_, abs=0.1)


def test_a_heavy_tail_shows_where_rows_are_missing():
    """Half: the few large residuals were left out with the noise, and clipped at 11 of 90."""
    rng, n = np.random.default_rng(0), 100_000
    sizes = np.abs(rng.lognormal(2.0, 1.0, n // 2) - 9.0)
    noisy = Histogram(counted(sizes, 50.0, rng), SIZE_CELLS, 50.0)
    assert SIZE_CELLS.edges[np.flatnonzero(noisy.above_noise(n))[-1]] > 60
    assert SIZE_CELLS.edges[np.flatnonzero(noisy.surest_run(n / 4))[-1]] < 20


def test_a_run_of_sizes_does_not_reach_over_many_cells_of_noise():
    """Of 300 histograms two showed residuals of 2^22 and more, where the largest is near 2^5."""
    rng, largest = np.random.default_rng(0), []
    for _ in range(300):
        noisy = Histogram(counted(rng.lognormal(0, 1, 1_000), 50.0, rng), SIZE_CELLS, 50.0)
        largest.extend(SIZE_CELLS.edges[np.flatnonzero(noisy.above_noise(1_000))[-1:]])
    assert len(largest) > 250
    assert max(largest) < 2**8
