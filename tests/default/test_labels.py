"""The intercept-only model of labels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from privtail.default.labels import CountLabels, margin_gap
from privtail.losses import LogisticLoss, MultinomialLoss, WeightedLoss
from privtail.losses.magnitudes import largest_derivative
from privtail.trusted.mechanisms.noise import GaussianNoise
from tests.default.conftest import staged


def counted(y, noise=1.0, loss=None, seed=0, **options):
    labels = 2 if loss is None else loss.outputs if loss.outputs > 1 else 2
    return staged(
        [CountLabels(GaussianNoise(noise))], np.ones((len(y), 1)), np.asarray(y, float),
        loss or LogisticLoss(), classes=tuple(range(labels)), random_state=seed, **options,
    )  # fmt: skip


def test_it_has_the_frequencies_of_the_labels():
    fit = counted(np.arange(4_000) % 4 == 0)
    assert fit.intercept_only[-1, 0] == pytest.approx(math.log(1 / 3), abs=0.01)
    assert fit.rarest_label == pytest.approx(0.5, abs=0.01)
    assert not fit.labels_even
    assert fit.margin_range[1] == pytest.approx(math.log(4_000))
    three = counted(np.repeat([0, 1, 2], [100, 200, 300]), loss=MultinomialLoss(classes=3))
    parts = np.exp(three.intercept_only[-1]) / np.exp(three.intercept_only[-1]).sum()
    assert parts == pytest.approx([1 / 6, 1 / 3, 1 / 2], abs=0.02)
    assert not counted(np.arange(50) % 2, intercept=False).intercept_only.any()


def test_balanced_classes_have_even_odds():
    loss = WeightedLoss(loss=LogisticLoss(), weights=(0.625, 2.5))
    assert counted(np.arange(5_000) % 5 == 0, loss=loss).intercept_only[-1, 0] == pytest.approx(
        0, abs=0.02
    )


@pytest.mark.parametrize("noise", [5.0, 500.0])
def test_labels_are_even_only_if_that_is_sure(noise):
    fit = counted(np.arange(4_000) % 2, noise)
    assert fit.labels_even == (noise == 5.0)


def test_no_probability_is_nearer_to_0_or_1_than_noise_tells():
    for seed in range(3):
        fit = counted(np.zeros(1_000), 20.0, seed=seed)
        p = 1 / (1 + math.exp(-fit.intercept_only[-1, 0]))
        assert 0.01 < p < 0.1
        assert fit.margin_range == pytest.approx((-math.log(50), math.log(50)), rel=0.2)


def test_the_part_of_rows_that_counts_is_known():
    y = np.arange(4_000) % 2.0
    X = np.ones((4_000, 1))
    X[:1_000] = np.nan
    fit = staged([CountLabels(GaussianNoise(1.0))], X, y, LogisticLoss(), classes=(0, 1))
    assert fit.usable_rows[0] == pytest.approx(0.75, abs=0.01)


def test_what_follows_from_an_intercept():
    log3 = np.array([[math.log(3)]])
    assert margin_gap(log3) == margin_gap(-log3) == pytest.approx(math.log(3))
    assert margin_gap(np.zeros((0, 1))) == 0.0
    assert margin_gap(np.array([[0.0, 2.0, 1.5]])) == pytest.approx(0.5)
    assert largest_derivative(LogisticLoss(), log3) == pytest.approx(0.75)
    assert largest_derivative(LogisticLoss(), np.zeros((0, 1))) == pytest.approx(0.5)
