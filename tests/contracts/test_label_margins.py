"""The length of margins of two labels, for known laws and for any margins."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.losses import LogisticLoss, WeightedLoss
from privtail.losses.label_margins import (
    Candidate,
    best_factor,
    longest_without_loss,
    unclamped,
)


@pytest.mark.parametrize("middle", [0.0, 3.0])
@pytest.mark.parametrize("right", [0.25, 0.6, 1.0])
def test_the_best_factor_is_that_with_which_labels_were_drawn(middle, right):
    """Of gains of normal log-odds at few parts, with little noise; and none where nothing gains."""
    rng = np.random.default_rng(0)
    z, typical = 2 * rng.normal(size=200_000), 2.0
    p = 1 / (1 + np.exp(-(middle + right * z)))
    parts = np.array([0.03, 1.0, 0.5, 0.25])

    def loss(part):
        odds = middle + part * z
        return np.mean(np.logaddexp(0, odds) - p * odds)

    gains = np.array([loss(0.0) - loss(part) for part in parts])
    asked, little = [Candidate(part, 10.0, (-np.inf, np.inf)) for part in parts], 1e-5
    found, gain, height, off = best_factor(asked, gains / 10, little, typical, middle)
    assert abs(found - right) < 2 * off < 0.1
    assert best_factor(asked, gains / 10, 30 * little, typical, middle)[3] >= off
    assert found == pytest.approx(right, abs=0.05)
    assert gain == pytest.approx(loss(0.0) - loss(right), rel=0.1)
    assert height > 30
    _, gain, height, _ = best_factor(asked, -parts / 10, little, typical, middle)
    assert gain <= 1e-6
    assert height <= 0


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 4.0), (1e-9, 1.0)])
@pytest.mark.parametrize("middle", [-4.0, -0.5, 0.0, 2.0])
def test_no_gain_is_clamped_between_the_ends_of_small_margins(middle, weights):
    """At each end that of one label just is."""
    clamp = 0.125
    margins = np.linspace(*unclamped(middle, clamp, weights), 101)[:, None]
    loss = WeightedLoss(loss=LogisticLoss(), weights=weights)
    labels = (np.full(101, label) for label in (0.0, 1.0))
    gains = np.array(
        [loss.values(0 * margins + middle, y) - loss.values(margins, y) for y in labels]
    )
    assert np.abs(gains[:, [0, -1]]).max(axis=0) == pytest.approx([clamp, clamp])
    assert np.abs(gains).max() == pytest.approx(clamp)


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.5, 4.0)])
@pytest.mark.parametrize("middle", [-4.0, 0.0, 2.0])
def test_margins_that_gain_lose_nothing_when_they_grow_no_more_than_said(middle, weights):
    """Whatever they are: most lie at the ends here, and labels are right in many ways."""
    rng, bounds = np.random.default_rng(0), []
    loss = WeightedLoss(loss=LogisticLoss(), weights=weights)
    ends = np.subtract(unclamped(middle, 0.125, weights), middle)
    for _ in range(200):
        part, shift = rng.random(), rng.uniform(-1, 3)
        offsets = np.where(rng.random(300) < part, rng.choice(ends, 300), rng.uniform(*ends, 300))
        labels = (rng.logistic(size=300) < middle + shift * offsets / ends[1]).astype(float)

        def gain(times, m=offsets, y=labels):
            base = loss.values(np.full((300, 1), middle), y)
            return float(np.mean(base - loss.values(middle + times * m[:, None], y)))

        if gain(1.0) > 0:
            times = longest_without_loss(middle, ends, gain(1.0), 30.0, max(weights))
            bounds.append(times)
            assert all(gain(part * times) >= -1e-12 for part in (0.1, 0.5, 1.0))
    assert max(bounds) > 3
    assert longest_without_loss(middle, ends, 1.0, 0.5) == 0.5
    assert longest_without_loss(middle, ends, -0.1, 30.0) == 1.0
    assert longest_without_loss(middle, ends, 0.0, 0.0) == 0.0
