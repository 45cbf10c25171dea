"""Means of groups of rows, by declared categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privtail import private_mean, verify
from privtail.errors import InvalidInput


def frame() -> pd.DataFrame:
    chance, n = np.random.default_rng(0), 20_000
    region = np.where(np.arange(n) % 4 == 0, "north", "south")
    cost = chance.exponential(size=n) + np.where(region == "north", 3.0, 5.0)
    cost[:500] = np.nan
    return pd.DataFrame({"cost": cost, "days": chance.poisson(4, n), "region": region})


def test_every_group_has_its_mean() -> None:
    found = private_mean(
        frame(), epsilon=3, by="region", categories=["north", "south"], noise="simulated",
        random_state=0,
    )  # fmt: skip
    true = frame().groupby("region").mean().to_numpy()
    assert found.groups == (("north",), ("south",))
    ends = found.conf_int(0.999)
    assert ((ends[..., 0] <= true) & (true <= ends[..., 1])).all()
    np.testing.assert_allclose(found.value, true, atol=0.1)
    exact = private_mean(frame(), epsilon=1, by="region", categories=["north", "south"])
    assert not verify(exact.privacy_).problems


def test_rows_of_no_group_and_small_groups() -> None:
    """Half of the rows have no declared category; of a group of 2 % an interval holds the mean."""
    chance, n = np.random.default_rng(1), 20_000
    place = np.where(chance.random(n) < 0.02, "small", np.where(np.arange(n) % 2, "large", "other"))
    cost = chance.lognormal(3, 1, n) * np.where(place == "small", 5, 1)
    table = pd.DataFrame({"cost": cost, "place": place})
    true = [cost[place == name].mean() for name in ("small", "large")]
    for seed in range(10):
        found = private_mean(
            table, epsilon=3, by="place", categories=["small", "large"], noise="simulated",
            random_state=seed,
        )  # fmt: skip
        assert found.reliable.all()
        ends = found.conf_int(0.9999, sampling=False)[:, 0]
        assert ((ends[:, 0] <= true) & (true <= ends[:, 1])).all()
        assert found.noise_std[0, 0] > 10 * found.noise_std[1, 0]


def test_other_methods_have_no_groups() -> None:
    with pytest.raises(InvalidInput, match="by= goes with the default method"):
        private_mean(frame(), epsilon=1, by="region", categories=["north"], threshold=1.0)


def test_groups_are_named_and_not_given_as_values():
    frame = pd.DataFrame({"x": np.arange(9.0), "region": ["a", "b", "c"] * 3})
    for values in (frame["region"], np.arange(9), frame["region"][:2], frame["region"][:1]):
        with pytest.raises(InvalidInput, match="by their names"):
            private_mean(frame, by=values, categories=["a", "b", "c"], epsilon=1.0)


def test_a_printed_mean_names_its_groups() -> None:
    frame = pd.DataFrame({"cost": np.arange(4_000.0), "region": ["north", "south"] * 2_000})
    found = private_mean(frame, by="region", categories=["north", "south"], epsilon=5)
    lines = str(found).splitlines()
    assert [line.partition(" = ")[0] for line in lines[:2]] == ["north: cost", "south: cost"]
    assert found.privacy_.headline in lines
    assert "[" in str(private_mean(frame["cost"], epsilon=5))
