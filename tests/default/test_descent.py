"""Steps, how long they are, and what noise adds to their average."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.default import Tuning
from privtail.default.descent import Schedule, averaged_noise
from privtail.default.preconditioner import Preconditioner
from privtail.default.steps import Descend
from privtail.losses import AbsoluteLoss, LogisticLoss, SquaredLoss
from privtail.momentum import momentum_sums, noise_factors
from privtail.robust_means import MallowsMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import identity, staged

MEAN = MallowsMean(1.0, 1.0)
X, Y = np.zeros((1_000, 4)), np.zeros(1_000)


def metric(curvature=1.0, std=0.0):
    return Preconditioner.from_moments(
        curvature * np.eye(4), std, np.ones(4, dtype=np.bool_), 2.0, clear_ratio=1.0
    )


def schedule(loss=None, *, multiplier=10.0, most_walk=1e9, row_fraction=1.0, scale=1.0):
    loss = loss or SquaredLoss()
    labels = {"classes": (0, 1)} if loss.targets == "binary" else {}
    fit = staged(
        [], X, Y, loss, intercept=False, preconditioner=metric(),
        standard=identity(4, scale=scale), tuning=Tuning(max_noise_walk=most_walk), **labels,
    )  # fmt: skip
    return Descend(GaussianNoise(multiplier), 20, row_fraction).schedule(fit, 1.0)


def test_a_step_is_as_long_as_the_curvature_allows():
    """That of squares is 1 (a Newton step), of log-odds a quarter; shrunk rows have less."""
    assert schedule().step_size == pytest.approx(1.0)
    assert schedule(LogisticLoss()).step_size == pytest.approx(4.0)
    assert schedule(row_fraction=0.5).step_size == pytest.approx(2.0)


def test_noise_alone_walks_no_farther_than_it_may():
    free = schedule(multiplier=400.0)
    far = np.linalg.norm(momentum_sums(free.momentum, free.steps)) * metric().noise_gain * free.std
    for most in (0.1, 1.0):
        short = schedule(multiplier=400.0, most_walk=most)
        assert short.step_size * far == pytest.approx(min(most, free.step_size * far))
    assert schedule(multiplier=0.0, most_walk=1e-9).step_size == free.step_size


def test_at_a_kink_steps_shrink_to_nothing():
    """Steps of one length go to and fro for ever."""
    found = schedule(AbsoluteLoss(), scale=3.0)
    assert found.shrinking
    assert found.momentum == 0.0
    assert found.step_size == pytest.approx(3.0)
    assert found.step_sizes[-1] == pytest.approx(found.step_size / 20)
    assert found.skipped == 19
    assert schedule().skipped == 10
    assert np.ptp(schedule().step_sizes) == 0


@pytest.mark.parametrize(("shrinking", "momentum"), [(False, 0.5), (True, 0.0)])
def test_what_an_average_keeps_of_its_steps_is_that_of_the_steps_written_out(shrinking, momentum):
    rates = np.array([0.0, 0.2, 1.0])
    made = Schedule(MEAN, 9, 0.3, 1.0, shrinking, momentum)
    lasting, left = noise_factors(rates, made.step_sizes, made.skipped, made.momentum)

    def average(rate, start, moves):
        w = at = start
        path = []
        for move in moves:
            new = (1 - rate) * at + move
            at, w = new + momentum * (new - w), new
            path.append(w)
        return np.mean(path[made.skipped :])

    for rate, kept, noise in zip(rates, lasting, left, strict=True):
        assert kept == pytest.approx(average(rate, 1.0, np.zeros(9)))
        each = [average(rate, 0.0, move) for move in np.diag(made.step_sizes)]
        assert noise == pytest.approx(np.linalg.norm(each))


def test_noise_of_two_runs_adds_up():
    made, whole = schedule(), metric(std=0.1)
    none, still = np.zeros(4), np.zeros(4)
    once = averaged_noise(made, whole, none, still)
    twice = averaged_noise(made, whole, once, still)
    assert twice == pytest.approx(math.sqrt(2) * once)
    assert (averaged_noise(made, whole, once, np.full(4, 0.2)) < twice).all()
