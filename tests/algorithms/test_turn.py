"""Rows that are turned until their features go their own ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp

from privtail.algorithms import turn as turn_module
from privtail.algorithms.metric import Metric
from privtail.algorithms.turn import MOST, Turn
from privtail.linear_model import DPLinearRegression, DPLogisticRegression
from privtail.losses import MultinomialLoss, SquaredLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sampling import Everyone

D, N = 6, 4_000
FAR = MallowsMean(1e3, 1e3)
"""A mean that clips nothing here."""


def chain(d=D, correlation=0.9):
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    return correlation**apart


def features(n=N, d=D, means=0.0):
    rng = np.random.default_rng(0)
    return means + rng.normal(size=(n, d)) @ np.linalg.cholesky(chain(d)).T


def metric_of(rows, std=0.01, active=None, reach=3.0):
    active = np.ones(rows.shape[1], dtype=np.bool_) if active is None else active
    return Metric._of(rows.T @ rows / len(rows), std, active, reach)


LOUD = GaussianNoise(1e3)


def asked(X, y, *, intercept=True, outputs=1, noise=0.0, steps=1):
    """A curator with a plan of gradients, and their law."""
    curator = Curator(
        X, y, budget=Budget(math.inf, 1e-3), intercept=intercept, outputs=outputs,
        noise="simulated", random_state=0,
    )  # fmt: skip
    law = GaussianNoise(noise)
    event = law.event(curator.problem.gradient(MallowsMean(1.0, 1.0)))
    curator.open((Round(events=(event,), times=steps),))
    return curator, law


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


@pytest.mark.parametrize("means", [0.0, 2.0])
def test_turned_features_are_as_long_as_before_and_go_their_own_ways(means):
    lengths = np.logspace(-0.5, 0.5, D)
    X = features(means=means) * lengths
    curator, _ = asked(X, np.zeros(N))
    turn = Turn.of(metric_of(with_ones(X), std=1e-5), curator, LOUD)
    Z = with_ones(X) @ turn.joint.T
    assert Z[:, -1] == pytest.approx(1.0)
    assert Z[:, :D].mean(axis=0) == pytest.approx(np.zeros(D), abs=0.02)
    assert np.cov(Z[:, :D].T) == pytest.approx(np.diag(X.var(axis=0)), abs=0.02)
    assert turn.joint @ turn.inverse == pytest.approx(np.eye(D + 1), abs=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse", "no intercept", "classes", "some"])
def test_a_turned_gradient_is_the_gradient(kind):
    X, rng = features(), np.random.default_rng(1)
    X = np.where(rng.random(X.shape) < 0.3, 0.0, X) if kind == "sparse" else X
    intercept, outputs = kind != "no intercept", 3 if kind == "classes" else 1
    loss = MultinomialLoss(classes=3) if kind == "classes" else SquaredLoss()
    y = np.arange(N) % 3.0
    data = sp.csr_matrix(X) if kind == "sparse" else X
    rows = with_ones(X) if intercept else X
    active = np.ones(rows.shape[1], dtype=np.bool_)
    active[2] = kind != "some"
    curator, law = asked(data, y, intercept=intercept, outputs=outputs, steps=2)
    curator.transform(np.full(D, 2.0), None if kind == "sparse" else np.full(D, 0.3))
    rows = rows * 1.0
    rows[:, :D] = rows[:, :D] * 2.0 + (0.0 if kind == "sparse" else 0.3)
    map_ = curator.map
    turn = Turn.of(metric_of(rows, active=active), curator, LOUD)
    assert turn.joint is not None
    assert turn.shorter < 1
    w = rng.normal(size=(rows.shape[1], outputs)) / 10
    found = turn.gradient(curator, curator.everyone(), loss, w, FAR, law)
    residuals = loss.derivatives(np.ascontiguousarray(rows @ w), y)
    assert found == pytest.approx(rows.T @ residuals / N, abs=1e-4)
    assert (curator.map.scales == map_.scales).all()
    assert (curator.map.offsets == map_.offsets).all()
    assert curator.map.turn is None


@pytest.mark.parametrize("longest", [1.0, 10.0])
def test_noise_is_as_long_as_is_said(longest):
    """Of 3,000 gradients at the best slopes; a bound of six standard errors.

    Where one feature is longer the noise of one direction tells of that of another.
    """
    X = features() * np.append(np.ones(D - 1), longest)
    steps, law = 3_000, GaussianNoise(50.0)
    curator, law = asked(X[:200], np.zeros(200), noise=50.0, steps=steps)
    metric = metric_of(with_ones(X), std=0.05)
    turn, w = Turn.of(metric, curator, law), np.zeros((D + 1, 1))
    mean = MallowsMean(1.0, 2.0)
    std = law.event(curator.problem.gradient(mean)).std
    seen = [
        metric.vectors.T @ turn.gradient(curator, batch, SquaredLoss(), w, mean, law)
        for batch in curator.rounds(Everyone(), steps)
    ]
    lengths = np.std(seen, axis=0)[:, 0]
    assert lengths == pytest.approx(std * turn.gains, rel=6 / math.sqrt(2 * steps))
    slopes = np.std([metric.inverse @ metric.vectors @ g for g in seen], axis=0)[:D, 0]
    stated = metric.deviations(std * turn.gains / np.sqrt(metric.values), D) * turn.bent
    assert slopes == pytest.approx(stated, rel=6 / math.sqrt(2 * steps))
    assert longest == 1 or turn.bent != pytest.approx(np.ones(D), rel=0.2)
    walked = np.std([g / metric.values[:, None] for g in seen], axis=0)[:, 0]
    still = std / metric.values
    times = math.sqrt(metric.parts @ walked**2 / (metric.parts @ still**2))
    assert turn.spread / metric.spread == pytest.approx(times, rel=6 / math.sqrt(2 * steps))


@pytest.mark.parametrize(
    "kind", ["alike", "quiet", "one feature", "many", "nothing seen", "nothing"]
)
def test_rows_stay_as_they_are_where_that_is_as_good(kind):
    d = {"one feature": 1, "many": MOST + 1}.get(kind, D)
    X = np.random.default_rng(0).normal(size=(N, d)) if kind == "alike" else features(d=d)
    curator, _ = asked(X, np.zeros(N))
    metric = metric_of(with_ones(X))
    if kind.startswith("nothing"):
        metric = Metric.flat(np.full(d + 1, kind == "nothing seen"))
    turn = Turn.of(metric, curator, GaussianNoise(1.0) if kind == "quiet" else LOUD)
    assert turn.joint is None
    assert (turn.spread, turn.shorter) == (metric.spread, 1.0)
    assert (turn.gains == 1).all()


@pytest.mark.parametrize("std", [1e-12, 0.1, 10.0, 1e6])
def test_any_second_moments_can_be_turned(std):
    """Those that noise made negative, or of which no feature is left."""
    curator, _ = asked(features(), np.zeros(N))
    noise = np.random.default_rng(3).normal(size=(D + 1, D + 1)) * std
    for active in (np.ones(D + 1, dtype=np.bool_), np.arange(D + 1) == D, np.arange(D + 1) < 2):
        for moments in (noise + noise.T, np.zeros((D + 1, D + 1)), -np.eye(D + 1)):
            turn = Turn.of(Metric._of(moments, std, active, 3.0), curator, LOUD)
            assert np.isfinite(turn.gains).all()
            assert math.isfinite(turn.spread)
            assert math.isfinite(turn.shorter)


@pytest.mark.parametrize("make", [DPLinearRegression, DPLogisticRegression])
def test_features_that_go_together_are_told_apart(make, monkeypatch):
    """Directions of slopes are nearer to the true ones where rows are turned, means of four."""
    X, slopes = features(n=10_000), np.resize([1.0, -1.0], D)
    y = X @ slopes + np.random.default_rng(2).normal(size=len(X))
    numbers = make is DPLinearRegression
    y = y if numbers else (y > 0).astype(float)
    lengths = np.linalg.cholesky(chain()).T

    def missed():
        """Length of what predictions miss, in that of the true ones, beside the best length."""
        found = []
        for seed in range(4):
            given = {} if numbers else {"classes": [0.0, 1.0]}
            model = make(epsilon=0.5, noise="simulated", random_state=seed, **given).fit(X, y)
            told, true = lengths @ model.coef_.reshape(-1), lengths @ slopes
            found.append(1 - (told @ true) ** 2 / (told @ told) / (true @ true))
        return np.mean(found)

    turned = missed()
    monkeypatch.setattr(turn_module, "WORTH", 0.0)
    assert turned < 0.75 * missed()
