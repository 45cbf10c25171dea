"""Margins of labels that are as long as they are right."""

import numpy as np
import pytest

from privtail.calibration import calibrated
from privtail.default.calibration import HIDDEN, Calibration
from privtail.default.intercept import Intercept
from privtail.errors import InvalidInput
from privtail.linear_model import DPLogisticRegression
from privtail.losses import (
    FARTHEST_ODDS,
    CutLoss,
    LogisticLoss,
    MultinomialLoss,
    OddsAgainst,
    SquaredLoss,
    cut_to,
)
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import compose
from privtail.trusted.mechanisms.noise import GaussianNoise


def part_kept(length, multiplier, *, classes=2, n=4_000, seed=0):
    """Of margins that are ``length`` times what labels were drawn with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    outputs = 1 if classes == 2 else classes
    w = rng.normal(size=(3, outputs))
    margins = X @ w if outputs > 1 else np.column_stack([np.zeros(n), X @ w])
    y = (margins + rng.gumbel(size=margins.shape)).argmax(axis=1).astype(float)
    curator = Curator(
        X, y, budget=Budget(1_000.0, 1e-6), noise="simulated", random_state=seed,
        outputs=outputs, classes=tuple(range(classes)),
    )  # fmt: skip
    confidence = Calibration(GaussianNoise(multiplier), Intercept(GaussianNoise(multiplier)))
    calibrated(curator, lambda m: compose(confidence.plan(curator.problem)))
    loss = LogisticLoss() if outputs == 1 else MultinomialLoss(classes=classes)
    return confidence.run(curator, loss, length * w, 0 * w).part


@pytest.mark.parametrize("classes", [2, 3])
def test_margins_that_are_too_long_are_cut(classes):
    assert part_kept(1.0, 10.0, classes=classes) > 0.9
    assert part_kept(0.2, 10.0, classes=classes) > 0.9
    assert part_kept(3.0, 10.0, classes=classes) == pytest.approx(1 / 3, rel=0.2)
    assert part_kept(30.0, 10.0, classes=classes) == pytest.approx(1 / 30, rel=0.5)


def test_a_coin_keeps_nearly_nothing_and_what_noise_hides_little():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(4_000, 3)), rng.integers(0, 2, 4_000).astype(float)
    curator = Curator(
        X, y, budget=Budget(1_000.0, 1e-6), noise="simulated", random_state=1, classes=(0, 1)
    )
    confidence = Calibration(GaussianNoise(10.0), Intercept(GaussianNoise(10.0)))
    calibrated(curator, lambda m: compose(confidence.plan(curator.problem)))
    w = np.full((3, 1), 9.0)
    assert confidence.run(curator, LogisticLoss(), w, 0 * w).part < 0.02
    assert part_kept(1.0, 4_000.0) == HIDDEN


def test_odds_are_those_against_the_label_beyond_the_usual_ones():
    """In a range of its own for every label."""
    margins = np.array([[0.0], [2.0], [2.0], [1e300]])
    y = np.array([0.0, 0.0, 1.0, 0.0])
    odds = OddsAgainst(usual=(0.5,)).derivatives(margins, y)[:, 0] - (3 * y + 1) * FARTHEST_ODDS
    assert odds == pytest.approx([-0.5, 1.5, -1.5, FARTHEST_ODDS], abs=1e-5)
    three, usual = np.array([[1.0, 0.0, -1.0]]), (0.0, 0.0, 0.0)
    p = np.exp(three[0]) / np.exp(three[0]).sum()
    seen = OddsAgainst(usual=usual).derivatives(three, np.array([1.0]))
    assert seen[0, 0] - 4 * FARTHEST_ODDS == pytest.approx(
        np.log((1 - p[1]) / p[1]) - np.log(2), abs=1e-5
    )
    assert not seen[0, 1:].any()
    assert np.isnan(OddsAgainst(usual=usual).derivatives(three, np.array([3.0]))[0, 0])


def test_losses_are_cut_where_predictions_are():
    margins, y = np.array([[-9.0], [0.5], [np.inf]]), np.array([1.0, 0.0, 0.0])
    cut = cut_to(LogisticLoss(), (-1.0, 2.0))
    np.testing.assert_array_equal(
        cut.values(margins, y), LogisticLoss().values(margins.clip(-1, 2), y)
    )
    assert cut_to(LogisticLoss(), (-np.inf, np.inf)) == LogisticLoss()
    with pytest.raises(InvalidInput, match="labels or counts"):
        CutLoss(loss=SquaredLoss(), lowest=0.0, highest=1.0)


def test_a_strong_signal_keeps_its_probabilities():
    """Noisy counts below zero once left a loss without a minimum, and a 64th of the margins."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3_000, 3))
    y = (X @ [1.0, 2.0, 0.0] + rng.normal(size=3_000) > 0).astype(int)
    losses = []
    for seed in range(8):
        model = DPLogisticRegression(
            epsilon=1.0, classes=[0, 1], noise="simulated", random_state=seed
        ).fit(X, y)
        losses.append(-np.log(model.predict_proba(X)[np.arange(3_000), y]).mean())
    assert np.median(losses) < 0.33
    assert max(losses) < 0.4


@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_probabilities_are_no_disaster_where_noise_hides_units(epsilon):
    """Log loss was up to 13 times the constant's; of 120 such problems 1.12 times is the worst."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3_000, 30))
        y = (X[:, 0] + X[:, 1] > rng.logistic(size=3_000)).astype(float)
        X *= 10.0 ** rng.uniform(-2, 2, 30)
        fitted = DPLogisticRegression(
            epsilon=epsilon, delta=1e-4, random_state=seed, classes=[0.0, 1.0], noise="simulated"
        ).fit(X[:1_000], y[:1_000])
        p = fitted.predict_proba(X[1_000:])[np.arange(2_000), y[1_000:].astype(int)]
        assert -np.log(p).mean() < 1.15 * np.log(2)
