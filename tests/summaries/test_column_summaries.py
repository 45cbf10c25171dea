"""Private centres and scales: what a histogram over powers of two can say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.calibration import calibrated
from privtail.mean import private_mean
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.histograms import POWERS, usable_rows
from privtail.summaries.prior import described
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.problem import Problem

EDGES = POWERS.edges


def describe(X, y=None, *, epsilon=1.0, target=False, seed=0):
    curator = Curator(X, y, budget=Budget(epsilon, 1e-6), noise="simulated", random_state=seed)
    scales = ColumnSummaries(target=target)
    multiplier = calibrated(curator, lambda m: scales.plan(m, curator.problem))
    return scales.run(curator, multiplier)


def test_the_edges_are_public_and_symmetric():
    assert len(EDGES) == 258
    assert np.array_equal(EDGES, -EDGES[::-1])
    assert (EDGES[0], EDGES[-1]) == (-(2.0**64), 2.0**64)


@pytest.mark.parametrize("epsilon", [0.3, 3.0, math.inf])
def test_centres_and_scales_are_right_within_a_cell(epsilon):
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [rng.normal(0, 1, 20_000), rng.normal(50, 5, 20_000), rng.lognormal(0, 1.5, 20_000)]
    )
    y = rng.standard_t(2.5, 20_000) * 1e-3
    found = describe(X, y, epsilon=epsilon, target=True)
    assert found.detected.all()
    everything = np.column_stack([X, y])
    medians = np.median(everything, axis=0)
    low, high = np.quantile(everything, [0.25, 0.75], axis=0)
    spreads = (high - low) / 1.349
    assert np.abs(found.centres - medians).max() < 10
    assert (np.abs(found.centres - medians) < 1.5 * spreads).all()
    assert (found.scales / spreads > 0.4).all()
    assert (found.scales / spreads < 3.5).all()
    assert (found.tails > found.scales).all()


def test_columns_do_not_see_each_other_and_units_are_powers_of_two():
    X = np.random.default_rng(2).normal(1.0, 1.0, (5_000, 1))
    one, both = describe(X, epsilon=math.inf), describe(np.hstack([X, 1e9 * X]), epsilon=math.inf)
    assert both.centres[0] == one.centres[0]
    moved = describe(2.0**20 * X, epsilon=math.inf)
    for name in ("centres", "scales", "deviations", "tails"):
        assert getattr(moved, name) == pytest.approx(2.0**20 * getattr(one, name))


def test_a_drowned_histogram_says_so():
    found = describe(np.random.default_rng(2).normal(size=(100, 3)), epsilon=0.05)
    assert not found.detected.any()
    assert np.array_equal(found.centres, np.zeros(3))
    for name in ("scales", "deviations", "tails"):
        assert (getattr(found, name) > 0).all()


@pytest.mark.parametrize("value", [0.0, -0.0, 5e-324, 1e-300, 1.0, -1.0, 3.7, 1e300, -1e308])
def test_every_constant_has_a_positive_scale(value):
    found = describe(np.full((1000, 2), value))
    beyond = not EDGES[0] < value < EDGES[-1]
    assert found.detected.tolist() == [not beyond] * 2
    for name in ("scales", "deviations", "tails"):
        assert (getattr(found, name) > 0).all()
        assert np.isfinite(getattr(found, name)).all()
    clamped = 0.0 if beyond else value
    assert (np.abs(found.centres - clamped) <= max(abs(clamped) / 2, 2.0**-64)).all()


def test_pooling_costs_one_vote_and_begins_when_noise_is_a_sixth():
    scales = ColumnSummaries()
    problem = Problem(n=1000, d=100)
    assert not scales.pooled(16.4, problem)
    assert scales.pooled(16.8, problem)
    assert not scales.pooled(1e3, Problem(n=1000, d=1))
    for multiplier, votes in ((16.4, 100), (16.8, 1)):
        (releases,) = scales.plan(multiplier, problem)
        (event,) = releases.events
        assert releases.times == 4
        assert event.std == pytest.approx(2 * multiplier * math.sqrt(votes))
        assert event.diameter == pytest.approx(math.sqrt(2 * votes) * 2.0**problem.bits)
        assert event.radius == pytest.approx(math.sqrt(votes) * 2.0**problem.bits)
        assert event.coordinates == votes * 259


@pytest.mark.parametrize(
    ("multiplier", "part", "votes"),
    [(60.0, 0.3, 10), (170.0, 0.3, 10), (230.0, 4 * 0.368**2, 10), (350.0, 0.6, 1), (1e4, 0.6, 1)],
)
def test_the_target_gets_a_histogram_of_little_noise(multiplier, part, votes):
    """More than the least part from noise n/58 in all releases on; then features share a scale."""
    scales, problem = ColumnSummaries(target=True), Problem(n=10_000, d=10)
    (releases,) = scales.plan(multiplier, problem)
    features, target = releases.events
    assert target.std == pytest.approx(2 * multiplier / math.sqrt(part), rel=1e-3)
    assert features.std == pytest.approx(2 * multiplier * math.sqrt(votes / (1 - part)), rel=1e-3)


def test_pooled_columns_share_one_scale():
    counts = np.zeros((1, 259))
    counts[0, 190:200] = 300.0
    found = described(counts, POWERS, 1.0, 3_000).shared(3)
    assert len(found.scales) == 3
    assert not found.detected.any()
    assert len(set(found.centres)) == len(set(found.scales)) == 1
    assert EDGES[190] < found.centres[0] < EDGES[200]
    assert EDGES[188] < found.scales[0] < EDGES[200]


@pytest.mark.parametrize("noise", [0.0, 1.0, 1e6, 1e300])
def test_no_noisy_histogram_raises(noise):
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.normal(0, 1, (4, 259)) * noise + rng.poisson(3, (4, 259))
        found = described(counts, POWERS, max(noise, 0.0), 1000)
        assert (found.scales > 0).all()
        assert np.isfinite(found.centres).all()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 30.0, math.inf])
@pytest.mark.parametrize("seed", range(4))
def test_a_column_that_is_mostly_one_value_has_the_scale_of_no_needle(epsilon, seed):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((3_000, 20)) < 0.92, 0.0042824, 0.0043 + rng.exponential(0.004))
    found = describe(X, epsilon=epsilon, seed=seed)
    assert (found.scales > np.std(X, axis=0) / 20).all()


def far(level, n=2_000, seed=0, **options):
    y = level + np.random.default_rng(seed).standard_t(3, n) * 20
    found = describe(np.zeros((n, 1)), y, target=True, seed=seed, **options)
    return y, float(found.centres[1]), float(found.scales[1]), bool(found.detected[1])


@pytest.mark.parametrize("level", [0.0, 1e3, -1e4, 1e5, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_the_level_of_a_far_target_is_found(level, seed):
    y, centre, scale, detected = far(level, epsilon=0.1, seed=seed)
    assert detected or level == 0
    assert abs(centre - np.median(y)) < 4 * np.std(y)
    assert scale < 8 * np.std(y)


def test_features_far_from_zero_get_a_scale_of_their_own():
    X = np.random.default_rng(0).normal([1e5, 10.0, -1e6], [1.0, 1e-3, 1e2], (20_000, 3))
    found = describe(X)
    assert np.abs((found.centres - np.median(X, axis=0)) / X.std(axis=0)).max() < 0.5
    assert found.scale_known.all()
    assert ((found.scales / X.std(axis=0) > 0.3) & (found.scales / X.std(axis=0) < 3)).all()


def test_a_run_of_cells_shows_where_no_cell_does():
    """Lognormal columns spread over many powers of two, each of them below its noise."""
    X = np.random.default_rng(0).lognormal(0, 1.5, (2_000, 1))
    found = describe(X, epsilon=0.05)
    assert found.detected.all()
    assert 0.25 < found.centres[0] < 4.0
    assert 0.25 < found.scales[0] < 8.0


def test_a_column_of_which_only_zeros_show_is_known():
    X = np.zeros((1_000, 2))
    X[:3, 1] = 1e6  # nobody may notice three records
    found = describe(X)
    assert found.only_zeros.all()
    rare = np.zeros((1_000, 1))
    rare[:200] = 1e6
    found = describe(rare, epsilon=3.0)
    assert not found.only_zeros.any()
    assert 1e5 < found.scales[0] < 1e7


@pytest.mark.parametrize(
    ("zooms", "epsilon", "least", "most"), [(0, 0.03, 0, 7), (3, 0.06, 16, 20)]
)
def test_histogram_releases_of_the_target_add_up(zooms, epsilon, least, most):
    """One release has noise n/9.6 in a cell, and the target fills many: four releases detect it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2_000, 1)), rng.lognormal(3, 2, 2_000)
    summaries, detected = ColumnSummaries(target=True, zooms=zooms), 0
    problem = Problem(n=2_000, d=1)
    for seed in range(20):
        curator = Curator(X, y, budget=Budget(epsilon, 1e-6), noise="simulated", random_state=seed)
        multiplier = calibrated(curator, lambda m: summaries.plan(m, problem))
        last = summaries.plan(multiplier, problem)[0].events[-1]
        assert 2_000 / last.std == pytest.approx(9.6, rel=0.05)
        detected += int(summaries.run(curator, multiplier).detected[-1])
    assert least <= detected <= most


