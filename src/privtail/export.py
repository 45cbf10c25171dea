"""A released model as a plain scikit-learn estimator, as SQL, or as Python without any library."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from privtail.errors import InvalidInput
from privtail.model import LARGEST_LOG, Column, Model

Language = Literal["sql", "python"]
LANGUAGES: tuple[Language, ...] = ("sql", "python")


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
        estimator.coef_, estimator.intercept_ = model.coef[0].copy(), float(model.intercept[0])
        if model.link == "log":
            estimator.n_iter_ = 0
            estimator._base_loss = estimator._get_loss()  # noqa: SLF001  fit makes it; predict asks it
    estimator.n_features_in_ = len(model.features)
    return estimator


def to_code(model: Model, language: Language) -> str:
    """A program that predicts as the model does, clipping included, and needs no library.

    ``"sql"``: a SELECT list of expressions over columns named as the model's, standard SQL but for
    EXP, which all large databases have. Numbers and counts: the prediction. Labels: the probability
    of each. Where a number is NULL, so is the prediction. ``"python"``: a function ``predict(row)``
    of a mapping from column names to values.

    Raises
    ------
    InvalidInput
        If the language is another.
    """
    if language == "sql":
        return _sql(model)
    if language == "python":
        return _python(model)
    raise InvalidInput(f"A model is exported to {' or '.join(LANGUAGES)}, not to {language!r}.")


# --- SQL ------------------------------------------------------------------------------------------


def _sql(model: Model) -> str:
    scores = [_sql_score(model, k) for k in range(len(model.coef))]
    head = f"-- {model.kind} model of {_comment(model.target)} by privtail"
    if model.classes is None:
        value = scores[0]
        if model.link == "log":
            value = f"EXP({_between(value, -LARGEST_LOG, LARGEST_LOG)})"
        value = _between(value, *model.target_range)
        return f"{head}\n{value} AS {_quoted('prediction')}\n"
    if len(scores) == 1:
        score = _between(scores[0], *model.margin_range)
        second = f"1 / (1 + EXP(-({score})))"
        parts = [f"1 - {second}", second]
    else:
        total = " + ".join(f"EXP({score})" for score in scores)
        parts = [f"EXP({score}) / ({total})" for score in scores]
    names = (_quoted(f"probability of {label}") for label in model.classes)
    lines = (f"{part} AS {name}" for part, name in zip(parts, names, strict=True))
    return head + "\n" + ",\n".join(lines) + "\n"


def _sql_score(model: Model, output: int) -> str:
    terms = [_number(model.intercept[output])]
    slopes = iter(zip(model.coef[output], model.feature_range, strict=True))
    for column, used in _columns(model, slopes):
        name = _quoted(column.name)
        if column.categories is None:
            ((slope, (low, high)),) = used
            terms.append(f"{_number(slope)} * {_between(name, low, high)}")
            continue
        cases = (
            f"WHEN {_literal(label)} THEN {_number(slope * np.clip(1.0, low, high))}"
            for label, (slope, (low, high)) in zip(column.categories, used, strict=True)
        )
        terms.append(f"CASE {name} {' '.join(cases)} ELSE 0 END")
    return "(" + "\n  + ".join(terms) + ")"


def _columns(model: Model, slopes: Iterator[Any]) -> Iterator[tuple[Column, list[Any]]]:
    """Every column with the slopes and ranges of its features."""
    for column in model.columns:
        yield column, [next(slopes) for _ in column.features]


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

_PROGRAM = '''"""A {kind} model by privtail: predict(row) needs no library."""

import math

COLUMNS = {columns!r}
CATEGORIES = {categories!r}
COEF = {coef}
INTERCEPT = {intercept!r}
FEATURE_RANGE = {feature_range}


def clipped(x, low, high):
    return min(max(x, low), high)


def features(row):
    """Numbers in the order of the slopes; a category is 1 for its own label and 0 for others."""
    found = []
    for name in COLUMNS:
        if name in CATEGORIES:
            found += [float(row[name] == label) for label in CATEGORIES[name]]
        else:
            found.append(float(row[name]))
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
    second = 1 / (1 + math.exp(-score)) if score > -700 else 0.0
    return dict(zip({classes!r}, [1 - second, second]))'''
_MANY = '''    """The probability of each label."""
    all_scores = scores(row)
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
        predict = _MANY.format(classes=list(model.classes))
    return _PROGRAM.format(
        kind=model.kind,
        columns=[column.name for column in model.columns],
        categories={name: list(labels) for name, labels in model.categories.items()},
        coef=_python_rows(model.coef.tolist()),
        intercept=model.intercept.tolist(),
        feature_range=_python_rows(model.feature_range.tolist()),
        predict=predict,
    )


def _python_rows(rows: Sequence[Sequence[float]]) -> str:
    lines = (f"    [{', '.join(map(_python_number, row))}],\n" for row in rows)
    return f"[\n{''.join(lines)}]"


def _python_number(x: float) -> str:
    return repr(float(x)) if math.isfinite(x) else f"{'-' if x < 0 else ''}math.inf"
