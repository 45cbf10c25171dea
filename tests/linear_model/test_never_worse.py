"""No fit may be twice as wrong as a constant: in any unit, on hard tables, with small budgets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import xlogy

from privtail.errors import InvalidInput
from privtail.linear_model import (
    DPHuberRegressor,
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPQuantileRegressor,
)
from privtail.losses import QuantileLoss
from privtail.published import NAMES
from privtail.summaries.amounts import COUNT_CELLS, AmountHistogram
from privtail.summaries.histograms import Histogram

EPSILONS = (0.05, 1.0)


def heavy(n, seed):
    """Ten lognormal(0, 1.5) features; skewed, heavy noise of mean zero."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (n, 10))
    slopes = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5])
    return X, X @ slopes + 1 + rng.lognormal(0, 1.5, n) - math.exp(1.125)


def ratio(X, y, epsilon, seed=0, algorithm="auto"):
    """Root mean squared error over that of the mean."""
    model = DPLinearRegression(
        epsilon=epsilon, algorithm=algorithm, noise="simulated", random_state=seed
    )
    wrong = model.fit(X, y).predict(X) - y
    return math.sqrt(np.mean(wrong**2)) / np.std(y)


@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_in_any_unit(n, epsilon):
    X, y = heavy(n, 0)
    tables = [(X, y)]
    for factor in (1e-6, 1e6):
        one = np.where(np.arange(10) == 0, factor, 1.0)
        tables += [(X * one, y), (X * factor, y), (X, y * factor)]
    for features, target in tables:
        assert ratio(features, target, epsilon) < 1.3


def rare(X, y):
    """A feature that is zero but for a few records, where it is huge."""
    spikes = np.where(np.arange(len(y)) % 50 == 0, 1e6, 0.0)
    return np.column_stack([X, spikes]), y


def wide(X, y):
    """Ninety features that say nothing, of all sizes."""
    rng = np.random.default_rng(1)
    return np.hstack([X, rng.standard_t(2, (len(y), 90)) * np.logspace(-6, 6, 90)]), y


TABLES = {
    "rare": rare,
    "wide": wide,
    "mostly zero target": lambda X, y: (X, np.where(y > np.quantile(y, 0.7), y, 0.0)),
    "no signal": lambda X, y: (X, np.random.default_rng(2).permutation(y)),
    "far target": lambda X, y: (X, y + 1e5),
    "far features": lambda X, y: (X + 1e5, y),
    "one feature": lambda X, y: (X[:, :1], y),
    "two values": lambda X, y: (X, (y > 0) + 0.0),
}


@pytest.mark.parametrize("table", TABLES)
def test_on_hard_tables(table, half):
    """Lines that are wrong where features are large (``two values``) are the worst."""
    for n, epsilons in ((2_000, (0.1, 1.0)), (20_000, (1.0, 0.05))):
        X, y = TABLES[table](*heavy(n, 0))
        assert ratio(X, y, epsilons[half]) < 1.8


@pytest.mark.parametrize("algorithm", sorted(set(NAMES) - {"sample-and-aggregate"}))
def test_the_published_algorithms_by_name(algorithm, half):
    fast, slow = (("wide", 0.1), ("rare", 1.0), ("far target", 1.0)), (("wide", 1.0),)
    for table, epsilon in slow if half else fast:
        assert ratio(*TABLES[table](*heavy(3_000, 0)), epsilon, algorithm=algorithm) < 1.6


def test_too_few_records_are_refused_and_not_misused():
    with pytest.raises(InvalidInput, match="at least"):
        ratio(*heavy(3_000, 0), 0.1, algorithm="sample-and-aggregate")


@pytest.mark.parametrize("n", [2_000, 10_000])
def test_labels(n):
    X, y = heavy(n, 0)
    for labels in (y > 0, y > np.quantile(y, 0.9), y > np.quantile(y, 0.2)):
        for epsilon in EPSILONS:
            model = DPLogisticRegression(
                epsilon=epsilon, classes=[False, True], noise="simulated", random_state=0
            )
            wrong = np.mean(model.fit(X, labels).predict(X) != labels)
            assert wrong < 2 * min(np.mean(labels), 1 - np.mean(labels))


