"""The stated noise of slopes is that which is seen, and no smaller."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtr

from benchmarks.slopes import drawn
from privtail.default.fitted import FittedSlopes
from privtail.default.labels import CountLabels
from privtail.default.steps import Descend, MeasureResiduals, MeasureSpread, Precondition
from privtail.inference import SlopeErrors
from privtail.inference.likely_slopes import left_of_rows, likely_part
from privtail.inference.slope_errors import noise_deviations, sampling_deviations
from privtail.losses import AbsoluteLoss, HuberLoss, LogisticLoss, PoissonLoss, SquaredLoss
from privtail.summaries.standardization import Standardization, Target
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


def handed(fit, *, kept=True, selected=False):
    """What this fit hands over of its slopes."""
    return FittedSlopes.of(fit, kept=kept, selected=selected)


@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(threshold=0.5)])
@pytest.mark.parametrize("moments", [1e-3, 10.0])
def test_stated_noise_is_that_of_the_fits(loss, moments):
    """Features of three curvatures, one of them small; noise of moments makes it a little wider."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(4_000, 3)) * [1.4, 1.0, 0.5], np.array([0.6, -0.4, 0.2])
    y = X @ w + 0.5 * rng.normal(size=4_000)
    fits = [staged(stages(moments, 60.0), X, y, loss, random_state=seed) for seed in range(60)]
    found = np.array([fit.w[:3, 0] for fit in fits])
    stated = np.sqrt(np.mean([noise_deviations(handed(fit)) ** 2 for fit in fits], axis=0))
    ratio = stated / found.std(axis=0)
    assert (ratio > 0.85).all(), ratio
    assert (ratio < 1.6).all(), ratio
    assert found.mean(axis=0) == pytest.approx(w, abs=0.1)


def test_unsure_curvatures_are_averaged_over_and_no_bound_is_taken():
    """Features of one curvature, of which an entry of the moments shows 1 with noise of .16."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(4_000, 3)), np.array([0.6, -0.4, 0.2])
    y = X @ w + 0.5 * rng.normal(size=4_000)
    fits = [staged(stages(40.0, 60.0), X, y, random_state=seed) for seed in range(60)]
    found = np.array([fit.w[:3, 0] for fit in fits])
    stated = np.sqrt(np.mean([noise_deviations(handed(fit)) ** 2 for fit in fits], axis=0))
    ratio = stated / found.std(axis=0)
    assert (ratio > 1).all(), ratio
    assert (ratio < 1.4).all(), ratio


def test_where_features_are_alike_no_curvature_is_counted_on():
    """Noise alone splits their slopes, and the moments show no more of the direction than that."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3))
    X[:, 2] = X[:, 1]
    y = X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=4_000)
    fits = [staged(stages(10.0, 60.0), X, y, random_state=seed) for seed in range(60)]
    found = np.array([fit.w[1:3, 0] for fit in fits])
    stated = np.array([noise_deviations(handed(fit))[1:3] for fit in fits])
    held = np.abs(found - found.mean(axis=0)) < 1.96 * stated
    assert held.mean() > 0.85, held.mean()


def test_slopes_that_are_zero_have_no_noise_and_unused_ones_no_bound():
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    fit = staged(stages(1e-3, 20.0), X, X[:, 0])
    errors = SlopeErrors.of(handed(fit), 3)
    assert (errors.noise > 0).all()
    assert (errors.sampling > 0).all()
    assert not SlopeErrors.of(handed(fit, kept=False), 3).noise.any()
    fit.standard = fit.standard.only(np.array([True, False, True]))
    assert np.isinf(SlopeErrors.of(handed(fit), 3).noise).tolist() == [False, True, False]
    assert not SlopeErrors.of(handed(fit, kept=False), 3).noise.any()
    chosen = SlopeErrors.of(handed(fit, selected=True), 3)
    assert np.isnan(chosen.noise).tolist() == [False, True, False]
    assert np.isnan(chosen.sampling).all(), "selection is not in the formula"
    fit.standard = fit.standard.only(np.zeros(3, dtype=bool))
    assert np.isinf(SlopeErrors.of(handed(fit, kept=False), 3).noise).all()


