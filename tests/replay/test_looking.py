"""Summaries and evaluations: a neighbour with the same releases is the same, in every container."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_columns as columns
import test_tables as tables
from replays import Tape, differences, played

import privtail
from privtail import open_table
from privtail.linear_model import DPLogisticRegression, DPPoissonRegressor, DPRidge
from privtail.trusted import questions, row_errors
from privtail.trusted.files import formats
from privtail.trusted.problem import Problem

SEEDED: dict[str, Any] = {"noise": "simulated", "random_state": 0}
ENOUGH: dict[str, Any] = {"epsilon": 50.0, "delta": 0.1, **SEEDED}
N, X, Y = columns.N, columns.X, columns.Y
SIDES, EITHER = ["lr"[i % 2] for i in range(N)], {"s": ["l", "r"]}
LETTERS = ["a", "b"]


class Wild:
    """A model that is not ours: for some rows it raises, or answers in another shape."""

    def predict(self, rows: Any) -> Any:
        cells = list(rows["c"])
        if any(isinstance(cell, str) for cell in cells):
            raise KeyboardInterrupt(cells)
        if not all(np.isfinite(float(cell)) for cell in cells):
            return np.zeros((3, 3))
        return [float(cell) for cell in cells]


class WildLabels:
    """The same of labels."""

    classes_ = np.array(LETTERS)

    def predict_proba(self, rows: Any) -> Any:
        chance = 1 / (1 + np.exp(-np.asarray(rows, dtype=np.float64)[:, 0]))
        return np.column_stack([1 - chance, chance])


def ridge(X: Any, **options: Any) -> DPRidge:
    return DPRidge(epsilon=500.0, **SEEDED, **options).fit(X, Y)


def classifier(*, far: bool = False) -> DPLogisticRegression:
    """``far``: margins overflow where a feature is large, and nothing clips them."""
    model = DPLogisticRegression(
        epsilon=500.0, classes=LETTERS, algorithm=columns.ONE_STEP, **SEEDED
    ).fit(X, [LETTERS[int(y > 0)] for y in Y])
    if far:
        model.coef_ = np.full_like(model.coef_, 1e6)
    return model


RIDGE, OTHER, NAMED = ridge(X), ridge(X**3), ridge({"c": X[:, 0], "x": X[:, 1]})
COUNTS = np.abs(Y).round()
AMOUNTS = DPPoissonRegressor(epsilon=500.0, **SEEDED).fit(X, COUNTS)
RATES = DPPoissonRegressor(epsilon=500.0, **SEEDED).fit(X, COUNTS, exposure=np.ones(len(X)))
LABELLED, FAR = classifier(), classifier(far=True)

QUESTIONS: dict[str, Callable[[Any, str], Any]] = {
    "count": lambda c, near: privtail.private_count(c, neighbours=near, **ENOUGH),
    "counts": lambda c, near: privtail.private_count(
        {"c": c, "x": X[:, 0]}, by="c", categories=LETTERS, neighbours=near, **ENOUGH
    ),
    "numbered counts": lambda c, near: privtail.private_count(
        {"c": c, "s": SIDES}, by=["s", "c"], categories={**EITHER, "c": [0, 1, 2]},
        neighbours=near, **ENOUGH,
    ),
    "quantiles": lambda c, near: privtail.private_quantile(c, neighbours=near, **ENOUGH),
    "histogram": lambda c, near: privtail.private_histogram(c, 3, neighbours=near, **ENOUGH),
    "histogram between edges": lambda c, near: privtail.private_histogram(
        c, edges=[0, 1, 2], neighbours=near, **ENOUGH
    ),
    "summary": lambda c, near: privtail.summarize(
        {"c": c, "x": X[:, 0]}, neighbours=near, **ENOUGH
    ),
    "covariance": lambda c, near: privtail.private_covariance(
        {"c": c, "x": X[:, 0]}, neighbours=near, **ENOUGH
    ),
    "correlation": lambda c, near: privtail.private_correlation(
        {"c": c, "x": X[:, 0]}, semidefinite=True, neighbours=near, **ENOUGH
    ),
    "means by it": lambda c, near: privtail.private_mean(
        {"c": c, "x": X[:, 0]}, by="c", categories=LETTERS, neighbours=near, **ENOUGH
    ),
    "means of it": lambda c, near: privtail.private_mean(
        {"c": c, "s": SIDES}, by="s", categories=EITHER, neighbours=near, **ENOUGH
    ),
    "evaluated target": lambda c, near: privtail.evaluate(RIDGE, X, c, neighbours=near, **ENOUGH),
    "evaluated labels": lambda c, near: privtail.evaluate(
        LABELLED, X, c, neighbours=near, **ENOUGH
    ),
    "evaluated feature": lambda c, near: privtail.evaluate(
        NAMED, {"c": c, "x": X[:, 1]}, Y, neighbours=near, **ENOUGH
    ),
    "evaluated exposure": lambda c, near: privtail.evaluate(
        RATES, X, COUNTS, exposure=c, power=1.5, neighbours=near, **ENOUGH
    ),
    "evaluated amounts": lambda c, near: privtail.evaluate(
        AMOUNTS, X, c, power=2, neighbours=near, **ENOUGH
    ),
    "evaluated wildly": lambda c, near: privtail.evaluate(
        Wild(), {"c": c}, Y, neighbours=near, **ENOUGH
    ),
    "compared targets": lambda c, near: privtail.compare(
        RIDGE, OTHER, X, c, neighbours=near, **ENOUGH
    ),
    "compared labels": lambda c, near: privtail.compare(
        LABELLED, WildLabels(), X, c, neighbours=near, **ENOUGH
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "QUESTIONS", QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_telling_cells_of_a_list(question: str) -> None:
    """Every second question is asked of each of the cells: `make check` asks all of all."""
    some = columns.TELLING[list(QUESTIONS).index(question) % 2 :: 2]
    assert columns.told_apart(question, "list", "lists of one", some) == []


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_cell_of_a_list(question: str) -> None:
    assert columns.told_apart(question, "list", "lists of one", columns.CELLS) == []


@pytest.mark.slow
@pytest.mark.parametrize("column", columns.COLUMNS)
@pytest.mark.parametrize("base", ["numbers", "text"])
def test_every_column(column: str, base: str) -> None:
    for question in QUESTIONS:
        assert columns.told_apart(question, column, base, columns.TELLING) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_release_something(question: str) -> None:
    base = "text" if "label" in question or question in ("counts", "means by it") else "numbers"
    cells = columns.BASES[base]
    assert played(lambda: QUESTIONS[question](cells, "replace_one")).releases


# Whole records


def rows_of(columns_: tables.Columns) -> Any:
    return {name: columns_[name] for name in ("a", "b", "k")}


MODEL = DPRidge(epsilon=500.0, categories=tables.LETTERS, **SEEDED).fit(
    rows_of(tables.records()), tables.records()["y"]
)

RECORDS: dict[str, tables.Ask] = {
    "summary": lambda X, c, near: privtail.summarize(X, neighbours=near, **ENOUGH),
    "quantiles": lambda X, c, near: privtail.private_quantile(X, neighbours=near, **ENOUGH),
    "counts": lambda X, c, near: privtail.private_count(
        rows_of(c), by="k", categories=tables.LETTERS, neighbours=near, **ENOUGH
    ),
    "means": lambda X, c, near: privtail.private_mean(
        rows_of(c), by="k", categories=tables.LETTERS, neighbours=near, **ENOUGH
    ),
    "evaluation": lambda X, c, near: privtail.evaluate(
        MODEL, rows_of(c), c["y"], neighbours=near, **ENOUGH
    ),
    "covariance": lambda X, c, near: privtail.private_covariance(X, neighbours=near, **ENOUGH),
    "persons": lambda X, c, near: privtail.summarize(
        X, neighbours=near, groups=[*range(tables.N // 2)] * 2, max_rows=2, **ENOUGH
    ),
    "evaluation of persons": lambda X, c, near: privtail.evaluate(
        MODEL, rows_of(c), c["y"], neighbours=near, groups=[*range(tables.N // 2)] * 2,
        max_rows=2, **ENOUGH,
    ),
}  # fmt: skip


@pytest.mark.parametrize("ask", RECORDS)
def test_records(ask: str) -> None:
    rows = {name: cells for name, cells in tables.FIRST.items() if name != "no target"}
    assert tables.replayed(RECORDS[ask], tables.doubles, rows) == []


@pytest.mark.slow
@pytest.mark.parametrize("table", tables.TABLES)
def test_every_table(table: str) -> None:
    rows = {name: cells for name, cells in tables.FIRST.items() if name != "no target"}
    for ask in ("summary", "quantiles", "covariance"):
        assert tables.replayed(RECORDS[ask], tables.TABLES[table], rows) == []


def test_margins_that_overflow() -> None:
    """Of labels the subtraction of infinite margins would warn, of one record."""
    labels = [LETTERS[i % 2] for i in range(N)]
    near = np.concatenate([[[1e308, 1e308]], X[1:]])

    for call in (
        lambda X: privtail.evaluate(FAR, X, labels, **ENOUGH),
        lambda X: privtail.compare(FAR, LABELLED, X, labels, **ENOUGH),
    ):
        ours = played(partial(call, X))
        assert differences(ours, played(partial(call, near), ours)) == []


# Files


def asked(path: Path, call: Callable[..., Any], **options: Any) -> Any:
    """Of the columns a, b, k and y of a file."""
    table = open_table(path, drop=["count", "label"], categories=tables.LETTERS)
    return call(table, **options, **ENOUGH)


BY = {"by": "k", "categories": tables.LETTERS}
FILES: dict[str, Callable[[Path], Any]] = {
    "summary": partial(asked, call=privtail.summarize),
    "quantiles": partial(asked, call=privtail.private_quantile),
    "covariance": partial(asked, call=privtail.private_covariance),
    "means": partial(asked, call=privtail.private_mean, **BY),
    "counts": partial(asked, call=privtail.private_count, **BY),
    "evaluation": lambda path: privtail.evaluate(MODEL, open_table(path), "y", **ENOUGH),
    "comparison": lambda path: privtail.compare(MODEL, MODEL, open_table(path), "y", **ENOUGH),
    "evaluation of labels": lambda path: privtail.evaluate(
        NAMED_LABELS, open_table(path), "label", **ENOUGH
    ),
}  # fmt: skip

NAMED_LABELS = DPLogisticRegression(
    epsilon=500.0, classes=tables.LABELS, algorithm=columns.ONE_STEP, **SEEDED
).fit({name: tables.records()[name] for name in "ab"}, tables.records()["label"])


READ_ALIKE = ("t.csv.gz", "folder")
"""They are read as `t.csv` and `t.parquet` are."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[pytest.mark.slow] * (n in READ_ALIKE)) for n in tables.FILES],
)
@pytest.mark.parametrize("asked_", FILES)
def test_every_file(tmp_path: Path, name: str, asked_: str, half: int) -> None:
    path, base, ask = tmp_path / name, tables.records(), FILES[asked_]
    tables.FILES[name](path, base)
    ours = played(partial(ask, path))
    assert ours.releases
    csv = name.endswith("csv")
    rows = {**tables.FIRST, **tables.IN_CSV} if csv else tables.FIRST
    for row, cells in list(rows.items())[(list(FILES).index(asked_) + half) % 2 :: 2]:
        tables.FILES[name](path, tables.with_first(base, **cells))
        tape = played(partial(ask, path), ours)
        assert differences(ours, tape, excused=csv) == [], row


