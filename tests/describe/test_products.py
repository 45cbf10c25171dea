"""What clipping may cost covariances: the lemma, and the ends of correlations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privtail.describe.products import TAILS, _at_most, _highest, _lost

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """A range whose rows beyond are known."""

    z: Doubles
    distance: float = 1.0

    def beyond(self, _end: float) -> Doubles:
        return np.zeros((2, 3))

    def recounted(self, _tails: object, distance: float) -> Known:
        return Known(self.z / distance)

    def excess(self, side: int, _most: float) -> float:
        far = self.z[side * self.z > 1]
        return float(np.mean(far**2 - 1)) if len(far) else 0.0


def drawn(seed: int, d: int) -> Doubles:
    """Rows of heavy tails off centre, many of them beyond 1."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(400, 1)) * rng.normal(size=d)
    return (latent + rng.standard_t(1.5 + rng.random(), (400, d))) / rng.uniform(2, 20, d)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_clipping_takes_a_semidefinite_matrix_of_at_most_the_bound(d: int) -> None:
    """`_lost`, without noise, against the covariances of rows as they are."""
    useful = 0
    for seed in range(40):
        wide, cells = drawn(seed, d), np.random.default_rng(seed).integers(0, 5, d)
        edges = [-np.inf, *TAILS.edges, np.inf]
        counts = np.array([np.histogram(x, edges)[0] for x in wide.T], dtype=float)
        z = wide * 2.0 ** (cells / 2)  # clipped so many cells closer
        n, u = len(z), np.column_stack([z, np.ones(len(z))])
        weights = np.minimum(1.0, (d + 1) / np.sum(u**2, axis=1))
        products = (u * weights[:, None]).T @ u / n
        means = products[:d, d] / products[d, d]
        weighted = products[:d, :d] - np.outer(means, products[:d, d])
        taken = np.cov(z.T, bias=True).reshape(d, d) - weighted
        assert np.linalg.eigvalsh(taken).min() >= -1e-9 * np.abs(weighted).max()
        ranges: list[Any] = [Known(x) for x in wide.T]
        lost = _lost(ranges, counts, 0.0, cells, n, means) + 1e-12
        assert np.all(np.diag(taken) <= lost)
        assert np.all(np.abs(taken) <= np.sqrt(np.outer(lost, lost)))
        useful += bool(np.all(np.diag(taken) >= lost / 20))
    assert useful > 5


def test_the_bound_of_a_sum_of_counts_holds_as_often_as_it_says() -> None:
    """It fails in 2.5 %, or less; more than 80 of 2,000 have a chance of 1e-4."""
    rng = np.random.default_rng(0)
    weights, true = rng.uniform(0, 3, (6, 2)), rng.integers(0, 30, (6, 2)).astype(float)
    noisy = true + rng.normal(0, 10, (2_000, 6, 2))
    stds = np.full((6, 2), 10.0)
    failed = sum(_at_most(weights, one, stds) < np.sum(weights * true) for one in noisy)
    assert 20 <= failed <= 80
    weights[0, 0] = math.inf
    assert _at_most(weights, true, stds) == math.inf


def test_the_highest_correlation_is_that_of_the_worst_loss() -> None:
    """Against a grid of what two variances may lose."""
    for r in (-0.9, -0.2, 0.0, 0.3, 0.95):
        for a, b in ((0.0, 0.0), (0.3, 0.3), (0.01, 5.0), (2.0, 0.1), (40.0, 0.5)):
            x, y = np.meshgrid(np.linspace(0, a, 801), np.linspace(0, b, 801))
            worst = np.max((r + np.sqrt(x * y)) / np.sqrt((1 + x) * (1 + y)))
            value = np.array([[1.0, r], [r, 1.0]])
            found = _highest(value, np.array([a, b]))
            assert found[0, 1] == pytest.approx(found[1, 0])
            assert worst - 1e-9 <= found[0, 1] <= worst + 2e-3
    unknown = _highest(np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([0.1, np.inf]))
    assert unknown[0, 1] == 1
