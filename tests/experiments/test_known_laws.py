"""Data with known moments: that they are what is said, against integrals and large samples."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from experiments.data import absolute, aggregate, huber, means, sparse
from experiments.data.tails import Lognormal, Pareto, StudentT, barely

LAWS = {
    Pareto(2.5): stats.pareto(2.5),
    StudentT(3.0): stats.t(3.0),
    Lognormal(0.7): stats.lognorm(0.7),
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 2.0])
def test_moments_are_integrals_of_the_density(law, order):
    density = LAWS[law].pdf
    low, high = LAWS[law].support()
    pieces = [low, 0.0, 1.0, 20.0, high] if low < 1 else [low, 20.0, high]
    found = sum(
        integrate.quad(lambda x: abs(x) ** order * density(x), a, b, limit=200)[0]
        for a, b in pairwise(pieces)
        if a < b
    )
    assert law.moment(order) == pytest.approx(found, rel=1e-4)
    assert law.mean == pytest.approx(LAWS[law].mean(), abs=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_samples_follow_the_law(law):
    """Kolmogorov and Smirnov; false alarm 1e-6, and a law that is a tenth wider is rejected."""
    drawn = law.draw(np.random.default_rng(0), (20_000,))
    assert stats.kstest(drawn, LAWS[law].cdf).pvalue > 1e-6
    assert stats.kstest(1.1 * drawn, LAWS[law].cdf).pvalue < 1e-6


def test_the_moment_of_shifted_columns_is_a_bound():
    task = means.SHIFTED_STUDENT.draw(np.random.default_rng(4), {"n": 100_000, "d": 1})
    assert np.mean(np.abs(task.X) ** 1.5) < task.truth["u"]
    assert np.median(task.X) == pytest.approx(1.0, abs=0.05)
    assert task.measure(np.ones((1, 1)))["error"] == 0.0


def test_moments_end_where_they_are_said_to():
    for v in (0.25, 1.0):
        for law in (Pareto(barely(1 + v)), StudentT(barely(1 + v))):
            assert law.moment(1 + v) < math.inf
            assert law.moment(1 + v + 0.1) == math.inf


@pytest.mark.parametrize("c", [-4.0, -0.3, 0.0, 0.7, 30.0])
def test_the_excess_of_a_shift_is_an_integral(c):
    nu = absolute.ERRORS.degrees
    found = integrate.quad(lambda s: 2 * stats.t.cdf(s, nu) - 1, 0, c)[0]
    assert absolute.excess_of_shift(np.array([c]))[0] == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("law", [Pareto(2.5), StudentT(3.0), Lognormal(1.0)])
def test_stratified_levels_have_the_quantiles_of_the_law(law):
    drawn = np.abs(law.draw(np.random.default_rng(1), (200_000,)))
    level = np.quantile(absolute.stratified(law, 10_000), [0.1, 0.5, 0.9, 0.99])
    assert np.quantile(drawn, [0.1, 0.5, 0.9, 0.99]) == pytest.approx(level, rel=0.03)


@pytest.mark.parametrize("data", [absolute.NORM_LOGNORMAL, absolute.COORDINATES[2.0]])
def test_features_are_scaled_to_a_moment_of_one(data):
    """Of the norm, or of every coordinate; of the levels below .999, where samples agree."""
    task = data.draw(np.random.default_rng(2), {"n": 100_000, "d": 3})
    sizes = np.linalg.norm(task.X, axis=1) if task.truth["of"] == "norm" else np.abs(task.X[:, 0])
    law, order = data.draw.law, data.draw.order
    levels = absolute.stratified(law, 10_000)[:9_990] / law.moment(order) ** (1 / order)
    found = np.sort(sizes)[:99_900]
    assert np.mean(found**order) == pytest.approx(np.mean(levels**order), rel=0.05)


TASKS = [
    (means.PARETO[1.0], {"n": 50, "d": 2}, "error"),
    (sparse.SPARSE_PARETO[1.0], {"n": 50, "d": 8, "sparsity": 3}, "excess risk"),
    (sparse.SPARSE_COLUMNS, {"n": 50, "d": 8, "sparsity": 3}, "error"),
    (absolute.NORM[1.5], {"n": 50, "d": 2}, "excess risk"),
    (huber.HUBER[1.0], {"n": 50, "d": 2}, "excess risk"),
    (aggregate.AGGREGATE, {"records": 50, "d": 2, "noise": 1.0}, "excess risk"),
]


@pytest.mark.parametrize(("data", "setting", "metric"), TASKS, ids=lambda x: getattr(x, "name", ""))
def test_the_truth_has_no_error_and_anything_else_has(data, setting, metric):
    task = data.draw(np.random.default_rng(3), setting)
    truth = task.truth.get("w", np.full((task.d, 1), getattr(data.draw, "law", Pareto(2)).mean))
    assert task.measure(truth)[metric] == pytest.approx(0.0, abs=1e-12)
    assert task.measure(truth + 0.1)[metric] > 1e-3