def test_columns_that_do_not_differ_are_described_together():
    """Under so much noise some of 200 histograms of one law show a scale far off; none keeps it."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(10_000, 200))
    X[:, :9] *= 2.0**20
    estimate = private_mean(X, epsilon=0.5, noise="simulated", random_state=2)
    errors = np.abs(estimate.value - X.mean(axis=0)) / X.std(axis=0)
    assert errors[9:].max() < 0.5
    assert np.median(errors[:9]) < 0.5


def test_where_most_columns_differ_each_keeps_its_own_description():
    rng = np.random.default_rng(9)
    X = (1 + rng.normal(size=(10_000, 40))) * 10.0 ** rng.uniform(-6, 6, 40)
    estimate = private_mean(X, epsilon=0.5, noise="simulated", random_state=0)
    assert (np.abs(estimate.value - X.mean(axis=0)) < 0.2 * X.std(axis=0)).all()


def summarized(X, *, std, seed=0, **options):
    """What is found under noise ``std`` in a count of one release."""
    summaries, problem = ColumnSummaries(**options), Problem(n=len(X), d=X.shape[1])
    multiplier = std / math.sqrt((1 + summaries.zooms) * problem.d)
    plan = summaries.plan(multiplier, problem)
    assert plan[0].events[0].std == pytest.approx(std)
    curator = Curator(X, budget=Budget(9.0, 1e-6), noise="simulated", random_state=seed)
    curator.open(plan)
    return summaries.run(curator, multiplier)


FAR = {
    "years": lambda rng, n: np.round(rng.normal(1965, 15, n)),
    "times": lambda rng, n: rng.normal(1.7e9, 3e5, n),
    "far": lambda rng, n: rng.normal(-1e4, 1.0, n),
}


@pytest.mark.parametrize("law", FAR)
@pytest.mark.parametrize("columns", [1, 30])
def test_features_far_from_zero_are_found_under_noise(law, columns):
    """A release has noise n/12, as the target's; each of them fills one power of two."""
    rng = np.random.default_rng(3)
    X = np.column_stack([FAR[law](rng, 2_000) for _ in range(columns)])
    X *= 10.0 ** rng.uniform(-3, 3, columns)
    for seed in range(30 // columns):
        found = summarized(X, std=2_000 / 12, seed=seed, narrow=True)
        off = np.abs(found.centres - np.median(X, axis=0)) / X.std(axis=0)
        assert found.detected.all()
        assert np.mean(off > 4) < 0.1
        assert np.mean(found.scales > 10 * X.std(axis=0)) < 0.1


def test_a_mean_is_clipped_to_a_needle_and_a_feature_is_not_scaled_by_it():
    """A tenth of the records lie elsewhere, unseen: a mean loses sqrt(.1) deviations at most."""
    rng = np.random.default_rng(4)
    X = np.where(rng.random((1_000, 1)) < 0.9, 7.3, 7.0 + rng.random((1_000, 1)))
    wide, narrow = (summarized(X, std=80.0, narrow=n) for n in (False, True))
    assert wide.scales > X.std()
    assert narrow.tails < X.std() / 10
    assert np.abs(narrow.centres - X.mean()) < math.sqrt(0.1) * X.std()


def test_releases_of_features_that_need_no_refinement_add_up():
    """One release has noise n/10 in a cell of many that are filled. Four are as one with n/20."""
    X = np.random.default_rng(5).standard_t(2.5, (2_000, 1))
    tails = [
        np.median([summarized(X, std=std, zooms=zooms, seed=s).tails for s in range(20)])
        for std, zooms in ((200.0, 3), (200.0, 0), (100.0, 0))
    ]
    assert tails[0] == pytest.approx(tails[2], rel=0.2)
    assert tails[1] < 0.5 * tails[0]


def test_a_part_that_counts_is_a_part_whatever_the_noise():
    for counts, std, n in (([-40.0, -10.0], 20.0, 50), ([0.0], 30.0, 100), ([-1e9], 1.0, 100)):
        part, deviation = usable_rows(np.array(counts), std, n)
        assert 0 < part <= 1
        assert (part == 1) == (deviation == 0)
    assert usable_rows(np.array([30.0, 30.0]), 2.0, 100) == pytest.approx((0.6, 0.0283), rel=1e-2)
    assert usable_rows(np.array([96.0]), 2.0, 100) == (1.0, 0.0)
