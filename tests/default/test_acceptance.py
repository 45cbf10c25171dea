"""Slopes of numbers, counts and amounts are kept if records gain from them."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from privtail.default.acceptance import (
    Accept,
    Improvement,
)
from privtail.errors import AccuracyWarning
from privtail.linear_model import DPPoissonRegressor
from privtail.losses import (
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
)
from privtail.trusted.budget import Budget
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import identity, staged

SIMULATED = {"noise": "simulated"}


def decided(X, y, w, multiplier, seed=0, loss=None, **before):
    """What is decided of slopes ``w`` rather than none; targets are near zero, of scale 1."""
    w = np.asarray(w, float).reshape(X.shape[1], -1)
    stage = Accept(Improvement(GaussianNoise(multiplier)))
    return staged(
        [stage], X, y, loss, intercept=False, random_state=seed, w=w, intercept_only=0 * w, **before
    ).decision  # fmt: skip


# ---------------------------------------------------------------- numbers and counts


def test_a_gain_beyond_the_noise_is_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 1))
    y = X[:, 0] + rng.normal(size=len(X))
    assert decided(X, y, [1.0], 1.0).kept
    assert decided(X, y, [1.0], 1.0).significant
    assert not decided(X, y, [-1.0], 1.0).kept
    assert not decided(X, y, [0.0], 1.0).kept


def kept_counts(slope: float) -> int:
    """In how many of 12 fits of rare counts slopes are kept."""
    kept = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40_000, 3))
        y = rng.poisson(0.1 * np.exp(slope * X[:, 0])).astype(float)
        model = DPPoissonRegressor(epsilon=1, noise="simulated", random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            kept += bool(model.fit(X, y).coef_.any())
    return kept


def test_a_weak_signal_of_rare_counts_is_detected():
    """Whole margins, clamped at two dispersions, were kept in half of these fits."""
    assert kept_counts(0.3) >= 11


def test_noise_seldom_looks_like_a_weak_signal_of_counts():
    """Without a signal a fit keeps its slopes with a chance of .1; five of 12 do with .4 %."""
    assert kept_counts(0.0) < 5


def test_many_small_gains_do_not_make_up_for_a_few_enormous_losses():
    """Clamped to a typical loss the model gains; where its tenth is 100 it loses 5,000 each."""
    x = np.where(np.arange(10_000) % 10 == 0, 100.0, 1.0)
    y = np.where(x == 1.0, 1.0, 0.0)
    assert not decided(x[:, None], y, [1.0], 1.0).kept
    assert decided(x[x == 1, None], y[x == 1], [1.0], 1.0).kept


def test_what_squares_gain_of_few_records_counts():
    """Nine of ten lose .7 each; the tenth gains 5,000, as far as it is clamped."""
    x = np.where(np.arange(10_000) % 10 == 0, 100.0, 1.0)
    y = np.where(x == 1.0, -0.2, 100.0)
    assert decided(x[:, None], y, [1.0], 1.0).kept
    assert not decided(x[x == 1, None], y[x == 1], [1.0], 1.0).kept


def test_weak_effects_are_not_lost_in_the_noise_of_the_far_gain():
    """With a far clamp that ignores the near gain, 2 of 100 fits lost effects of this size.

    Far gains are 2 on average, so one of 100 is below -2 with a chance of .3 %.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 1))
    y = 0.15 * X[:, 0] + rng.normal(size=len(X))
    found = [decided(X, y, [0.15], 1.0, seed) for seed in range(100)]
    assert all(one.kept and one.significant for one in found)
    assert np.mean([one.gains[1] for one in found]) > 1.5


def test_noise_that_hides_everything_is_no_proof():
    """Of 200 looks at slopes of no use where noise is 1.5 of a clamp.

    Significant are .044, likely too .07: so many more happen once in 10,000.
    """
    x = np.ones((20, 1))
    found = [decided(x, 0 * x[:, 0], [0.0], 30.0, seed) for seed in range(200)]
    assert np.mean([d.significant for d in found]) < 0.12
    assert np.mean([d.kept for d in found]) < 0.2


def test_a_gain_that_is_likely_is_enough_if_it_shows_twice():
    """Of 1.5 deviations most are kept, of none few; that of 200 so many more: once in 10,000."""
    x, multiplier = np.ones((400, 1)), 30.0

    def likely(deviations, seed):
        """Of its clamp, w gains 1 - (1 - w)^2 of a target 1."""
        w = [1 - math.sqrt(1 - deviations * multiplier / len(x))]
        return decided(x, x[:, 0], w, multiplier, seed)

    some, none = ([likely(dev, seed) for seed in range(200)] for dev in (1.5, 0.0))
    assert np.mean([d.kept for d in some]) > 0.5
    assert np.mean([d.kept for d in none]) < 0.2
    assert any(d.kept and not d.significant for d in some)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("loss", [SquaredLoss(), QuantileLoss(quantile=0.9)])
def test_units_of_the_target_change_no_decision(unit, loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 1))
    y = X[:, 0] + rng.normal(size=500)
    found = [
        decided(X, u * y, [u], 20.0, loss=loss, standard=identity(1, scale=u, deviation=u))
        for u in (1.0, unit)
    ]
    assert found[0].kept == found[1].kept
    assert found[1].gains == pytest.approx(found[0].gains, rel=1e-3)


def test_counts_are_judged_in_nats_whatever_their_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 1))
    for mean in (0.2, 50.0):
        y = rng.poisson(mean * np.exp(0.8 * X[:, 0]))
        constant, w = np.array([[0.0], [math.log(y.mean())]]), np.array([[0.8], [math.log(mean)]])
        decision = [
            staged([Accept(Improvement(GaussianNoise(20.0)))], X, y.astype(float),
                   PoissonLoss(mean=y.mean()), w=model, intercept_only=constant).decision
            for model in (w, w * [[-1], [1]])
        ]  # fmt: skip
        assert [d.kept for d in decision] == [True, False]


def test_without_noise_the_slopes_stay():
    X, y = np.ones((4, 1)), np.zeros(4)
    assert decided(X, y, [1e6], 0.0, budget=Budget(math.inf, 0.0)).kept