def of_text(path: Path, odd: int, call: Callable[..., Any]) -> Tape:
    """A CSV one column of which has so many cells of text, of ten."""
    cells = ["n/b"] * odd + ["1"] * (10 - odd)
    path.write_text("\n".join(["a,b", *(f"{cell},2" for cell in cells), ""]))
    return played(lambda: call(open_table(path), **ENOUGH))


@pytest.mark.parametrize("call", [privtail.summarize, privtail.private_quantile])
def test_cells_of_a_csv_do_not_choose_its_columns(tmp_path: Path, call: Callable[..., Any]) -> None:
    """More than a tenth of text is refused, or another record would choose what is answered."""
    shown = {tuple(map(str, of_text(tmp_path / "t.csv", odd, call).journal)) for odd in (0, 1)}
    assert all("raised" not in line for one in shown for line in one)
    assert of_text(tmp_path / "t.csv", 2, call).refused


class Turns(Mapping[str, str]):
    """Base levels that are others each time they are asked for."""

    asked = 0

    def __getitem__(self, name: str) -> str:
        self.asked += 1
        return "xy"[self.asked // 2 % 2]

    def __iter__(self) -> Iterator[str]:
        return iter(["k"])

    def __len__(self) -> int:
        return 1


def of_many_rows(path: Path, first: str, call: Callable[..., Any]) -> Any:
    """Of a CSV, the first cell of which moves the ends of all blocks."""
    rows = (f"{'xyz'[i % 3]},{i % 3}.{i % 7}" for i in range(1_999))
    path.write_text("\n".join(["k,y", f"{first},1", *rows, ""]))
    return call(open_table(path, categories={"k": ["x", "y", "z"]}))


@pytest.mark.parametrize("asked_", ["evaluation", "folds"])
def test_blocks_of_a_file_do_not_choose_base_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_: str
) -> None:
    monkeypatch.setattr(formats, "_READ_BYTES", 2**10)
    model = DPRidge(epsilon=500.0, drop=Turns(), **SEEDED)
    path = tmp_path / "t.csv"
    if asked_ == "evaluation":
        of_many_rows(path, "x", lambda table: model.fit(table, "y"))
        call = partial(privtail.evaluate, model, y="y", **ENOUGH)
    else:
        call = partial(privtail.cross_validate, model, y="y", cv=2, **ENOUGH)
    ours = played(lambda: of_many_rows(path, "x", lambda table: call(X=table)))
    assert ours.releases
    tape = played(lambda: of_many_rows(path, "w" * 700, lambda table: call(X=table)), ours)
    assert differences(ours, tape) == []


