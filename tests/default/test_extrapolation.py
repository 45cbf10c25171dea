"""Predictions do not go far beyond what was found of the columns unless that gains."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privtail.data.catalogue import located
from privtail.default.acceptance import Improvement, LimitExtrapolation
from privtail.default.finish import OVERSHOOTS
from privtail.linear_model import DPHuberRegressor, DPLinearRegression
from privtail.summaries.summary import MAX_REACH, Summary
from privtail.trusted.budget import Budget
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import identity, staged

SEEDS = range(5)


def coded(seed, n=10_000, share=0.01):
    """Ten features, two of which hold -1000 where they are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    y = X.sum(axis=1) / np.sqrt(10) + rng.normal(size=n)
    X[:, :2] = np.where(rng.random((n, 2)) < share, -1000.0, X[:, :2])
    return X, y


def missed(kind, X, y, seed, epsilon=1.0):
    model = kind(epsilon=epsilon, noise="simulated", random_state=seed).fit(X, y)
    return model, float(np.sqrt(np.mean((model.predict(X) - y) ** 2)) / y.std())


@pytest.mark.parametrize("kind", [DPLinearRegression, DPHuberRegressor])
def test_a_code_for_missing_values_is_no_disaster(kind, monkeypatch):
    """Slopes are kept, and useful; without the limit these fits miss by 6 to 9 means."""
    for seed in SEEDS:
        model, ratio = missed(kind, *coded(seed), seed)
        assert ratio < 0.85
        assert model.coef_.all()
    monkeypatch.setattr(LimitExtrapolation, "plan", lambda *_: ())
    monkeypatch.setattr(LimitExtrapolation, "run", lambda *_: None)
    assert np.median([missed(kind, *coded(seed), seed)[1] for seed in SEEDS]) > 5


def hidden(seed, n):
    """A copy of an informative feature that holds a code in one of 2,000 rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X @ [1.0, -2.0, 0.0, 0.5, 3.0] + rng.normal(size=n)
    copy = np.where(rng.random(n) < 1 / 2_000, 9_999_999.0, X[:, 4])
    return np.column_stack([X, copy]), y


def test_codes_that_noise_hides_cost_little():
    """R^2 was -2 to -258 where predictions reached 100 tails. 31 tails make it negative.

    By chance one fit in 250 reaches so far for a code that no release sees. The chance that more
    than one of 10 fits does is below .001.
    """
    scores = []
    for seed in range(10):
        X, y = hidden(seed, 40_000)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        scores.append(model.fit(X[:20_000], y[:20_000]).score(X[20_000:], y[20_000:]))
    assert sum(score < 0.7 for score in scores) <= 1
    assert np.median(scores) > 0.85


def ages(seed, n):
    """Ages, 999 where unknown and a year where it was the year of birth; sexes are no effect."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n).astype(float)
    age[rng.random(n) < 0.01], age[rng.random(n) < 0.005] = 999, 1930
    y = 60 + 0.5 * np.where(age > 100, 50, age) + 10 * rng.normal(size=n)
    return np.column_stack([age, rng.integers(1, 3, n)]), y


def test_a_target_whose_tail_noise_hides_is_no_reason_to_reach_far():
    """Codes that noise hides made the error 20 times the constant's in a third of the fits.

    Predictions of usual rows ended at a tail of the target that was too short. That clipping lost,
    which passed for a gain of far predictions.
    """
    ratios = []
    for seed in range(12):
        X, y = ages(seed, 60_000)
        model = DPLinearRegression(epsilon=0.1, noise="simulated", random_state=seed)
        ratios.append(1 - model.fit(X[:50_000], y[:50_000]).score(X[50_000:], y[50_000:]))
        assert model.report_["reach"] < MAX_REACH
    assert np.median(ratios) < 0.5
    assert max(ratios) < 6


def bent(seed, n, place):
    """Lognormal features, with effects that end at five widths; a target that lies at ``place``."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 2, (n, 4))
    low, middle, high = np.quantile(X, [0.1, 0.5, 0.9], axis=0)
    effects = ((X - middle) / (high - low)).clip(-5, 5)
    return X, place + effects @ [1.0, 0.5, 0.5, 0.0] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("place", [30.0, 300.0])
def test_the_tail_of_a_target_far_from_zero_is_measured(place):
    """Narrow cells hid it, so that far predictions seemed to gain. At 300, R^2 was near -4."""
    for seed in range(6):
        X, y = bent(500 + seed, 15_000, place)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        assert model.fit(X[:5_000], y[:5_000]).score(X[5_000:], y[5_000:]) > 0.6


def levelling(seed, n, sigma=2.0):
    """A lognormal feature whose effect is logarithmic, beside four others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = sigma * X[:, 0] + X[:, 1:].sum(axis=1) + rng.normal(size=n)
    X[:, 0] = np.exp(sigma * X[:, 0])
    return X, y


