"""A model is kept if the records gain from it, and if none of them loses too much."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.algorithms.comparison import HIDDEN, Comparison
from privtail.losses import SquaredLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.problem import Problem


def better(X, y, w, multiplier, seed=0):
    """Whether slopes ``w`` are kept rather than the constant 0."""
    curator = Curator(X, y, budget=Budget(1.0, 1e-6), noise="simulated", random_state=seed)
    compared = Comparison()
    factor = curator.calibrate(lambda m: compared.plan(m * multiplier, curator.problem))
    w = np.atleast_2d(w).T
    return compared.run(curator, SquaredLoss(), w, 0 * w, 1.0, factor * multiplier).keeps


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


@pytest.mark.parametrize("targets", ["real", "binary", "class", "count"])
def test_what_it_releases_is_what_it_planned(targets):
    problem = Problem(n=1_000, d=2, outputs=3 if targets == "class" else 1, intercept=True)
    (questions,) = [
        [event.question for event in r.events] for r in Comparison(targets=targets).plan(5, problem)
    ]
    assert questions == 2 * ["improvement"]