def test_nothing_is_known_of_slopes_that_no_fit_handed_over():
    errors = SlopeErrors.of(None, 2)
    assert np.isnan([errors.noise, errors.sampling]).all()


def unequal(X, rng):
    """Residuals that spread more where the first feature is far from zero."""
    return np.abs(X[:, 0]) * rng.normal(size=len(X))


def rare(X, rng):
    """Residuals that are four times as long in the rows of an indicator of 5 %."""
    X[:, 0] = rng.random(len(X)) < 0.05
    return (1 + 3 * X[:, 0]) * rng.normal(size=len(X))


@pytest.mark.parametrize("residuals", [unequal, rare])
@pytest.mark.parametrize("loss", [SquaredLoss(), HuberLoss(threshold=0.72)])
def test_moments_of_gradients_allow_for_residuals_of_unequal_spread(loss, residuals):
    """Without them the error of the first slope is stated as less than .6 of what it is."""
    rng, stated, plain, found = np.random.default_rng(0), [], [], []
    for seed in range(60):
        X = rng.normal(size=(2_000, 3))
        y = X @ [0.6, -0.4, 0.2] + residuals(X, rng)
        steps = [*stages(1e-3, 1e-3), MeasureSpread(LITTLE)]
        fit = handed(staged(steps, X, y, loss, random_state=seed))
        stated.append(sampling_deviations(fit))
        plain.append(sampling_deviations(replace(fit, gradient_moments=None)))
        found.append(fit.w[:3, 0])
    ratio, before = np.median([stated, plain], axis=1) / np.std(found, axis=0)
    assert (ratio > 0.8).all(), ratio
    assert (ratio < 1.3).all(), ratio
    assert before[0] < 0.6, before


@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.72, 1.0])
def test_residuals_at_the_threshold_of_the_loss_count_as_clipped(threshold):
    """Wherever it lies in its cell of the histogram; errors were stated as .4 of what they are."""
    rng, stated, found = np.random.default_rng(0), [], []
    for _ in range(60):
        X = rng.normal(size=(2_000, 3))
        y = X @ [0.6, -0.4, 0.2] + rng.normal(size=2_000)
        fit = handed(staged(stages(1e-3, 1e-3), X, y, HuberLoss(threshold=threshold)))
        stated.append(sampling_deviations(fit))
        found.append(fit.w[:3, 0])
    ratio = np.median(stated, axis=0) / np.std(found, axis=0)
    assert (ratio > 0.8).all(), ratio
    assert (ratio < 1.7).all(), ratio


def test_moments_of_gradients_change_nothing_where_residuals_are_equally_spread():
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, (20_000, 3))
    y = X @ [0.6, -0.4, 0.2] + rng.standard_t(3, 20_000)
    for noise, most in ((1e-3, 1.1), (300.0, 1.5)):
        steps = [*stages(1e-3, 1e-3), MeasureSpread(GaussianNoise(noise))]
        fit = handed(staged(steps, X, y, standard=Standardization(
            np.full(3, 0.7), np.zeros(3), Target()
        )))  # fmt: skip
        plain = sampling_deviations(replace(fit, gradient_moments=None))
        ratio = sampling_deviations(fit) / plain
        assert (ratio >= 1).all()
        assert (ratio < most).all(), (noise, ratio)


