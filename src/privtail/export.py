"""A released model as a plain scikit-learn estimator, as SQL, or as Python without any library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from privtail.errors import InvalidInput, told
from privtail.model import Model
from privtail.model.predicting import LARGEST_LOG
from privtail.schema.encoding import Cell, Design, Gap, Levels, Part, Product
from privtail.schema.features import Bins, Log, Spline

Language = Literal["sql", "python"]
LANGUAGES: tuple[Language, ...] = ("sql", "python")
LARGEST = float(np.finfo(np.float64).max)


def to_sklearn(model: Model) -> Any:
    """A fitted estimator of scikit-learn with the same slopes.

    It is a `LinearRegression`, a `PoissonRegressor` or a `LogisticRegression`. It takes
    the features as the model sees them (`Model.design`, names in ``model.features``): numbers, and
    0/1 for each declared category. It clips nothing: where features or predictions lie beyond the
    ranges that the model holds, it extrapolates and the model does not. It can be pickled, and
    tools that know scikit-learn can convert it, for example to ONNX.
    """
    from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

    estimator: Any
    if model.classes is not None:
        estimator = LogisticRegression()
        estimator.classes_ = np.array(model.classes)
        estimator.coef_, estimator.intercept_ = model.coef.copy(), model.intercept.copy()
        estimator.n_iter_ = np.array([0])
    else:
        estimator = PoissonRegressor() if model.link == "log" else LinearRegression()
        # The type that scikit-learn gives it: tools ask it for a shape.
        estimator.coef_, estimator.intercept_ = model.coef[0].copy(), model.intercept[0]
        if model.link == "log":
            estimator.n_iter_ = 0
            estimator._base_loss = estimator._get_loss()  # noqa: SLF001  fit makes it; predict asks it
    estimator.n_features_in_ = len(model.features)
    return estimator


def to_code(model: Model, language: Language) -> str:
    """A program that predicts as the model does, clipping included, and needs no library.

    ``"sql"``: a SELECT list of expressions over columns named as the model's, standard SQL but for
    EXP, which all large databases have. Numbers and counts: the prediction. Labels: the probability
    of each. Cast Boolean columns to integers first. Where a number is NULL, infinite or NaN, the
    prediction is NULL; if missing numbers have an indicator, NULL is what is missing. ``"python"``:
    a function ``predict(row)`` of a mapping from column names to values; NaN where the model
    predicts nothing.

    Raises
    ------
    InvalidInput
        If the language is another, or the model was not loaded from a file.
    """
    if not isinstance(model, Model):
        raise InvalidInput(
            f"A loaded model is needed, got {told(model)}. Pass privtail.load(path), after "
            "model.save(path) of a fitted one."
        )
    if language == "sql":
        return _sql(model)
    if language == "python":
        return _python(model)
    raise InvalidInput(f"The language must be {' or '.join(LANGUAGES)}, got {language!r}.")


RATES = "for an exposure of 1: multiply by that of a row"
"""What the code of a model of rates predicts."""


# --- SQL ------------------------------------------------------------------------------------------


def _sql(model: Model) -> str:
    scores = [_sql_score(model, k) for k in range(len(model.coef))]
    rates = "" if model.exposure is None else f", {RATES}"
    head = f"-- {model.kind} model of {_comment(model.target)} by privtail{rates}"
    if model.classes is None:
        value = scores[0]
        if model.link == "log":
            value = f"EXP({_between(value, -LARGEST_LOG, LARGEST_LOG)})"
        value = _known(_between(value, *model.target_range), model)
        return f"{head}\n{value} AS {_quoted('prediction')}\n"
    ends = np.broadcast_to(model.margin_range, (len(scores), 2)).tolist()
    scores = [_between(score, *pair) for score, pair in zip(scores, ends, strict=True)]
    if len(scores) == 1:
        second = f"1 / (1 + EXP(-({scores[0]})))"
        parts = [f"1 - {second}", second]
    else:
        total = " + ".join(f"EXP({score})" for score in scores)
        parts = [f"EXP({score}) / ({total})" for score in scores]
    names = (_quoted(f"probability of {label}") for label in model.classes)
    lines = (f"{_known(part, model)} AS {name}" for part, name in zip(parts, names, strict=True))
    return head + "\n" + ",\n".join(lines) + "\n"


def _known(value: str, model: Model) -> str:
    """NULL where the model predicts nothing: databases order NaN above all numbers, or nowhere."""
    missing = "{0} IS NULL OR " if model.encoded.indicator else ""
    finite = f"({missing}{{0}} BETWEEN -{LARGEST!r} AND {LARGEST!r})"
    asked = " AND ".join(finite.format(_quoted(name)) for name in model.numeric)
    return f"CASE WHEN {asked} THEN {value} END" if asked else value


def _sql_score(model: Model, output: int) -> str:
    terms = [_number(model.intercept[output])]
    for part, places in model.encoded.placed():
        slopes, ranges = model.coef[output][places], model.feature_range[places]
        if isinstance(part.source, Levels):
            terms.append(_sql_cases(part, slopes, ranges))
            continue
        values = _sql_values(part, model.encoded)
        for value, slope, ends, fill in zip(
            values, slopes, ranges, np.broadcast_to(model.fill, model.coef[0].shape)[places],
            strict=True,
        ):  # fmt: skip
            filled = f"COALESCE({value}, {_number(fill)})" if part.optional else value
            inside = filled if part.bounded else _between(filled, *ends)
            terms.append(f"{_number(slope)} * {inside}")
    return "(" + "\n  + ".join(terms) + ")"


def _sql_cases(part: Part, slopes: Any, ranges: Any) -> str:
    """The slope of the category that a row holds."""
    values = [value for k, value in enumerate(part.source.values) if k != part.base]  # type: ignore[union-attr]
    cases = (
        f"WHEN {_literal(label)} THEN {_number(slope * np.clip(1.0, *ends))}"
        for label, slope, ends in zip(values, slopes, ranges, strict=True)
    )
    return f"CASE {_quoted(part.columns[0])} {' '.join(cases)} ELSE 0 END" if values else "0"


def _sql_values(part: Part, design: Design) -> list[str]:
    """An expression for every feature of a part."""
    source = part.source
    if isinstance(source, Product):
        sides = (_sql_values(side, design) for side in (source.left, source.right))
        return [f"({left}) * ({right})" for left, right in itertools.product(*sides)]
    name = _quoted(source.column)
    if isinstance(source, Cell):
        return [name]
    if isinstance(source, Gap):
        return [f"CASE WHEN {name} IS NULL THEN 1 ELSE 0 END"]
    if isinstance(source, Levels):
        held = [value for k, value in enumerate(source.values) if k != part.base]
        return [f"CASE WHEN {name} = {_literal(value)} THEN 1 ELSE 0 END" for value in held]
    if isinstance(source, Log):
        moved = f"{name} + {_number(source.plus)}"
        return [f"CASE WHEN {moved} > 0 THEN LN({moved}) ELSE NULL END"]
    start = f"CASE WHEN {name} IS NULL THEN {0 if design.indicator else 'NULL'}"
    if isinstance(source, Bins):
        ends = [(low, high) for k, (low, high) in enumerate(_intervals(source)) if k != part.base]
        return [f"{start} WHEN {_sql_inside(name, *pair)} THEN 1 ELSE 0 END" for pair in ends]
    inside = _between(name, source.knots[0], source.knots[-1])
    found = []
    for k in range(source.pieces.shape[2]):
        texts = []
        for i, knot in enumerate(source.knots[:-1]):
            away, text = f"({inside} - {_number(knot)})", "0"
            for c in source.pieces[:, i, k]:
                text = _number(c) if text == "0" else f"({text} * {away} + {_number(c)})"
            texts.append(text)
        cases = (
            f"WHEN {name} < {_number(knot)} THEN {text}"
            for knot, text in zip(source.knots[1:-1], texts[:-1], strict=True)
        )
        found.append(" ".join([start, *cases, f"ELSE {texts[-1]} END"]))
    return found


def _intervals(bins: Bins) -> list[tuple[float, float]]:
    return list(itertools.pairwise([-math.inf, *bins.edges, math.inf]))


def _sql_inside(name: str, low: float, high: float) -> str:
    ends = [f"{name} >= {_number(low)}"] * (low > -math.inf)
    return " AND ".join(ends + [f"{name} < {_number(high)}"] * (high < math.inf))


def _between(value: str, low: float, high: float) -> str:
    cases = ""
    if low > -math.inf:
        cases += f" WHEN {value} < {_number(low)} THEN {_number(low)}"
    if high < math.inf:
        cases += f" WHEN {value} > {_number(high)} THEN {_number(high)}"
    return f"CASE{cases} ELSE {value} END" if cases else value


def _number(x: float) -> str:
    text = repr(float(x))
    return f"({text})" if x < 0 else text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(label: Any) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    if isinstance(label, str):
        return "'" + label.replace("'", "''") + "'"
    return repr(label)


def _comment(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ")


# --- Python ---------------------------------------------------------------------------------------

_PROGRAM = '''"""A {kind} model by privtail: predict(row) needs no library{rates}."""

import math

COEF = {coef}
INTERCEPT = {intercept!r}
FEATURE_RANGE = {feature_range}
NUMBERS = {numbers!r}


def number(x):
    return math.nan if x is None else float(x)


def clipped(x, low, high):
    return min(max(x, low), high)

{functions}
def features(row):
    """Numbers in the order of the slopes; a category is 1 for its own label and 0 for others."""
    found = [
{features}    ]
    if not all(map(math.isfinite, found)) or any(math.isinf(number(row[x])) for x in NUMBERS):
        return [math.nan] * len(found)
    return [clipped(x, *ends) for x, ends in zip(found, FEATURE_RANGE)]


def scores(row):
    x = features(row)
    return [b + sum(w * v for w, v in zip(slopes, x)) for b, slopes in zip(INTERCEPT, COEF)]


def predict(row):
{predict}
'''

_NUMBERS = """    return clipped(scores(row)[0], {low}, {high})"""
_COUNTS = """    score = clipped(scores(row)[0], -30.0, 30.0)
    return clipped(math.exp(score), {low}, {high})"""
_TWO = '''    """The probability of each label."""
    score = clipped(scores(row)[0], {low}, {high})
    second = 0.0 if score <= -700 else 1 / (1 + math.exp(-score))
    return dict(zip({classes!r}, [1 - second, second]))'''
_MANY = '''    """The probability of each label."""
    ends = [{ends}]
    all_scores = [clipped(x, *pair) for x, pair in zip(scores(row), ends)]
    parts = [math.exp(score - max(all_scores)) for score in all_scores]
    return dict(zip({classes!r}, [part / sum(parts) for part in parts]))'''


def _python(model: Model) -> str:
    low, high = map(_python_number, model.target_range)
    if model.classes is None:
        predict = (_COUNTS if model.link == "log" else _NUMBERS).format(low=low, high=high)
    elif len(model.coef) == 1:
        low, high = map(_python_number, model.margin_range)
        predict = _TWO.format(low=low, high=high, classes=list(model.classes))
    else:
        ends = np.broadcast_to(model.margin_range, (len(model.coef), 2)).tolist()
        pairs = (f"[{_python_number(low)}, {_python_number(high)}]" for low, high in ends)
        predict = _MANY.format(classes=list(model.classes), ends=", ".join(pairs))
    return _PROGRAM.format(
        kind=model.kind,
        rates="" if model.exposure is None else f"; {RATES}",
        functions="".join(_needed(model.encoded)),
        features="".join(f"        {value},\n" for value in _python_features(model)),
        coef=_python_rows(model.coef.tolist()),
        intercept=model.intercept.tolist(),
        feature_range=_python_rows(model.feature_range.tolist()),
        numbers=model.numeric,
        predict=predict,
    )


_FUNCTIONS = {
    Bins: """
