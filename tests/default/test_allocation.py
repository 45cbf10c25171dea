"""The fractions of a budget add up to it."""

from __future__ import annotations

import math

import pytest

from privtail.default.allocation import BudgetFraction
from privtail.robust_means import BoundedMean, ClampedMean, ClippedMean
from privtail.trusted.accountants import cost
from privtail.trusted.events import Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

PROBLEM = Problem(n=500, d=4)
MULTIPLIER = 12.0


def one(neighbours):
    """The Gaussian-DP parameter of one mean of noise `MULTIPLIER`."""
    event = GaussianNoise(MULTIPLIER).event(PROBLEM.means(ClippedMean(1.0)))
    return cost((Round(events=(event,)),), neighbours).mu


@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (2.5, 0.3, 0.02)])
def test_all_together_cost_what_one_release_does(weights, neighbours):
    """Of means, of histograms and second moments, and of means that have one sign."""
    means, counts, gain = BudgetFraction(MULTIPLIER, neighbours=neighbours).split(weights)
    matrices, *histograms = (share.histogram_noise() for share in counts.split([1.0, 1.0, 1.0]))
    rounds = (
        Round(events=(means.mean_noise(5).event(PROBLEM.means(ClippedMean(1.0))),), times=5),
        Round(events=(matrices.event(PROBLEM.moments(2.0)),
                      *(noise.event(PROBLEM.histogram(1, 9)) for noise in histograms))),
        Round(events=(gain.unit_interval_noise().event(PROBLEM.scores(1, BoundedMean(1.0))),)),
    )  # fmt: skip
    assert cost(rounds, neighbours).mu == pytest.approx(one(neighbours), rel=1e-9)
    parts = [cost((r,), neighbours).mu ** 2 / one(neighbours) ** 2 for r in rounds]
    for part, weight in zip(parts, weights, strict=True):
        assert part == pytest.approx(weight / sum(weights), rel=1e-9)


def test_more_releases_of_a_fraction_are_noisier():
    _, share = BudgetFraction(MULTIPLIER).split([1.0, 3.0])
    noise = share.mean_noise().multiplier
    assert noise == pytest.approx(MULTIPLIER * math.sqrt(4 / 3))
    assert share.mean_noise(4).multiplier == pytest.approx(2 * noise)
    assert share.mean_noise().event(PROBLEM.improvement(ClampedMean(1.0))).std > 0