@pytest.mark.parametrize("algorithm", ["auto", "proximal-gradient"])
def test_slopes_that_are_kept_without_a_sure_gain_say_so(algorithm):
    """Nothing is to be learned of labels that are a coin; in some fits chance looks sure."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_000, 5)), np.arange(1_000) % 2
    unsure = 0
    for seed in range(6):
        model = DPLogisticRegression(
            epsilon=0.5, classes=[0, 1], algorithm=algorithm, noise="simulated", random_state=seed
        ).fit(X, y)
        kept, notes = bool(model.coef_.any()), " ".join(model.privacy_.notes)
        assert ("is not significant, so the slopes" in notes) != kept
        assert kept or "The slopes are kept" not in notes
        unsure += "The slopes are kept" in notes
    assert unsure >= 3


def constant_wins(model, X, y):
    """Whether the model is the constant: its slopes are zero."""
    return not np.any(model.fit(X, y).coef_)


def test_the_constant_of_absolute_errors_is_a_median():
    """Far from the mean, in any unit, where the slopes say nothing."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3_000, 3)), 1e-3 * rng.lognormal(0, 1, 3_000)
    for Model in (DPLADRegressor, DPHuberRegressor):
        model = Model(epsilon=0.3, noise="simulated", random_state=0)
        assert constant_wins(model, X, y)
        wrong = np.abs(model.intercept_ - y).mean()
        assert wrong < 1.05 * np.abs(np.median(y) - y).mean()


@pytest.mark.parametrize(
    ("quantile", "n", "epsilon", "most"),
    [(0.05, 1_000, 1.0, 1.1), (0.95, 10_000, 0.3, 1.05), (0.99, 1_000, 1.0, 1.25),
     (0.99, 10_000, 0.3, 1.15)],
)  # fmt: skip
def test_the_constant_of_a_quantile_is_that(quantile, n, epsilon, most):
    """Moves of a median's length left it at 1.2 to 3.3 times the loss; alpha keeps slopes away."""
    ratios = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n, 3)), rng.standard_t(4, n)
        model = DPQuantileRegressor(
            quantile, alpha=10.0, epsilon=epsilon, noise="simulated", random_state=seed
        )
        assert constant_wins(model, X, y)
        loss = QuantileLoss(quantile=quantile)
        made, best = (np.full((n, 1), c) for c in (model.intercept_, np.quantile(y, quantile)))
        ratios.append(loss.values(made, y).mean() / loss.values(best, y).mean())
    assert np.median(ratios) < most


@pytest.mark.parametrize("quantile", [0.05, 0.95])
def test_slopes_of_a_far_quantile_are_seen_on_either_side(quantile):
    """What is usual there is a tenth of a scale; a fifth of a loss of that size was no gain."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(50_000, 4))
        y = X @ [0.5, 0.5, 0, 0] + np.round(3 * rng.normal(size=50_000))
        model = DPQuantileRegressor(
            quantile, alpha=0.0, epsilon=1.0, noise="simulated", random_state=seed
        ).fit(X, y)
        assert model.coef_[:2] == pytest.approx([0.5, 0.5], abs=0.15)


@pytest.mark.parametrize("rate", [0.15, 3.0, 300.0])
def test_the_constant_of_counts_is_their_mean(rate):
    """Slopes of noise are kept in 2 of 30 fits, so in two of five in 4 % of such tests."""
    rng = np.random.default_rng(0)
    X = rng.pareto(1.5, (4_000, 5))
    y = rng.poisson(rate, 4_000).astype(float)
    constants = 0
    for seed in range(5):
        model = DPPoissonRegressor(epsilon=0.5, alpha=0.0, noise="simulated", random_state=seed)
        constants += constant_wins(model, X, y)
        assert model.predict(np.zeros((1, 5)))[0] == pytest.approx(y.mean(), rel=0.25)
    assert constants >= 4


def test_counts_below_zero_count_as_zero():
    """As they were, they sent slopes to fifteen times what they should be."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3_000, 3))
    y = X @ [1.0, 2.0, 0.0] + rng.normal(size=3_000)
    model = DPPoissonRegressor(epsilon=3.0, noise="simulated", random_state=0).fit(X, y)
    assert model.score(X, np.maximum(y, 0.0)) > 0.6


def deviance(counts, mean):
    return 2 * np.mean(xlogy(counts, counts / mean) - counts + mean)