@pytest.mark.parametrize(("relative", "most"), [(0.3, 3.0), (1e-3, 20.0)])
def test_noise_above_what_clipping_allows_widens_no_error_without_end(relative, most):
    """Residuals were taken for 256 times as long, and errors for up to 13 times as large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    y = X @ [0.6, -0.4, 0.2] + rng.normal(size=2_000)
    steps = [*stages(1e-3, 1e-3), MeasureSpread(LITTLE)]
    fit = handed(staged(steps, X, y, HuberLoss(threshold=0.72)))
    moments, _ = fit.gradient_moments
    lifted = replace(fit, gradient_moments=(4 * moments, relative * moments[0, 0]))
    plain = sampling_deviations(replace(fit, gradient_moments=None))
    ratio = sampling_deviations(lifted) / plain
    assert (ratio > most / 2).all(), ratio
    assert (ratio < most).all(), ratio


@pytest.mark.parametrize("r", [1, 4, 50])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_normal_rows_are_shrunk_by_as_much_as_drawn_ones(r, part):
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(40_000, r)), axis=1)
    seen = np.mean(lengths * np.minimum(lengths, part * math.sqrt(r))) / r
    assert left_of_rows(r, part) == pytest.approx(seen, rel=0.02)


def test_noise_of_moments_is_no_certain_curvature():
    """The same fit, with second moments that are known less well: its stated noise is larger."""
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    fit = staged(stages(1e-3, 20.0), X, X[:, 0])
    sure = noise_deviations(handed(fit))
    fit.preconditioner = replace(fit.preconditioner, std=0.5)
    assert (noise_deviations(handed(fit)) > 1.1 * sure).all()


def test_at_a_kink_and_without_moments_no_curvature_is_counted_on():
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    made = [
        staged(stages(1e-3, 20.0), X, X[:, 0], AbsoluteLoss()),
        staged([Precondition(None, 1.0), *stages(1e-3, 20.0)[1:]], X, X[:, 0]),
    ]
    for fit in made:
        before = noise_deviations(handed(fit))
        fit.runs = tuple(replace(run, contraction=0.0) for run in fit.runs)
        assert noise_deviations(handed(fit)) == pytest.approx(before)


def test_margins_of_an_unsure_length_are_slopes_that_are_unsure():
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    fit = staged(stages(1e-3, 20.0), X, X[:, 0])
    own, slopes = noise_deviations(handed(fit)), np.abs(fit.w[:3, 0])
    fit.w, fit.decision = (
        0.5 * fit.w,
        replace(fit.decision, margin_factor=0.5, margin_factor_std=0.1),
    )
    fit.shrinkage = np.full(3, 0.2)
    off = 0.5**2 + 0.1**2
    assert noise_deviations(handed(fit)) == pytest.approx(
        np.sqrt(own**2 + 0.2**2 + off * slopes**2)
    )


@pytest.mark.parametrize("z", [1.645, 1.96, 2.576])
def test_a_bias_beside_noise_costs_no_coverage(z):
    biases = np.linspace(0, 6, 601)
    ends = z * np.hypot(1, biases)
    held = ndtr(ends - biases) - ndtr(-ends - biases)
    assert (held > 2 * ndtr(z) - 1 - 1e-3).all()
    assert (ndtr(z - biases) - ndtr(-z - biases) < 0.5).any()


@pytest.mark.parametrize("law", ["normal", "t(4)"])
@pytest.mark.parametrize("centre", [0.0, -2.5])
@pytest.mark.parametrize("size", [1.0, 3.0])
def test_true_slopes_of_labels_follow_from_fitted_ones(law, centre, size):
    """Fitted slopes of clipped labels are too long, and few steps leave large ones too short."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) if law == "normal" else rng.standard_t(4, (20_000, 4))
    X /= math.sqrt(1.0 if law == "normal" else 2.0)
    w = size * np.array([1.0, -1.0, 0.5, 0.0])
    y = (rng.random(20_000) < expit(X @ w + centre)).astype(float)
    steps = [
        CountLabels(LITTLE), Precondition(LITTLE, 0.5), Descend(LITTLE, 5, 0.5),
        MeasureResiduals(LITTLE), Descend(LITTLE, 20, 0.5),
    ]  # fmt: skip
    fit = staged(steps, X, y, LogisticLoss())
    found = fit.w[:4, 0]
    part, unsure = likely_part(handed(fit), np.zeros(5))
    assert part == pytest.approx(float(found @ w / (found @ found)), rel=0.12)
    assert unsure == 0


