"""The stated noise of slopes is that which is seen, and no smaller."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from privtail.default.slope_errors import _left_of_rows, noise_deviations
from privtail.default.steps import Descend, MeasureResiduals, Precondition
from privtail.losses import AbsoluteLoss, HuberLoss, SquaredLoss
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import staged

LITTLE = GaussianNoise(1e-3)


def stages(moments, gradient):
    """A fit of two runs: ``gradient`` is the noise multiplier of their gradients."""
    steps = GaussianNoise(gradient)
    return [
        Precondition(GaussianNoise(moments), 1.0), Descend(steps, 5, 1.0),
        MeasureResiduals(LITTLE), Descend(steps, 20, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(threshold=0.5)])
@pytest.mark.parametrize("moments", [1e-3, 10.0])
def test_stated_noise_is_that_of_the_fits(loss, moments):
    """Features of three curvatures, one of them small; noise of moments makes it a little wider."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(4_000, 3)) * [1.4, 1.0, 0.5], np.array([0.6, -0.4, 0.2])
    y = X @ w + 0.5 * rng.normal(size=4_000)
    fits = [staged(stages(moments, 60.0), X, y, loss, random_state=seed) for seed in range(60)]
    found = np.array([fit.w[:3, 0] for fit in fits])
    stated = np.sqrt(np.mean([noise_deviations(fit) ** 2 for fit in fits], axis=0))
    ratio = stated / found.std(axis=0)
    assert (ratio > 0.85).all(), ratio
    assert (ratio < 1.6).all(), ratio
    assert found.mean(axis=0) == pytest.approx(w, abs=0.1)


@pytest.mark.parametrize("r", [1, 4, 50])
def test_normal_rows_are_shrunk_by_as_much_as_drawn_ones(r):
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(40_000, r)), axis=1)
    drawn = np.mean(lengths * np.minimum(lengths, math.sqrt(r))) / r
    assert _left_of_rows(r) == pytest.approx(drawn, rel=0.02)


def test_noise_of_moments_is_no_certain_curvature():
    """The same fit, with second moments that are known less well: its stated noise is larger."""
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    fit = staged(stages(1e-3, 20.0), X, X[:, 0])
    sure = noise_deviations(fit)
    fit.preconditioner = replace(fit.preconditioner, std=0.5)
    assert (noise_deviations(fit) > 1.1 * sure).all()


def test_at_a_kink_and_without_moments_no_curvature_is_counted_on():
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    made = [
        staged(stages(1e-3, 20.0), X, X[:, 0], AbsoluteLoss()),
        staged([Precondition(None, 1.0), *stages(1e-3, 20.0)[1:]], X, X[:, 0]),
    ]
    for fit in made:
        before = noise_deviations(fit)
        fit.runs = tuple(replace(run, shown=0.0) for run in fit.runs)
        assert noise_deviations(fit) == pytest.approx(before)


def test_margins_of_an_unsure_length_are_slopes_that_are_unsure():
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    fit = staged(stages(1e-3, 20.0), X, X[:, 0])
    own, slopes = noise_deviations(fit), np.abs(fit.w[:3, 0])
    fit.w, fit.decision = 0.5 * fit.w, replace(fit.decision, part=0.5, part_deviation=0.1)
    assert noise_deviations(fit) == pytest.approx(own + math.hypot(0.5, 0.1) * slopes)
