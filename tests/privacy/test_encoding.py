"""Declared features: a record moves its own row alone, and no answer by more than it may."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from scipy.interpolate import BSpline

from privtail import open_table
from privtail.errors import InvalidInput
from privtail.features import bins, cross, log, spline
from privtail.robust_means import ClippedMean
from privtail.schema.encoding import Encoding
from privtail.schema.features import parsed
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.files.streams import Stream
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.questions import Block, Histogram
from privtail.trusted.records import Table, as_records, encoded

N = 40
JOBS = {"job": ["clerk", "cook", "none"]}
ODD = (math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, -7.0, 20.0, None)
FEATURES = (
    bins("age", [20, 45.5]),
    spline("pay", [0, 1, 2, 5]),
    log("pay", 1),
    "age",
    cross("job", bins("age", [40])),
    cross("age", log("pay")),
    cross(spline("age", [20, 60], degree=1), "job"),
)
ENCODINGS = {
    "indicator": Encoding("indicator"),
    "base level": Encoding(drop="first"),
    "features": Encoding("drop", {"job": "cook"}, FEATURES),
    "all": Encoding("indicator", "first", FEATURES),
}


def rows(seed: int = 0) -> dict[str, list[Any]]:
    """Columns as lists; of numbers some are missing."""
    rng = np.random.default_rng(seed)
    age, pay = rng.normal(45, 15, N).tolist(), rng.pareto(1.5, N).tolist()
    for column in (age, pay):
        for i in rng.integers(0, N, 6):
            column[i] = None
    job = rng.choice([*JOBS["job"], "other"], N).tolist()
    return {"age": age, "pay": pay, "job": job}


def numbers(cells: list[Any]) -> np.ndarray:
    return np.array([math.nan if cell is None else cell for cell in cells], dtype=float)


def frame(columns: dict[str, list[Any]], _: Path) -> Any:
    return pd.DataFrame({n: c if n == "job" else numbers(c) for n, c in columns.items()})


def lists(columns: dict[str, list[Any]], _: Path) -> Any:
    return columns


def of_polars(columns: dict[str, list[Any]], _: Path) -> Any:
    return pl.DataFrame(columns, strict=False)


def arrow(columns: dict[str, list[Any]], _: Path) -> Any:
    return pa.table(columns)


def csv(columns: dict[str, list[Any]], folder: Path) -> Any:
    text = [",".join(columns)]
    text += [",".join("" if c is None else str(c) for c in r) for r in zip(*columns.values())]  # noqa: B905
    path = folder / "t.csv"
    path.write_text("\n".join(text) + "\n")
    return open_table(path, categories=JOBS, numeric=["age", "pay"])


def parquet(columns: dict[str, list[Any]], folder: Path) -> Any:
    pq.write_table(pa.table(columns), folder / "t.parquet", row_group_size=7)
    return open_table(folder / "t.parquet", categories=JOBS)


CONTAINERS = (frame, lists, of_polars, arrow, csv, parquet)


def seen(X: Any, encoding: Encoding, step: int = N) -> np.ndarray:
    """The rows as questions see them, ``step`` at a time."""
    records = as_records(X, JOBS, encoding)
    d, optional = records.d, records.optional
    map_ = FeatureMap.of(d, np.linspace(0.5, 2.0, d), np.linspace(-1.0, 1.0, d), optional)
    found = []
    windows = records.windows(None) if isinstance(records, Stream) else ()
    tables = [window.open()[0] for window in windows] or [records]
    for table in tables:
        for start in range(0, table.n, step):
            ids = slice(start, min(start + step, table.n))
            found.append(map_.applied(table.rows(ids)).transformed())
    return np.concatenate(found)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """To the bit, but for the payload of NaN."""
    return np.array_equal(np.nan_to_num(a).view(np.int64), np.nan_to_num(b).view(np.int64)) and (
        np.array_equal(np.isnan(a), np.isnan(b))
    )


def moved(container: Any, encoding: Encoding, folder: Path) -> set[int]:
    """Which rows some replaced record moves beside its own."""
    before, found = seen(container(rows(), folder), encoding), set()
    for k, odd in enumerate(ODD):
        changed, i = rows(), 3 * k
        changed["age"][i], changed["pay"][i], changed["job"][i] = odd, ODD[-k], f"x{k}"
        after = seen(container(changed, folder), encoding)
        for j in range(N):
            if j != i and not same(before[j], after[j]):
                found.add(j)
    return found


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ENCODINGS)
def test_a_record_moves_its_own_row_alone(name: str, container: Any, tmp_path: Path) -> None:
    assert moved(container, ENCODINGS[name], tmp_path) == set()


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_container_has_the_same_rows_in_blocks_of_any_size(name: str, tmp_path: Path) -> None:
    first = seen(frame(rows(), tmp_path), ENCODINGS[name])
    assert same(first, seen(frame(rows(), tmp_path), ENCODINGS[name], step=1))
    for container in CONTAINERS:
        assert same(first, seen(container(rows(), tmp_path), ENCODINGS[name], step=9))


def test_a_gap_is_zero_to_the_bit_and_has_no_sign(tmp_path: Path) -> None:
    records = as_records(frame(rows(), tmp_path), JOBS, ENCODINGS["indicator"])
    map_ = FeatureMap.of(
        records.d, np.full(records.d, 1 / 3), np.full(records.d, -0.7), records.optional
    )
    z = map_.applied(records.rows(slice(0, N))).transformed()
    gone = np.isnan(numbers(rows()["age"]))
    assert gone.any()
    assert (z[gone, 0] == 0).all()
    assert (z[~gone, 0] != 0).all()


def test_filling_with_the_mean_of_a_block_is_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    honest = Table.rows

    def sabotaged(self: Table, ids: Any) -> Any:
        block = honest(self, ids)
        X = block.X
        with np.errstate(all="ignore"):
            X[:, 0] = np.where(np.isnan(X[:, 0]), np.nanmean(X[:, 0]), X[:, 0])
        return block

    monkeypatch.setattr(Table, "rows", sabotaged)
    assert moved(frame, ENCODINGS["indicator"], tmp_path)


def test_knots_that_are_taken_from_the_rows_are_caught(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    honest = encoded._basis

    def sabotaged(basis: Any, x: Any, out: Any) -> None:
        known = np.sort(x[np.abs(x) < 1e6])  # NaN and infinities are not
        knots = known[np.linspace(0, len(known) - 1, len(basis.knots)).astype(int)]
        honest(type(basis)(basis.column, knots, basis.degree), x, out)

    monkeypatch.setattr(encoded, "_basis", sabotaged)
    assert moved(frame, ENCODINGS["all"], tmp_path)


def test_features_are_what_their_definitions_say(tmp_path: Path) -> None:
    X = frame(rows(), tmp_path)
    records = as_records(X, JOBS, ENCODINGS["features"])
    found = dict(zip(records.names, records.rows(slice(0, N)).X.T, strict=True))
    age, pay, job = X["age"].to_numpy(), X["pay"].to_numpy(), X["job"].to_numpy()
    known = ~np.isnan(age) & ~np.isnan(pay)
    both = [name for name in found if name.startswith("job=")]
    assert not any("cook" in name for name in both)
    expected = {
        "age": age,
        "20<=age<45.5": (age >= 20) & (age < 45.5),
        "log(pay+1)": np.log(pay + 1),
        "job=clerk": job == "clerk",
        "job=clerk:age<40": (job == "clerk") & (age < 40),
        "age:log(pay)": age * np.log(pay),
    }
    for name, values in expected.items():
        assert found[name][known] == pytest.approx(values[known].astype(float), rel=1e-12), name
    assert np.isnan(found["age<20"][np.isnan(age)]).all()
    inner, k = [0.0, 1.0, 2.0, 5.0], 3
    basis = BSpline([0.0] * k + inner + [5.0] * k, np.eye(len(inner) + k - 1), k)
    for j in range(1, len(inner) + k - 1):
        values = basis(np.clip(pay[known], 0, 5))[:, j]
        assert found[f"spline(pay)[{j}]"][known] == pytest.approx(values, abs=1e-12)
    bounded = records.rows(slice(0, N)).X[:, records.indicators]
    assert ((bounded >= 0) & (bounded <= 1) | np.isnan(bounded)).all()
    for places in records.categories:
        levels = records.rows(slice(0, N)).X[:, places]
        assert set(places) <= set(records.indicators)
        assert np.isin(levels[~np.isnan(levels)], [0.0, 1.0]).all()
        assert (np.nansum(levels, axis=1) <= 1).all()


# --- answers --------------------------------------------------------------------------------------

EDGES = np.array([-1.0, 0.0, 1.0, 30.0, 60.0])


def counts(columns: dict[str, list[Any]]) -> np.ndarray:
    """A histogram of all features, (features, cells)."""
    curator = Curator(
        frame(columns, Path()), categories=JOBS, encoding=ENCODINGS["indicator"],
        budget=Budget(math.inf, 1e-6),
    )  # fmt: skip
    problem = curator.problem
    records = as_records(frame(columns, Path()), JOBS, ENCODINGS["indicator"])
    block = Block(
        problem, FeatureMap.of(problem.d, np.ones(problem.d), optional=problem.optional).applied(
            records.rows(slice(0, N))
        ), np.zeros(N), np.zeros(N, np.int64),
    )  # fmt: skip
    sums = np.zeros((1, problem.d, len(EDGES) + 1))
    term = Histogram(tuple(range(problem.d)), np.tile(EDGES, (problem.d, 1)), pooled=False)
    term.add(block, sums)
    return sums[0]


def most_moved() -> float:
    """How far one replaced record moves the counts of a column at most, in l1."""
    before, most = counts(rows()), 0.0
    for k, odd in enumerate(ODD):
        changed, i = rows(), 3 * k
        changed["age"][i], changed["pay"][i], changed["job"][i] = odd, ODD[-k], "cook"
        most = max(most, float(np.abs(counts(changed) - before).sum(axis=1).max()))
    return most


def test_a_record_fills_at_most_one_cell_of_a_column_and_a_gap_none() -> None:
    assert most_moved() <= 2
    found, known = counts(rows()), numbers(rows()["age"])
    assert found[0].sum() == np.count_nonzero(~np.isnan(known))
    assert found[1].sum() == N


def test_a_gap_that_counts_in_every_cell_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Block.count

    def sabotaged(self: Block, values: Any, own: Any, edges: Any, sums: Any) -> None:
        honest(self, values, own, edges, sums)
        sums += np.isnan(values).sum(axis=0)[:, None]

    monkeypatch.setattr(Block, "count", sabotaged)
    assert most_moved() > 2


def test_a_missing_number_adds_a_bounded_gradient_and_an_infinite_one_none() -> None:
    """Sums of clipped rows: one record replaced moves them by less than the sensitivity."""

    def answer(columns: dict[str, list[Any]]) -> np.ndarray:
        curator = Curator(
            frame(columns, Path()), categories=JOBS, encoding=ENCODINGS["indicator"],
            budget=Budget(math.inf, 1e-6),
        )  # fmt: skip
        problem, mean = curator.problem, ClippedMean(1.0)
        noise = GaussianNoise(0.0)
        curator.open((Round(stage="s", events=(noise.event(problem.means(mean)),)),))
        return curator.everyone().means(mean).release(noise) * N

    before = answer(rows())
    for k, odd in enumerate(ODD):
        changed, i = rows(), 3 * k
        changed["age"][i], changed["pay"][i] = odd, ODD[-k]
        assert np.linalg.norm(answer(changed) - before) <= 2 + 1e-6


@pytest.mark.parametrize(
    ("knots", "degree"), [([-1e-300, 0.0, 1e-300], 3), ([0.0, 5e-324, 1.0], 1)]
)
def test_knots_that_no_spline_has_are_refused_where_they_are_named(knots: Any, degree: Any) -> None:
    """A fit was charged before it saw that their polynomials are not finite."""
    text = f"{'spline' if degree == 3 else 'linear_spline'}(a, {', '.join(map(repr, knots))})"
    for make in (lambda: spline("a", knots, degree), lambda: parsed(text)):
        with pytest.raises(InvalidInput, match="too near each other"):
            make()


def test_sparse_records_refuse_what_needs_dense_ones() -> None:
    with pytest.raises(InvalidInput, match="dense table"):
        as_records(sp.csr_matrix(np.eye(3)), None, Encoding("indicator"))