def test_where_all_long_margins_end_alike_their_length_is_unsure_and_then_not_known():
    """Few steps lead no farther: noise in a long end leaves its beginning open, in a short not."""
    rng = np.random.default_rng(0)
    X, some = rng.normal(size=(20_000, 2)), np.full(3, 0.15)
    steps = [
        CountLabels(LITTLE), Precondition(LITTLE, 0.5), Descend(LITTLE, 5, 0.5),
        MeasureResiduals(LITTLE), Descend(LITTLE, 20, 0.5),
    ]  # fmt: skip
    relative, with_more = [], []
    for length in (3.0, 9.0):
        y = (rng.random(20_000) < expit(length * X[:, 0])).astype(float)
        fit = handed(staged(steps, X, y, LogisticLoss()))
        part, unsure = likely_part(fit, some)
        relative.append(unsure / part)
        with_more.append(likely_part(fit, 4 * some)[0])
    assert relative[1] > 3 * relative[0], relative
    assert np.isnan(with_more).tolist() == [False, True]


def test_true_slopes_of_counts_follow_from_those_of_cut_predictions():
    """A Poisson regression whose predictions are cut: its slopes are too long."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 2))
    w = np.array([0.6, -0.4])
    y, top = rng.poisson(np.exp(X @ w)), 1.0
    rows, found = np.column_stack([X, np.ones(len(X))]), np.zeros(3)
    for _ in range(200):
        found -= rows.T @ (np.exp(np.minimum(rows @ found, top)) - y) / len(X) / math.exp(top)
    assert np.linalg.norm(found[:2]) > 1.2 * np.linalg.norm(w)
    fit = staged(stages(1e-3, 1e-3), X, y, PoissonLoss(mean=1.0, highest=top))
    fit.w, fit.margin_range = found[:, None], (-30.0, top)
    part, _ = likely_part(handed(fit), np.zeros(3))
    assert part == pytest.approx(np.linalg.norm(w) / np.linalg.norm(found[:2]), rel=0.03)


def test_slopes_that_no_truth_leads_to_have_no_sampling_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 3))
    y = (rng.random(4_000) < expit(X[:, 0])).astype(float)
    steps = [CountLabels(LITTLE), Precondition(LITTLE, 0.5), Descend(LITTLE, 5, 0.5)]
    fit = staged(steps, X, y, LogisticLoss())
    assert np.isfinite(sampling_deviations(handed(fit))).all()
    measured = fit.decision
    fit.decision = replace(measured, significant=False)
    assert np.isnan(sampling_deviations(handed(fit))).all()
    fit.decision, fit.w = measured, 50 * fit.w
    assert np.isnan(sampling_deviations(handed(fit))).all()
    assert np.isfinite(noise_deviations(handed(fit))).all()


@pytest.mark.parametrize(
    ("law", "n", "epsilon"),
    [("labels", 2_000, 5.0), ("rare labels", 20_000, 1.0), ("counts", 2_000, 5.0)],
)
def test_intervals_of_labels_and_counts_hold_and_are_not_wide(law, n, epsilon):
    held, errors, halves = [], [], []
    for seed in range(20):
        X, y, w, kind = drawn(law, n, np.random.default_rng(seed))
        model = kind(epsilon=epsilon, noise="simulated", random_state=seed).fit(X, y)
        low, high = model.conf_int().reshape(-1, 2).T
        held.append((low <= w) & (w <= high))
        errors.append(np.ravel(model.coef_) - w)
        halves.append((high - low) / 2 / 1.96)
    assert np.mean(held) > 0.92
    assert np.median(halves) < 2.2 * math.sqrt(np.mean(np.square(errors)))
