"""Curvature that second moments show, and what noise hides of it."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.default.preconditioner import Preconditioner
from privtail.second_moments import likely_curvatures, symmetric


def of(moments, std, active=None, row_length=3.0, part=1.0):
    """The preconditioner where typical rows are shrunk to ``part`` of their length."""
    moments = np.asarray(moments, float)
    active = np.ones(len(moments), dtype=np.bool_) if active is None else active
    return Preconditioner.from_moments(moments, std, active, row_length, clear_ratio=1 / part)


def noisy(spectrum, std, seed):
    d = len(spectrum)
    rng = np.random.default_rng(seed)
    return np.diag(spectrum) + symmetric(rng.normal(0, std, d * (d + 1) // 2), d)


def test_a_released_triangle_is_a_symmetric_matrix():
    matrix = np.array([[2.0, 3.0], [3.0, 5.0]])
    assert symmetric(np.array([2.0, 3 * np.sqrt(2), 5.0]), 2) == pytest.approx(matrix)


def test_without_noise_it_is_the_second_moments():
    moments = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 9.0]])
    active = np.array([True, True, False])
    metric = of(moments, 0.0, active)
    assert metric.matrix[:2, :2] == pytest.approx(moments[:2, :2])
    assert metric.inverse[:2, :2] == pytest.approx(np.linalg.inv(moments[:2, :2]))
    assert not metric.inverse[2].any()
    assert metric.active.tolist() == active.tolist()
    slopes = np.array([[1.0], [-2.0], [0.0]])
    length = float(np.sum(metric.principal_coordinates(slopes) ** 2))
    assert length == pytest.approx(float(slopes[:2, 0] @ moments[:2, :2] @ slopes[:2, 0]))


def test_the_intercept_beside_slopes_is_the_best_one():
    moments = np.array([[2.0, 0.6], [0.6, 1.0]])
    joint = of(moments, 0.0).with_intercept(np.array([[1.0]]))
    assert joint[:, 0] == pytest.approx([1.0, -0.6])


def test_no_directions_are_told_apart_without_second_moments():
    """Of 600 features 570 are constant: they count for nothing, and are no noise."""
    active = np.arange(600) < 30
    metric = Preconditioner.without_moments(active)
    deviations = metric.slope_stds(np.ones(600), 600)
    assert (deviations[:30] > 0).all()
    assert not deviations[30:].any()
    assert metric.row_length == pytest.approx(np.sqrt(30))


def test_noise_walks_less_far_where_features_go_together():
    """As far as it does in directions as long as they are: here four short ones and a long one."""
    true = np.array([4.6, 0.1, 0.1, 0.1, 0.1])
    alike, apart = of(np.eye(5), 0.4), of(np.diag(true), 0.4)
    moved = np.sqrt(np.sum(true / apart.curvatures**2))
    assert apart.noise_gain == pytest.approx(moved, rel=0.1)
    assert apart.noise_gain < 0.8 * alike.noise_gain
    assert alike.noise_gain == pytest.approx(np.sqrt(np.sum(1 / alike.curvatures**2)))
    assert (
        of(-np.eye(5), 0.4).noise_gain > alike.noise_gain
    )  # nothing was seen: all are taken for 1


def test_likely_curvatures_are_nearer_than_those_that_were_seen():
    """Twenty directions, half of them of no curvature, under noise of a spectral norm of 1."""
    true, std = np.repeat([0.0, 2.0], 10), 1 / np.sqrt(40)
    raw, cleaned = [], []
    for seed in range(50):
        seen, vectors = np.linalg.eigh(noisy(true, std, seed))
        there = np.einsum("jk,j,jk->k", vectors, true, vectors)
        raw.append(seen - there)
        cleaned.append(likely_curvatures(seen, std) - there)
    assert np.std(cleaned) < 0.6 * np.std(raw)
    assert np.array_equal(likely_curvatures(true, 0.0), true)


def test_steps_do_not_follow_noise():
    """Ten directions alike: what noise shows of them differs two or three times as much."""
    moments = noisy(np.ones(10), 0.07, 0)
    metric = of(moments, 0.1, row_length=3.2)
    assert metric.noise_norm < 1
    assert np.ptp(metric.curvatures) < 0.5 * np.ptp(np.linalg.eigvalsh(moments))


@pytest.mark.parametrize("spectrum", [np.ones(20), np.repeat([6.0, 0.3], [3, 17])])
def test_curvature_is_told_to_the_noise_of_an_entry(spectrum):
    """What is seen of the first and last directions is off by more than twice as much."""
    missed, seeming = [], []
    for seed in range(50):
        moments = noisy(spectrum, 0.1, seed)
        metric = of(moments, 0.1, row_length=5.0)
        directions = metric.directions
        there = np.sum(directions * (spectrum[:, None] * directions), axis=0)
        missed.append(metric.expected_contraction * metric.curvatures - there)
        seeming.append(np.linalg.eigvalsh(moments)[::-1] - there)
    assert np.std(missed) < 0.12
    assert np.std(seeming) > 0.2


def hidden(spectrum, seed, part=1.0):
    """Of moments of which noise hides 14 in any direction; rows have length 10."""
    return of(noisy(spectrum, 1.0, seed), 1.0, row_length=10.0, part=part)


def test_curvature_that_noise_does_not_hide_shortens_steps():
    """No step may be more than twice as long as the curvature along it allows."""
    spectrum = np.append(21.0, np.ones(99))
    for seed in range(10):
        metric = hidden(spectrum, seed)
        assert metric.matrix[0, 0] > spectrum[0] / 2
        assert np.mean(metric.curvatures[1:] == 10.0) > 0.95, "noise alone seldom shows a direction"


def test_rows_that_steps_shrink_have_less_curvature():
    assert (hidden(np.append(21.0, np.ones(99)), 0, 0.5).curvatures == 10.0).all()
    assert hidden(np.append(42.0, np.ones(99)), 0, 0.5).curvatures[0] > 21


def test_noise_is_taken_for_no_curvature_where_there_is_none():
    for seed in range(10):
        assert np.mean(hidden(np.ones(100), seed).curvatures == 10.0) > 0.95