@pytest.mark.parametrize(
    ("level", "spread"), [(3.0, 1.5), pytest.param(50.0, 1.5, marks=pytest.mark.slow)]
)
def test_the_constant_of_overdispersed_counts_is_near_their_mean(level, spread):
    """Cell by cell little shows but zeros, or a run of cells: noise is no part of it.

    The medians were 1.63 and 1.10, and of every thirty fits one was 10,000: a run of 46 cells from
    1e-6 to 1e8. They are 1.09 and 1.16 of sixty.
    """
    ratios = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, sizes = rng.normal(size=(1_000, 4)), rng.lognormal(-(spread**2) / 2, spread, 1_000)
        y = rng.poisson(level * sizes).astype(float)
        model = DPPoissonRegressor(epsilon=0.3, noise="simulated", random_state=seed).fit(X, y)
        ratios.append(deviance(y, model.predict(X)) / deviance(y, y.mean()))
    assert np.median(ratios) < 1.2
    assert max(ratios) < 2


@pytest.mark.parametrize("shape", [0.5, 1.2])
def test_slopes_of_overdispersed_counts_are_judged_by_their_dispersion(shape):
    """Where clamps were those of Poisson counts, slopes whose level was too low seemed to help.

    Of 24 fits 14 and 5 were worse than the mean by 5 %, with 1.27 as the worst; now 1 and 0.
    """
    worse = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, X_new = rng.normal(size=(1_000, 10)), rng.normal(size=(10_000, 10))
        means, new = (4 * np.exp(x[:, :3] @ [0.2, -0.2, 0.1]) for x in (X, X_new))
        y, y_new = (rng.poisson(rng.gamma(shape, m / shape)).astype(float) for m in (means, new))
        model = DPPoissonRegressor(epsilon=1, noise="simulated", random_state=seed).fit(X, y)
        worse += deviance(y_new, model.predict(X_new)) > 1.05 * deviance(y_new, y.mean())
    assert worse <= 1


def none_seen(model):
    return any("detected above the noise of the histogram" in x for x in model.privacy_.notes)


def test_a_statement_says_where_no_counts_show():
    """Of 500 counts near 600 a small budget shows nothing; with more it does."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 2)), rng.poisson(600.0, 500).astype(float)
    for epsilon, shown in ((0.05, False), (3.0, True)):
        model = DPPoissonRegressor(epsilon=epsilon, noise="simulated", random_state=0).fit(X, y)
        assert none_seen(model) != shown
    few = DPPoissonRegressor(epsilon=1.0, noise="simulated", random_state=0)
    assert none_seen(few.fit(X, (rng.random(500) < 0.01).astype(float)))


def test_a_run_of_counts_beside_zeros_that_show_is_no_noise():
    """None of eight cells of 110 is sure beside noise of 50; together they are six deviations."""
    released = np.random.default_rng(0).normal(0, 50, len(COUNT_CELLS.edges) + 1)
    released[1] += 1_000
    first = 1 + int(np.searchsorted(COUNT_CELLS.edges, 1.0))
    released[first : first + 8] = 110.0
    histogram = Histogram(released, COUNT_CELLS, 50.0)
    assert not histogram.above_noise(1_880)[2:].any()
    assert AmountHistogram.of(released, 50.0, 1_880).counts[first : first + 8].all()


def test_the_constant_of_labels_is_the_most_frequent_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1_000, 3)), rng.choice(3, 1_000, p=[0.2, 0.6, 0.2])
    for seed in range(10):
        model = DPLogisticRegression(
            epsilon=0.1, classes=[0, 1, 2], noise="simulated", random_state=seed
        )
        assert np.mean(model.fit(X, y).predict(X) == 1) > 0.99


@pytest.mark.parametrize("far", [0.0, 1e3, 1e5])
def test_a_far_target_is_found_with_little_budget(far):
    """n times the Gaussian-DP parameter is 47 here: of 60 fits of the farthest, 50 find it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, 3)), far + rng.normal(size=2_000)
    assert sum(ratio(X, y, 0.1, seed) < 1.2 for seed in range(10)) >= (8 if far > 1e3 else 9)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_more_budget_does_not_turn_a_good_model_into_a_constant(epsilon):
    """A few counts that are expected far above any that was seen decided against all others."""
    kept = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.lognormal(0.0, 2.0, (10_000, 3))
        effect = np.tanh((np.log(X) / 2).sum(axis=1) / 2) * 2
        y = rng.poisson(np.exp(1 + 0.5 * effect)).astype(float)
        model = DPPoissonRegressor(
            epsilon=epsilon, alpha=0.0, noise="simulated", random_state=seed
        ).fit(X, y)
        kept += model.coef_.any()
    assert kept >= 4
