"""Files that privtail writes, as what a report shows of them."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput
from privtail.json_files import json_of
from privtail.model import Model
from privtail.spelling import counted, finite_or_none, said_of_left_out
from privtail.statement import Statement
from privtail.views import Row, bins, said_of_outside

MEANT = {
    "mae": "the mean absolute error",
    "rmse": "the root of the mean squared error; noise may hide a few huge errors of it",
    "r2": "by which part the squared error is smaller than that of the constant; 1 is best",
    "constant": "the mean of the target, or its mean rate; a model that predicts nothing else",
    "constant_rmse": "the RMSE of the constant",
    "deviance": "the mean deviance, an error in proportion to what is expected; 0 is best; noise "
    "may hide a few huge ones",
    "d2": "by which part the deviance is smaller than that of the constant; 1 is best",
    "coverage": "the share of targets that are at most the prediction",
    "accuracy": "the share of labels that are predicted right",
    "log_loss": "how far predicted probabilities are from the labels; 0 is best",
    "constant_accuracy": "the accuracy of always predicting the most frequent label",
    "constant_log_loss": "the log loss of predicting for every row how frequent each label is",
    "auc": "how often a row of the second label gets a higher probability than one of the first",
    "precision": "the share of predictions of the second label that are right",
    "recall": "the share of rows of the second label that are predicted to have it",
}
"""What the numbers of an evaluation are."""

FACTS = {
    "std": "standard deviation", "25%": "lower quartile", "50%": "median", "75%": "upper quartile",
}  # fmt: skip
"""What the numbers of a summary are called."""

NOISE_ALONE = "Intervals of {:g} % are for these rows. They allow for noise alone."

NEEDED = (
    "a model, an evaluation, a comparison, means, counts, quantiles, a histogram, a covariance, a "
    "correlation, a summary or a statement that privtail wrote"
)


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
    """Read a model, an evaluation, a comparison, means or another result.

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
    if not isinstance(kind, str) or kind not in _READERS:
        raise InvalidInput(f"No report can be made of {path}. Give {NEEDED}.")
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
    what = {"logit": "the probability of each label of ", "log": "the expected value of "}
    per = "" if model.exposure is None else f" for one unit of {model.exposure!r}"
    described: tuple[str, ...] = (
        (
            f"A {model.kind} model predicts {what.get(model.link, '')}{model.target!r}{per} "
            f"from {counted(len(model.columns), 'column')}: {columns}."
        ),
        f"It was fitted to {counted(n, 'row')}.",
    )
    ends = ", ".join(f"{x:.4g}" for x in model.intercept)
    second = f" of {model.classes[1]}" if model.classes and len(model.classes) == 2 else ""
    units = {"logit": f"the log-odds{second}", "log": "the logarithm of the prediction"}
    changed = units.get(model.link, "the prediction")
    if not model.coef.any():
        said = f"All slopes are zero: every row has the same prediction. The intercept is {ends}."
        notes = (*model.statement.notes, *table.unbounded)
        return Content(
            f"Model of {model.target}", (*described, said), (), True, None, (model.statement,),
            notes, file,
        )  # fmt: skip
    described = (
        *described,
        f"A value below is the change of {changed} if a column grows by one.",
        f"The intercept is {ends}.",
    )
    if model.categories and model.encoding.drop:
        described = (
            *described,
            "A base level has the value 0. The values of other levels compare to it.",
        )
    if model.categories and model.encoding.drop != "first":
        described = (*described, "Only differences between categories of a column have a meaning.")
    labels = ", ".join(map(str, model.classes or ()))
    described = (*described, *([f"The labels are {labels}."] if labels else []))
    rows = tuple(
        Row(
            table.names[i],
            float(table.coef[i]),
            finite_or_none(table.low[i]),
            finite_or_none(table.high[i]),
            base=table.names[i] not in model.features,
        )
        for i in table.used
    )
    if any(row.low is not None for row in rows):
        said = "Intervals of 95 % allow for noise and sampling, not for clipping."
        described = (*described, said)
    notes = (*model.statement.notes, *table.unbounded, table.note)
    return Content(
        f"Model of {model.target}", described, rows, True, None, (model.statement,), notes, file
    )


