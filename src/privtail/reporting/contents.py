"""Files that privtail writes, as what a report shows of them."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput
from privtail.json_files import json_of
from privtail.model import Model
from privtail.statement import Statement

NEEDED = "a model, an evaluation, means, a summary or a statement that privtail wrote"


@dataclass(frozen=True)
class Row:
    """A number with the ends of its interval; None where one is not known."""

    name: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Content:
    """What a report shows of one file.

    Attributes
    ----------
    title : what the file is, for a heading.
    described : sentences on what was made of what.
    numbers : numbers with intervals. zero : whether a picture of them has a line at zero.
    curves : of a classifier, by name, as `privtail.evaluation.Curves.to_dict` gives them.
    statements : what was promised, one for each plan.
    notes : sentences that a reader needs.
    file : the name of the file. digest : its SHA-256 sum; empty if it was not read from a file.
    parts : sections of their own, such as columns, without statements.
    """

    title: str
    described: tuple[str, ...]
    numbers: tuple[Row, ...]
    zero: bool
    curves: Mapping[str, list[float | None]] | None
    statements: tuple[Statement, ...]
    notes: tuple[str, ...]
    file: str
    parts: tuple[Content, ...] = ()
    digest: str = ""


def read_content(path: str | os.PathLike[str]) -> Content:
    """Read a model, an evaluation, means or a statement.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or is none of these.
    """
    path = Path(path)
    written, data = json_of(path, NEEDED)
    return replace(content_of(written, path), digest=hashlib.sha256(data).hexdigest())


def content_of(written: Any, path: Path) -> Content:
    """The same of what such a file holds."""
    kind = written.get("format") if isinstance(written, Mapping) else None
    if kind not in _READERS:
        raise InvalidInput(f"{path} is no file that a report can be made of. Give {NEEDED}.")
    try:
        return _READERS[kind](written, path.name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"{path} is damaged ({type(error).__name__}). Take the file as privtail wrote it."
        ) from None


def _model(written: Mapping[str, Any], file: str) -> Content:
    model = Model.from_json(written)
    table, n = model.summary(), model.statement.n
    columns = ", ".join(column.name for column in model.columns)
    what = {"logit": "the probability of each label of", "log": "the expected count of"}
    described: tuple[str, ...] = (
        f"A {model.kind} model predicts {what.get(model.link, '')} {model.target!r} "
        f"from {len(model.columns)} columns: {columns}.".replace("  ", " "),
        f"It was fitted to {n:,} rows.",
    )
    ends = ", ".join(f"{x:.4g}" for x in model.intercept)
    units = {"logit": "the log-odds", "log": "the logarithm of the count"}
    changed = units.get(model.link, "the prediction")
    described = (
        *described,
        f"A value below is by how much {changed} changes if a column grows by one.",
        f"The intercept is {ends}.",
    )
    if model.categories and model.encoding.drop:
        described = (*described, "A base level has the value 0: others compare to it.")
    if model.categories and model.encoding.drop != "first":
        described = (*described, "Of the categories of a column, only differences have a meaning.")
    labels = ", ".join(map(str, model.classes or ()))
    described = (*described, *([f"The labels are {labels}."] if labels else []))
    rows = tuple(
        Row(table.names[i], float(table.coef[i]), _known(table.low[i]), _known(table.high[i]))
        for i in table.used
    )
    if any(row.low is not None for row in rows):
        said = "Intervals of 95 % allow for noise and sampling, not for clipping."
        described = (*described, said)
    notes = (*model.statement.notes, *(text for text in (table.unused, table.note) if text))
    return Content(
        f"Model of {model.target}", described, rows, True, None, (model.statement,), notes, file
    )


def _evaluation(written: Mapping[str, Any], file: str) -> Content:
    statements = tuple(map(Statement.from_json, written["statements"]))
    rows = tuple(
        Row(name.replace("_", " "), one["value"], one["low"], one["high"])
        for name, one in written["numbers"].items()
    )
    described = (
        f"How well a model predicts {written['n']:,} rows.",
        "They must be others than those that it was fitted to; no file can show that.",
        f"Intervals of {100 * written['confidence']:g} % allow for noise and sampling.",
    )
    notes = tuple(map(str, written["notes"]))
    return Content(
        "Quality of a model", described, rows, False, written["curves"], statements, notes, file
    )


def _means(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written["statement"])
    rows = tuple(Row(name, one["mean"], *one["interval"]) for name, one in written["means"].items())
    described = (
        f"Means of {len(rows)} columns of {statement.n:,} rows.",
        "Intervals are of 95 %, for the means of these rows: noise and clipping, not sampling.",
    )
    return Content("Means", described, rows, False, None, (statement,), statement.notes, file)


def _summary(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written["statement"])
    described = (
        f"A summary of {len(written['columns'])} columns of {statement.n:,} rows.",
        f"Intervals are of {100 * written['confidence']:g} %.",
        "Counts and shares of missing cells are of these rows: their intervals allow for noise.",
        "Others are of the population: these allow for noise, sampling and clipping.",
    )
    parts = tuple(_column(name, facts, file) for name, facts in written["columns"].items())
    notes = (*statement.notes, *map(str, written.get("warnings", ())))
    return Content("Summary", described, (), False, None, (statement,), notes, file, parts)


def _column(name: str, facts: Mapping[str, Any], file: str) -> Content:
    rows = tuple(
        Row(fact, one["value"], one["low"], one["high"])
        for fact, one in facts.items()
        if fact not in ("count", "zeros", "missing")
    )
    count, zeros, missing = (facts[fact]["value"] for fact in ("count", "zeros", "missing"))
    said = "an unknown part" if zeros is None else f"{100 * zeros:.1f} %"
    described = (
        f"About {count:,.0f} cells hold a number; {100 * missing:.1f} % are missing.",
        f"Of the numbers {said} are zero.",
    )
    return Content(f"Column {name}", described, rows, False, None, (), (), file)


def _statement(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written)
    described = (f"{statement.label}, from {statement.n:,} rows.",)
    return Content("Release", described, (), False, None, (statement,), statement.notes, file)


_READERS = {
    "privtail-model": _model,
    "privtail-evaluation": _evaluation,
    "privtail-mean": _means,
    "privtail-statement": _statement,
    "privtail-summary": _summary,
}


def _known(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