# Faults that could be put back


def found(question: str, cells: list[str], column: str = "list") -> list[str]:
    return columns.told_apart(question, column, "lists of one", cells)


class Around:
    """A model that is not ours: it looks at all rows that it is called with."""

    def predict(self, rows: Any) -> Any:
        cells = np.asarray(rows["c"], dtype=np.float64)
        return cells - cells.max()


def test_a_model_that_is_called_with_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    base = np.abs(X[:, :1])
    near = np.concatenate([[[9.0]], base[1:]])
    ask = partial(_of_array, base), partial(_of_array, near)
    ours = played(ask[0])
    assert differences(ours, played(ask[1], ours)) == []
    honest = row_errors.OutsideModel

    def trusting(predict: Any, _: bool) -> Any:
        return honest(predict, trusted_rowwise=True)

    monkeypatch.setattr("privtail.evaluation.models.OutsideModel", trusting)
    ours = played(ask[0])
    assert differences(ours, played(ask[1], ours))


def _of_array(cells: Any) -> Any:
    return privtail.evaluate(Around(), {"c": cells[:, 0]}, Y, **ENOUGH)


def test_a_mean_of_the_target_that_nobody_bought(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = row_errors.Predicted.errors

    def centred(self: Any, _: float, *further: Any) -> Any:
        return honest(self, float(np.nanmean(self._y)), *further)

    monkeypatch.setattr(row_errors.Predicted, "errors", centred)
    rows = {"large": tables.FIRST["large"]}
    assert tables.replayed(RECORDS["evaluation"], tables.doubles, rows)


def test_a_row_that_counts_in_two_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = questions.CellCounts.add

    def twice(self: Any, block: Any, sums: Any) -> None:
        honest(self, block, sums)
        sums[0, 1:] += sums[0, :-1]

    monkeypatch.setattr(questions.CellCounts, "add", twice)
    rows = {"empty": tables.FIRST["empty"]}
    assert tables.replayed(RECORDS["counts"], tables.doubles, rows)


@pytest.mark.parametrize("question", ["cell_counts", "column_moments"])
def test_bounds_that_are_too_small(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    honest: Callable[..., Any] = getattr(Problem, question)

    def half(self: Problem, columns: int, *others: int) -> Any:
        return replace(honest(self, 1, *others), size=honest(self, columns, *others).size)

    rows = {"other": {"a": -40.0, "b": 40.0, "k": "y"}}
    assert tables.replayed(RECORDS["means"], tables.doubles, rows) == []
    monkeypatch.setattr(Problem, question, half)
    assert tables.replayed(RECORDS["means"], tables.doubles, rows)