def _evaluation(written: Mapping[str, Any], file: str) -> Content:
    statements = tuple(map(Statement.from_json, written["statements"]))
    rows = tuple(
        Row(_words(name), one["value"], one["low"], one["high"])
        for name, one in written["numbers"].items()
    )
    meant = (
        f"{_words(name)}: {said}." for name, said in MEANT.items() if name in written["numbers"]
    )
    rows_of = counted(written["n"], "row")
    said = (
        (f"How well a kind of model predicts {rows_of}, by cross-validation.",)
        if statements[0].label.startswith("cross_validate")
        else (
            f"How well a model predicts {rows_of}.",
            "The model must not have been fitted to these rows. No file can show that.",
        )
    )
    labels = ", ".join(map(str, written["classes"] or ()))
    described = (
        *said,
        *([f"The labels are {labels}."] if labels else []),
        f"Intervals of {100 * written['confidence']:g} % allow for {_allowed(*statements)}.",
        *meant,
    )
    notes = tuple(map(str, written["notes"]))
    return Content(
        "Quality of a model", described, rows, False, written["curves"], statements, notes, file
    )


def _allowed(*statements: Statement) -> str:
    """What intervals of scores allow for: rows of a person are not independent."""
    persons = any(statement.max_rows is not None for statement in statements)
    return "noise and clipping, not for sampling" if persons else "noise and sampling"


def _comparison(written: Mapping[str, Any], file: str) -> Content:
    statement, one = Statement.from_json(written["statement"]), written["difference"]
    first, second, rows = written["first"], written["second"], counted(written["n"], "row")
    row = Row(f"{first} less {second}", one["value"], one["low"], one["high"])
    unclear = None in one.values() or one["low"] <= 0 <= one["high"]
    told = "Neither is shown to" if unclear else f"{written[written['better']]} does"
    losses = "absolute errors" if statement.label.endswith("numbers") else "log losses"
    described = (
        f"Which of two models predicts {rows} better: {first}, or {second}.",
        f"{told} (one-sided p-value {written['p_value']:.2g}).",
        f"The value below is the mean difference of {losses}.",
        f"Its interval of {100 * written['confidence']:g} % allows for {_allowed(statement)}.",
        "The models must not have been fitted to these rows. No file can show that.",
    )
    notes = (*statement.notes, *map(str, written["notes"]))
    return Content("Comparison", described, (row,), True, None, (statement,), notes, file)


def _means(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written["statement"])
    groups = written.get("groups", [{"group": [], "means": written.get("means")}])
    rows = tuple(
        Row(", ".join(map(str, (*group["group"], name))), one["mean"], *one["interval"])
        for group in groups
        for name, one in group["means"].items()
    )
    by = f" for each group of {' and '.join(written['by'])}" if "by" in written else ""
    columns = counted(len(groups[0]["means"]), "column")
    described = (
        f"The mean of {columns}{by}, of {counted(statement.n, 'row')}.",
        "Intervals of 95 % are for the means of these rows. They allow for noise and clipping.",
    )
    return Content("Means", described, rows, False, None, (statement,), statement.notes, file)


def _counts(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written["statement"])
    rows = tuple(
        Row(", ".join(map(str, one["group"])) or "rows", one["value"], one["low"], one["high"])
        for one in written["counts"]
    )
    by = " and ".join(written["by"])
    described = (
        (
            f"How many of {counted(statement.n, 'row')} are in each group of {by}."
            if by
            else f"How many of {counted(statement.n, 'row')} have all their numbers."
        ),
        NOISE_ALONE.format(100 * written["confidence"]),
    )
    notes = (*statement.notes, *map(str, written.get("warnings", ())))
    return Content("Counts", described, rows, False, None, (statement,), notes, file)


def _quantiles(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written["statement"])
    described = (
        (
            f"Quantiles of {counted(len(written['quantiles']), 'column')}, of "
            f"{counted(statement.n, 'row')}."
        ),
        f"Intervals of {100 * written['confidence']:g} % allow for noise and sampling.",
    )
    parts = tuple(
        Content(
            f"Column {name}", (),
            tuple(Row(f"{x['level']:g}", x["value"], x["low"], x["high"]) for x in levels),
            False, None, (), (), file,
        )
        for name, levels in written["quantiles"].items()
    )  # fmt: skip
    notes = (*statement.notes, *map(str, written["warnings"]))
    return Content("Quantiles", described, (), False, None, (statement,), notes, file, parts)


