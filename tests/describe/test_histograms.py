"""Private histograms: edges, counts and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privtail
from privtail.errors import InvalidInput

SIMULATED: Any = {"noise": "simulated", "random_state": 0}


def test_given_edges() -> None:
    x = np.random.default_rng(0).normal(size=10_000)
    x[:100] = np.nan
    found = privtail.private_histogram(x, epsilon=1, edges=[-1, 0, 1], **SIMULATED)
    true = np.histogram(x[100:], [-1, 0, 1])[0]
    ends = found.conf_int(0.9999)
    assert ((ends[:, 0] <= true) & (true <= ends[:, 1])).all()
    assert found.above == pytest.approx((x[100:] >= 1).sum(), abs=5 * found.noise_std)
    assert not privtail.verify(privtail.private_histogram(x, epsilon=1).privacy_).problems


@pytest.mark.parametrize("x", [np.random.default_rng(0).lognormal(9, 2, 20_000), np.full(9999, 7)])
def test_edges_are_bought(x: np.ndarray) -> None:
    found = privtail.private_histogram(x, 12, epsilon=2, **SIMULATED)
    assert len(found.counts) == 12
    inside = (x >= found.edges[0]) & (x < found.edges[-1])
    assert inside.mean() > 0.9
    assert found.counts.sum() == pytest.approx(inside.sum(), abs=5 * found.noise_std * 12**0.5)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="ascending"):
        privtail.private_histogram(np.ones(9), epsilon=1, edges=[1, 0])
    with pytest.raises(InvalidInput, match="one column"):
        privtail.private_histogram(np.ones((9, 2)), epsilon=1)
