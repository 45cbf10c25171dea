"""A model is kept if the records gain from it, and if none of them loses too much."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.calibration import calibrated
from privtail.default.acceptance import HIDDEN, AcceptanceTest, Verdict
from privtail.losses import LogisticLoss, MultinomialLoss, SquaredLoss, WeightedLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.problem import Problem


def better(X, y, w, multiplier, seed=0):
    """Whether slopes ``w`` are kept rather than the constant 0."""
    curator = Curator(X, y, budget=Budget(1.0, 1e-6), noise="simulated", random_state=seed)
    compared = AcceptanceTest()
    factor = calibrated(curator, lambda m: compared.plan(m * multiplier, curator.problem))
    w = np.atleast_2d(w).T
    return compared.run(curator, SquaredLoss(), w, 0 * w, 1.0, factor * multiplier).verdict.keeps


def test_a_gain_beyond_the_noise_is_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 1))
    y = X[:, 0] + rng.normal(size=len(X))
    assert better(X, y, [1.0], 1.0)
    assert not better(X, y, [-1.0], 1.0)
    assert not better(X, y, [0.0], 1.0)


def test_many_small_gains_do_not_make_up_for_a_few_enormous_losses():
    """Clamped to a typical loss the model gains; where its tenth is 100 it loses 5,000 each."""
    x = np.where(np.arange(10_000) % 10 == 0, 100.0, 1.0)
    y = np.where(x == 1.0, 1.0, 0.0)
    assert not better(x[:, None], y, [1.0], 1.0)
    assert better(x[x == 1, None], y[x == 1], [1.0], 1.0)


def test_what_squares_gain_of_few_records_counts():
    """Nine of ten lose .7 each, which is clamped to .5; the tenth gains 5,000."""
    x = np.where(np.arange(10_000) % 10 == 0, 100.0, 1.0)
    y = np.where(x == 1.0, -0.2, 100.0)
    assert better(x[:, None], y, [1.0], 1.0)
    assert not better(x[x == 1, None], y[x == 1], [1.0], 1.0)


def test_noise_that_hides_everything_keeps_nothing():
    """Else one seed in forty would keep any model at all."""
    x = np.ones((20, 1))
    kept = [better(x, 10 * x[:, 0], [10.0], 1.0, seed) for seed in range(80)]
    assert HIDDEN < 1
    assert not any(kept)


def test_a_gain_that_is_likely_is_enough_if_it_shows_twice():
    """Of 1.5 deviations .64 are kept, of none .08 (above 2 alone: .31 and .02).

    That of 200 fits so many less, or more, are kept happens once in 10,000.
    """
    x, compared, multiplier = np.ones((400, 1)), AcceptanceTest(), 30.0
    likely, none = (
        [_likely(x, compared, multiplier, deviations, seed) for seed in range(200)]
        for deviations in (1.5, 0.0)
    )
    assert np.mean([v.keeps for v in likely]) > 0.5
    assert np.mean([v.keeps for v in none]) < 0.17
    assert Verdict.UNSURE in likely


def _likely(x, compared, multiplier, deviations, seed):
    """Of slopes that gain so many deviations: of its clamp, w gains 1 - (1 - w)^2 of a target 1."""
    curator = Curator(
        x, x[:, 0], budget=Budget(1_000.0, 1e-6), noise="simulated", random_state=seed
    )
    calibrated(curator, lambda m: compared.plan(multiplier, curator.problem))
    w = np.array([[1 - np.sqrt(1 - deviations * multiplier / len(x))]])
    return compared.run(curator, SquaredLoss(), w, 0 * w, 1.0, multiplier).verdict


def verdict(sign, share, multiplier, *, seed=0, weighted=False, outputs=1):
    """Of slopes that are ``sign`` times right, where so large a ``share`` has label 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=400)
    y = (x > np.quantile(x, 1 - share)).astype(float)
    curator = Curator(
        x[:, None], y, budget=Budget(1_000.0, 1e-6), noise="simulated", random_state=seed,
        intercept=True, outputs=outputs, classes=tuple(range(max(2, outputs))),
    )  # fmt: skip
    compared = AcceptanceTest(targets="class")
    calibrated(curator, lambda m: compared.plan(multiplier, curator.problem))
    loss = LogisticLoss() if outputs == 1 else MultinomialLoss(classes=outputs)
    loss = WeightedLoss(loss=loss, weights=(1.0, 1.0)) if weighted else loss
    constant = np.zeros((2, outputs))
    constant[1, -1] = np.log(share / (1 - share))
    w = constant.copy()
    w[0, -1] = 2 * sign
    return compared.run(curator, loss, w, constant, 1.0, multiplier).verdict


@pytest.mark.parametrize("outputs", [1, 2])
def test_labels_that_are_a_coin_have_nothing_to_spoil(outputs):
    """With noise of .6 in a gain of .5: few are sure, nearly all are kept.

    That right slopes are refused takes two gains that noise makes 3 deviations smaller: once in
    10,000.
    """
    seeds = range(40)
    right = [verdict(1.0, 0.5, 250.0, seed=s, outputs=outputs) for s in seeds]
    wrong = [verdict(-1.0, 0.5, 8.0, seed=s, outputs=outputs) for s in seeds]
    assert all(v.keeps for v in right)
    assert sum(v is Verdict.UNSURE for v in right) > 5
    assert not any(v.keeps for v in wrong)


def test_the_more_one_label_leads_the_surer_a_gain_must_be():
    """Slopes of no use are kept with even labels, and with one in four seldom, as with weights."""
    kept = [
        np.mean([verdict(0.0, share, 60.0, seed=s).keeps for s in range(60)])
        for share in (0.5, 0.55, 0.75)
    ]
    assert kept[0] > 0.9 > kept[1] > kept[2]
    assert kept[2] < 0.35
    weighted = [verdict(0.0, 0.5, 60.0, seed=s, weighted=True).keeps for s in range(60)]
    assert np.mean(weighted) < 0.15


@pytest.mark.parametrize("targets", ["real", "binary", "class", "count"])
def test_what_it_releases_is_what_it_planned(targets):
    problem = Problem(n=1_000, d=2, outputs=3 if targets == "class" else 1, intercept=True)
    (questions,) = [
        [event.question for event in r.events]
        for r in AcceptanceTest(targets=targets).plan(5, problem)
    ]
    assert questions == 2 * ["improvement"]