def _histogram(written: Mapping[str, Any], file: str) -> Content:
    statement, edges = Statement.from_json(written["statement"]), written["edges"]
    rows = tuple(
        Row(*facts)
        for facts in zip(
            bins(edges), written["counts"], written["low"], written["high"], strict=True
        )
    )
    described = (
        (
            f"How many of {counted(statement.n, 'row')} lie in each bin of "
            f"{written['column']!r}. A value on an edge belongs to the bin above it."
        ),
        said_of_outside(edges, written["below"], written["above"]),
        NOISE_ALONE.format(100 * written["confidence"]),
    )
    notes = (*statement.notes, *map(str, written["warnings"]))
    title = f"Histogram of {written['column']}"
    return Content(title, described, rows, True, None, (statement,), notes, file)


def _matrix(written: Mapping[str, Any], file: str) -> Content:
    statement, names = Statement.from_json(written["statement"]), written["columns"]
    what = written["format"].removeprefix("privtail-")
    rows = tuple(
        Row(f"{names[j]}, {names[k]}", *(written[x][j][k] for x in ("value", "low", "high")))
        for j, k in itertools.combinations_with_replacement(range(len(names)), 2)
        if j < k or what == "covariance"
    )
    described = (
        (
            f"The {what} of every two of {counted(len(names), 'column')}, of "
            f"{counted(statement.n, 'row')}."
        ),
        f"Intervals of {100 * written['confidence']:g} % allow for noise, sampling and clipping.",
        *said_of_left_out(written.get("left_out", ())),
    )
    title, zero = what.capitalize(), what == "correlation"
    return Content(title, described, rows, zero, None, (statement,), statement.notes, file)


def _summary(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written["statement"])
    described: tuple[str, ...] = (
        (
            f"A summary of {counted(len(written['columns']), 'column')}, of "
            f"{counted(statement.n, 'row')}."
        ),
        f"Intervals are of {100 * written['confidence']:g} %.",
        "Counts and shares of missing cells describe these rows. Their intervals allow for noise.",
        "Other intervals are for the population. They allow for noise, sampling and clipping.",
    )
    described = (*described, *said_of_left_out(written.get("left_out", ())))
    if statement.max_rows is not None:
        described = (*described, "Cells of rows beyond max_rows of a person count as missing.")
    parts = tuple(_column(name, facts, file) for name, facts in written["columns"].items())
    notes = (*statement.notes, *map(str, written.get("warnings", ())))
    return Content("Summary", described, (), False, None, (statement,), notes, file, parts)


def _column(name: str, facts: Mapping[str, Any], file: str) -> Content:
    rows = tuple(
        Row(FACTS.get(fact, fact), one["value"], one["low"], one["high"])
        for fact, one in facts.items()
        if fact not in ("count", "zeros", "missing")
    )
    count = facts["count"]
    zeros, missing = (_percentage(facts[fact]) for fact in ("zeros", "missing"))
    described = (
        (
            f"Between {count['low']:,.0f} and {count['high']:,.0f} cells hold a number. "
            f"Missing cells: {missing}."
        ),
        f"Zeros among the numbers: {zeros}.",
    )
    return Content(f"Column {name}", described, rows, False, None, (), (), file)


def _statement(written: Mapping[str, Any], file: str) -> Content:
    statement = Statement.from_json(written)
    described = (f"{statement.label}, from {counted(statement.n, 'row')}.",)
    return Content("Release", described, (), False, None, (statement,), statement.notes, file)


_READERS = {
    "privtail-model": _model,
    "privtail-evaluation": _evaluation,
    "privtail-comparison": _comparison,
    "privtail-mean": _means,
    "privtail-count": _counts,
    "privtail-quantile": _quantiles,
    "privtail-histogram": _histogram,
    "privtail-covariance": _matrix,
    "privtail-correlation": _matrix,
    "privtail-statement": _statement,
    "privtail-summary": _summary,
}


def _words(name: str) -> str:
    short = ("mae", "rmse", "r2", "d2", "auc")
    return " ".join(part.upper() if part in short else part for part in name.split("_"))


def _percentage(share: Mapping[str, Any]) -> str:
    """A share by its interval: a number alone would be read as if it were known."""
    low, high = share["low"], share["high"]
    if share["value"] is None or low is None or high is None:
        return "an unknown part"
    if high < 0.0005:
        return "none"
    if low <= 0:
        return f"at most {100 * high:.1f} %"
    return f"{100 * low:.1f} to {100 * high:.1f} %"