@pytest.mark.parametrize("n", [5_000, 20_000])
def test_an_effect_that_levels_off_is_not_extrapolated(n):
    """The mean squared error was 2 to 8 times that of the constant."""
    ratios = []
    for seed in range(8):
        X, y = levelling(seed, 50_000 + n)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        ratios.append(1 - model.fit(X[:n], y[:n]).score(X[n:], y[n:]))
    assert np.median(ratios) < 0.95


def scattered(rng, n):
    """Two light columns, each with a code in .4 % of the rows: noise hides them."""
    X = rng.normal(size=(n, 5))
    y = X @ [1.0, 1.0, 0.3, 0.0, 0.0] + rng.normal(size=n)
    for j in range(2):
        X[rng.random(n) < 0.004, j] = -25.0 * (j + 1)
    return X, y


def stretched(rng, n):
    """One row in a hundred is 5 to 25 times as long, and its target does not follow."""
    X = rng.normal(size=(n, 6))
    y = X @ [1.0, 0.5, -0.5, 0.0, 0.0, 0.0] + rng.normal(size=n)
    long = rng.random(n) < 0.01
    X[long] *= rng.uniform(5, 25, (long.sum(), 1))
    return X, y


def bounded(rng, n):
    """Columns with very heavy tails, whose effect is bounded."""
    X = rng.standard_t(1.5, (n, 5))
    return X, np.tanh(X @ [1.0, -1.0, 0.5, 0.0, 0.0]) + 0.5 * rng.normal(size=n)


def zeros(rng, n):
    """Columns that are mostly zero, and else lognormal: it counts only whether they are zero."""
    there = rng.random((n, 6)) < 0.3
    X = np.where(there, rng.lognormal(1, 1.5, (n, 6)), 0.0)
    return X, there @ [1.0, -1.0, 0.5, 0.5, 0.0, 0.0] + 0.7 * rng.normal(size=n)


@pytest.mark.parametrize("table", [scattered, stretched, bounded, zeros])
def test_far_rows_that_do_not_follow_cost_no_more_than_a_constant(table):
    """Means over 8 fits were up to 1.21 times the constant's error, and single fits up to 2.3."""
    ratios = []
    for seed in range(8):
        X, y = table(np.random.default_rng(7919 * seed + 2_000), 12_000)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        error = model.fit(X[:2_000], y[:2_000]).predict(X[2_000:]) - y[2_000:]
        ratios.append(np.sqrt(np.mean(error**2)) / y[2_000:].std())
    assert np.exp(np.mean(np.log(ratios))) < 1.05
    assert max(ratios) < 2


@pytest.mark.parametrize("law", ["lognormal", "t", "outliers"])
def test_heavy_tails_are_no_harm(law):
    """Slopes are kept, and predictions of explained tails mostly reach far."""
    far = 0
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        if law == "lognormal":
            X, noise = rng.lognormal(0, 1.5, (10_000, 10)), rng.lognormal(0, 1.5, 10_000)
        elif law == "t":
            X, noise = rng.standard_t(2.5, (10_000, 10)), rng.standard_t(2.5, 10_000)
        else:
            X, noise = rng.normal(size=(10_000, 10)), rng.normal(size=10_000)
            noise[rng.random(10_000) < 0.05] *= 100
        model, _ = missed(DPLinearRegression, X, X.sum(axis=1) + noise, seed, 2.0)
        assert model.coef_.all()
        far += model.report_["reach"] == MAX_REACH
    assert law == "outliers" or far >= 3


@pytest.mark.skipif(located("blogfeedback") is None, reason="the blogfeedback table is not here")
@pytest.mark.parametrize("epsilon", [0.5, pytest.param(2.0, marks=pytest.mark.slow)])
def test_a_tail_that_features_explain_is_no_harm(epsilon):
    """Comments: two thirds are zeros, one in a hundred is above 150, the scale of the rest is 1."""
    frame = pd.read_parquet(located("blogfeedback"))
    y = frame.pop("target").to_numpy(float)
    X = frame.drop(columns="split").to_numpy(float)
    model, ratio = missed(DPLinearRegression, X, y, 0, epsilon)
    assert model.coef_.any()
    assert ratio < 0.97


def reached(X, y, w, noise, seed=0, **options):
    """How many tails a model ``w`` of standardized features reaches."""
    w = np.asarray(w, float).reshape(-1, 1)
    stage = LimitExtrapolation(Improvement(noise))
    return staged([stage], X, y, w=w, random_state=seed, **options)