def inside(x, low, high, missing):
    return missing if math.isnan(x) else float(low <= x < high)

""",
    Spline: """
def spline(x, knots, pieces, missing):
    if math.isnan(x):
        return missing
    x = clipped(x, knots[0], knots[-1])
    i = max(k for k in range(len(pieces)) if k == 0 or knots[k] <= x)
    value = 0.0
    for c in pieces[i]:
        value = value * (x - knots[i]) + c
    return value

""",
    Log: """
def log(x):
    return math.log(x) if x > 0 else math.nan

""",
}
_FILLED = """
def filled(x, fill):
    return fill if math.isnan(x) else x

"""


def _needed(design: Design) -> list[str]:
    """The functions that the features of a design need."""
    sources, left = set(), [part.source for part in design.parts]
    while left:
        source = left.pop()
        sources.add(type(source))
        if isinstance(source, Product):
            left += [source.left.source, source.right.source]
    found = [text for kind, text in _FUNCTIONS.items() if kind in sources]
    return [*found, *[_FILLED] * bool(design.optional)]


def _python_features(model: Model) -> list[str]:
    """An expression for every feature."""
    found = []
    fills = np.broadcast_to(model.fill, model.coef[0].shape)
    for part, places in model.encoded.placed():
        values = _python_values(part, model.encoded)
        for value, fill in zip(values, fills[places], strict=True):
            found.append(f"filled({value}, {_python_number(fill)})" if part.optional else value)
    return found


def _python_values(part: Part, design: Design) -> list[str]:
    source = part.source
    if isinstance(source, Product):
        sides = (_python_values(side, design) for side in (source.left, source.right))
        return [f"{left} * {right}" for left, right in itertools.product(*sides)]
    cell, missing = f"row[{source.column!r}]", "0.0" if design.indicator else "math.nan"
    x = f"number({cell})"
    if isinstance(source, Cell):
        return [x]
    if isinstance(source, Gap):
        return [f"float(math.isnan({x}))"]
    if isinstance(source, Log):
        return [f"log({x} + {source.plus!r})"]
    if isinstance(source, Levels):
        held = [value for k, value in enumerate(source.values) if k != part.base]
        return [f"float({cell} == {value!r})" for value in held]
    if isinstance(source, Bins):
        ends = [pair for k, pair in enumerate(_intervals(source)) if k != part.base]
        shown = (", ".join(map(_python_number, pair)) for pair in ends)
        return [f"inside({x}, {pair}, {missing})" for pair in shown]
    pieces = source.pieces
    return [
        f"spline({x}, {list(source.knots)!r}, {pieces[:, :, k].T.tolist()!r}, {missing})"
        for k in range(pieces.shape[2])
    ]


def _python_rows(rows: Sequence[Sequence[float]]) -> str:
    lines = (f"    [{', '.join(map(_python_number, row))}],\n" for row in rows)
    return f"[\n{''.join(lines)}]"


def _python_number(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else f"{'-' if x < 0 else ''}math.inf"
