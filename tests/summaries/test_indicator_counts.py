"""Counts of declared indicators: a category costs as much as one column, however many levels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from privtail.errors import InvalidInput
from privtail.features import bins, cross, spline
from privtail.linear_model import DPLinearRegression, DPPoissonRegressor
from privtail.schema.encoding import Encoding
from privtail.summaries.indicator_counts import IndicatorCounts
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem

LEVELS = [f"k{i}" for i in range(20)]
FEATURES = ("x", bins("x", edges=[0.0, 1.0]), spline("x", knots=[-1.0, 0.0, 1.0]))


def table(n: int = 2_000) -> pd.DataFrame:
    """A number, and a category of 20 levels of which five occur."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=n), "kind": np.array(LEVELS)[np.arange(n) % 5]})


def opened(noise: GaussianNoise, frame: pd.DataFrame, encoding: Encoding | None = None) -> Curator:
    """The counts of these columns, paid for."""
    curator = Curator(
        frame, budget=Budget(1e30, 1e-6), categories={"kind": LEVELS}, random_state=0,
        noise="simulated", encoding=encoding or Encoding(),
    )  # fmt: skip
    curator.open(IndicatorCounts(noise).plan(curator.problem))
    return curator


def test_levels_are_found_where_noise_of_free_columns_hides_them() -> None:
    """Of 400 rows each, with noise of 20; that of 20 free columns would be 89, times four."""
    noise = GaussianNoise(20.0)
    found = IndicatorCounts(noise).detected(opened(noise, table()).everyone(), 4.0)
    assert found.tolist() == [True, *[True] * 5, *[False] * 15]


def test_each_category_has_a_count_of_its_own_and_all_others_share_one() -> None:
    encoding = Encoding(features=(*FEATURES, "kind", cross("kind", bins("x", edges=[0.0, 1.0]))))
    problem = opened(GaussianNoise(1e-3), table(), encoding).problem
    assert sorted(map(len, problem.categories)) == [3, 20, 60]
    (counts,) = IndicatorCounts(GaussianNoise(1.0)).plan(problem)
    others = len(problem.indicators) - 83
    stds = [math.sqrt(3 + others)] * 4
    assert [event.std for event in counts.events] == pytest.approx(stds)


@pytest.mark.parametrize("missing", ["drop", "indicator"])
@pytest.mark.parametrize("categories", [1, 2, 8])
def test_no_count_has_more_noise_than_that_of_all_as_free_columns(
    categories: int, missing: str
) -> None:
    """Indicators of no category had up to 1.9 times as much, and those of few rows were lost."""
    kinds = {f"c{i}": ["a", "b"] for i in range(categories)}
    numbers = {f"x{i}": [0.0] for i in range(10)}
    design = Encoding(missing, features=[spline(name, knots=[-1.0, 0.0, 1.0]) for name in numbers])
    placed = design.design([*numbers, *kinds], kinds)
    problem = Problem(
        n=1_000, d=len(placed.names), indicators=placed.bounded, categories=placed.categories
    )
    (counts,) = IndicatorCounts(GaussianNoise(1.0)).plan(problem)
    free = GaussianNoise(1.0).event(problem.cell_counts(len(problem.indicators), 1)).std
    assert all(event.std < free for event in counts.events)
    cost = sum((event.radius / event.scale) ** 2 for event in counts.events)
    assert cost == pytest.approx(1.0)


@pytest.mark.parametrize("new", ["k0", "k19", "unknown", None])
def test_a_row_moves_the_counts_of_a_category_by_what_is_billed(new: str | None) -> None:
    """Each of the counts, before noise; the counts of free columns are billed more."""
    noise, moved = GaussianNoise(1e-9), []
    before, other = table(50), table(50)
    other.loc[7, "kind"] = new
    encoding = Encoding(features=(*FEATURES, "kind"))
    for frame in (before, other):
        batch = opened(noise, frame, encoding).everyone()
        levels = next(one for one in batch.problem.categories if len(one) == 20)
        moved.append(batch.cell_counts(levels[:1], [-1.0], by=[levels]))
    difference = np.subtract(*(np.array(one._value, float) for one in moved))
    step = 2.0**batch.problem.bits
    assert np.linalg.norm(difference) <= step * math.sqrt(2)
    assert np.linalg.norm(difference) <= moved[0].sensitivity.diameter.l2
    free = batch.problem.cell_counts(20, 1).diameter.l2
    assert moved[0].sensitivity.diameter.l2 < free / 4


def test_a_plan_is_that_of_the_fit() -> None:
    frame = table()
    for kind in (DPLinearRegression, DPPoissonRegressor):
        model = kind(categories={"kind": LEVELS}, features=(*FEATURES, "kind"), noise="simulated")
        model.fit(frame, np.arange(len(frame)) % 3)
        problem = model.plan_.problem
        sizes = [*map(len, problem.categories)]
        free = len(problem.indicators) - sum(sizes)
        assert free > 2
        listed = np.array([*sizes, *[1] * free])
        assert str(model.plan(problem.n, problem.d, listed)) == str(model.plan_)


def test_a_plan_refuses_more_indicators_than_features() -> None:
    with pytest.raises(InvalidInput, match="indicators names 24 of d = 4 features"):
        DPLinearRegression().plan(1_000, 4, [24])