def columns(d, tail):
    """The summary of d features and a target, all of the scale 1."""
    one = Summary.of_one(0.0, 1.0, 1.0, 1.0, tail, -0.7, 0.7, True, True, 1.0, False)
    return one.repeated(d + 1)


def test_far_rows_decide_by_number_and_not_by_size():
    """300 of 10,000 rows lie 60 scales away, where tails end at 4; noise is 50 rows."""
    rng, noise = np.random.default_rng(0), GaussianNoise(25.0)
    X = rng.normal(size=(10_000, 1)).clip(-3, 3)
    X[:300] = 60.0
    options = {"summary": columns(1, 4.0), "standard": identity(1, tail=4.0)}
    y = X[:, 0] + rng.normal(size=10_000)
    assert reached(X, y, [1, 0], noise, **options).reach == MAX_REACH
    y[:300] = 1e6 * np.arange(300) / 300  # a size that decides a mean square
    assert reached(X, y, [1, 0], noise, **options).reach == MAX_REACH
    y[:300] = rng.normal(size=300)
    fit = reached(X, y, [1, 0], noise, **options)
    assert fit.reach == 0.5
    assert fit.overshoots


@pytest.mark.parametrize(
    ("deviations", "reach"),
    [
        (1e9, 0.5),
        (2.2, 8**-0.2),
        (2, 1),
        (1, 1),
        (0.5, 8**0.5),
        (0, 8),
        (-2, 8),
        (-2.5, 8**1.5),
        (-3.5, 100),
        (-1e9, 100),
    ],
)
def test_the_reach_follows_the_gain(monkeypatch, deviations, reach):
    """Far predictions, and clipping inside the tails, need evidence that is no chance."""
    noise = GaussianNoise(30.0)
    monkeypatch.setattr(
        Improvement,
        "release",
        lambda self, batch, *_: deviations * self.deviation(batch.problem),
    )
    X, options = np.ones((300, 1)), {"summary": columns(1, 4.0), "standard": identity(1, tail=4.0)}
    assert reached(X, X[:, 0], [1.0, 0.0], noise, **options).reach == pytest.approx(reach)


def test_where_nothing_lies_far_the_reach_is_a_few_tails():
    """8^(1 - z) for a normal z: 8 or more in half of the fits, below 1 in .023 of them.

    A tenth of 200 fits more is 4 deviations of the first, and 9 of the second.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)).clip(-3, 3), rng.normal(size=300)
    options = {"summary": columns(2, 4.0), "standard": identity(2, tail=4.0)}
    fits = [reached(X, y, [0.5, 0.5, 0], GaussianNoise(30.0), s, **options) for s in range(200)]
    reaches = np.array([fit.reach for fit in fits])
    assert np.mean(reaches > 8) < 0.1
    assert np.mean(reaches >= 8) == pytest.approx(0.5, abs=0.14)
    assert np.mean(reaches < 1) < 0.1
    assert reaches.min() >= 0.5
    assert not any(fit.overshoots for fit in fits)


def test_features_without_tails_are_rarely_clipped():
    """One fit in six had twice the error, because clipping at half the range seemed to gain.

    That chance is now .023. More than one of 20 such fits happens once in 13 times, and more than
    4 happen once in 12,000 times.
    """
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.random((12_000, 5))
        y = X @ [1.0, -2.0, 0.0, 0.5, 3.0] + 0.2 * rng.normal(size=12_000)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed)
        error = y[5_000:] - model.fit(X[:5_000], y[:5_000]).predict(X[5_000:])
        errors.append(float(np.sqrt(np.mean(error**2))))
    assert sum(error > 0.22 for error in errors) <= 4


def test_without_noise_what_is_not_known_is_decided_by_the_rows():
    X, y, free = np.ones((4, 1)), np.zeros(4), Budget(np.inf, 0.0)
    options = {"summary": columns(1, 4.0), "standard": identity(1, tail=4.0), "budget": free}
    assert reached(X, y, [1.0, 0.0], GaussianNoise(0.0), **options).reach == 8.0
    assert reached(X, y, [1e6, 0.0], GaussianNoise(0.0), **options).reach == 0.5


def test_a_fit_says_that_it_overshoots():
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    y = 1.5 * x + rng.normal(size=20_000)
    model = DPLinearRegression(epsilon=2.0, noise="simulated", random_state=0)
    model.fit(np.exp(1.5 * x)[:, None], y)
    assert model.report_["reach"] == 0.5
    assert OVERSHOOTS in model.privacy_.notes
    low, high = model.target_range_
    assert high - low < 40, "the tail of the target, and not a hundred of them"
