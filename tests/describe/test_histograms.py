"""Private histograms: edges, counts and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privtail
from privtail.errors import AccuracyWarning, InvalidInput

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
def test_edges_are_released(x: np.ndarray) -> None:
    found = privtail.private_histogram(x, 12, epsilon=2, **SIMULATED)
    assert len(found.counts) == 12
    inside = (x >= found.edges[0]) & (x < found.edges[-1])
    assert inside.mean() > 0.9
    assert found.counts.sum() == pytest.approx(inside.sum(), abs=5 * found.noise_std * 12**0.5)


FEW = {
    "normal": lambda chance: chance.normal(50, 10, 2_000),
    "t": lambda chance: chance.standard_t(2.5, 2_000),
    "years": lambda chance: chance.integers(1950, 2021, 2_000),
    "far": lambda chance: chance.normal(1e6, 1, 2_000),
}


@pytest.mark.parametrize("law", FEW)
def test_few_rows_have_bins_where_they_are(law: str) -> None:
    """Of 2,000 rows noise hides some of the quantiles .02: then bins lie between others.

    The bins of years were up to 34 times as wide as 98 % of them need, and bins near 1e6 could be
    where no row is.
    """
    for seed in range(10):
        x = FEW[law](np.random.default_rng(seed))
        found = privtail.private_histogram(x, 20, epsilon=1, noise="simulated", random_state=seed)
        wide = np.diff(np.quantile(x, [0.25, 0.75]))[0]
        assert 0.5 * wide < found.edges[-1] - found.edges[0] < 10 * wide
        assert np.mean((x >= found.edges[0]) & (x < found.edges[-1])) > 0.4


def test_edges_that_noise_hides_are_warned_of() -> None:
    x = np.random.default_rng(0).normal(1e6, 1, 2_000)
    with pytest.warns(
        AccuracyWarning, match=r"where most values lie.* Pass edges=\[0, 10, 100\] \(--edge 0"
    ):
        found = privtail.private_histogram(x, epsilon=0.1, **SIMULATED)
    assert len(found.warnings_) == 1


@pytest.mark.parametrize("edges", [None, [0.0, 1.0, 2.0]])
def test_no_row_that_holds_a_number_is_warned_of(edges: list[float] | None) -> None:
    for seed in range(5):
        chance: Any = {"noise": "simulated", "random_state": seed}
        with pytest.warns(AccuracyWarning, match="Noise hides how many rows") as warned:
            found = privtail.private_histogram(
                np.full(5_000, np.nan), 4, epsilon=1, edges=edges, **chance
            )
        assert found.warnings_ == (str(warned[0].message),)
        x = np.random.default_rng(seed).normal(size=5_000)
        assert not privtail.private_histogram(x, 4, epsilon=1, edges=edges, **chance).warnings_


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="ascending"):
        privtail.private_histogram(np.ones(9), epsilon=1, edges=[1, 0])
    with pytest.raises(InvalidInput, match="one column"):
        privtail.private_histogram(np.ones((9, 2)), epsilon=1)


@pytest.mark.parametrize("mistake", [{"bins": 10**9}, {"bins": 51}])
def test_more_bins_than_rows_are_refused_before_they_take_memory(mistake):
    with pytest.raises(InvalidInput, match=r"no more bins than rows: bins=50, or edges=") as caught:
        privtail.private_histogram(np.arange(50.0), epsilon=1.0, **mistake)
    assert "--bins 50, or --edge 0" in caught.value.cli


@pytest.mark.parametrize("epsilon", ["1", None, [1.0], True])
def test_an_epsilon_that_is_no_number_is_refused_in_words(epsilon):
    with pytest.raises(InvalidInput, match="epsilon must be a number"):
        privtail.private_histogram(np.arange(50.0), epsilon=epsilon)


def test_edges_and_levels_that_are_text_are_refused_before_anything_is_charged() -> None:
    ledger = privtail.Ledger(epsilon=10, delta=1e-3)
    for what, ask in (
        ("edges", lambda: privtail.private_histogram([1.0], edges=["a"], epsilon=1, ledger=ledger)),
        ("levels", lambda: privtail.private_quantile([1.0], "half", epsilon=1, ledger=ledger)),
    ):
        with pytest.raises(InvalidInput, match=f"{what} must be numbers"):
            ask()
    assert ledger.spent == (0, 0)


def test_a_printed_histogram_has_a_line_for_every_bin() -> None:
    """A value on the last edge is after the last bin: most counts of 0 and 1 are on an edge."""
    x = np.arange(4_000.0)
    found = privtail.private_histogram(x, edges=[0, 1_000, 5_000], epsilon=5)
    names = [line.partition(":")[0] for line in str(found).splitlines()]
    assert names[:4] == ["below 0", "0 to 1000", "1000 to 5000", "5000 or more"]
    assert "Rows below 0: about" in found._repr_html_()
    assert "of 5000 or more: about" in found._repr_html_()
