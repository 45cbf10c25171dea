"""Errors of a model's predictions on private records, row by row, for evaluation.

`Predicted`, `likelihoods`, `differences` and `excess_losses` compute, for each record, numbers such
as residuals and losses. The result is a `RowErrors`: a private table. Its `RowErrors.curator`
answers questions about it, and nothing else shows its rows. Nothing is billed before that curator
opens a plan.

Formal guarantee
----------------
Row i of a `RowErrors` is a function of row i of X and y alone, and of public numbers: the model, a
centre and a scale. So neighbouring records give neighbouring rows, and a release about these rows
has the sensitivity of the curator's question.

- A `LinearModel` is public numbers. Its predictions are computed here, row by row. A `FoldedModel`
  holds several of them. The position of a row decides which one predicts it.
- Any other model is a user's code. It is called with one row at a time, on a copy, unless the user
  promises ``trusted_rowwise``. The privacy statement prints that promise, and the assumption that
  the model keeps no state between rows. Containers whose rows hold cells of other rows are refused.
  If the model raises, or its answer has a wrong shape or is not a number, the row does not count.
  Then the others are asked about again, in a block of as many rows.
  Its warnings are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, xlogy

from privtail.compilation import QUIET, apart
from privtail.dask_collections import is_spread
from privtail.errors import InvalidInput
from privtail.schema.declared import Label
from privtail.schema.encoding import PLAIN, Encoding
from privtail.trusted.curator import Curator
from privtail.trusted.exactly import is_one_of
from privtail.trusted.losses.called import reply
from privtail.trusted.losses.together import together
from privtail.trusted.maps import MappedRows
from privtail.trusted.private_rows import PrivateRows
from privtail.trusted.records import InMemory, as_records, is_file, targets_of
from privtail.trusted.records.arrays import column_names, require_apart, require_read, taken
from privtail.trusted.search import rows_of
from privtail.trusted.tables import column_blocks, row_blocks, table_blocks

Doubles = NDArray[np.float64]
_BLOCK_ROWS = 8192
_FARTHEST = 1e150
"""Errors are clipped to this many scales, so that their squares are finite."""

LINKS: tuple[Literal["identity", "log", "logit"], ...] = ("identity", "log", "logit")
LARGEST_LOSS = float(-np.log(1e-3))
"""Largest log loss of a row: a probability below .001 counts as .001."""
_LARGEST_LOG = 30.0

PURE_MODEL = "The evaluated model keeps no state between rows."
ROWWISE_MODEL = (
    "Row i of the evaluated model's predictions depends on row i of X alone, and it raises for no "
    "row."
)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A released linear model: plain copies of its numbers.

    Attributes
    ----------
    coef : (K, d). intercept : (K,).
    feature_range : (d, 2), to which features are clipped.
    margin_range, target_range : (2,) or (K, 2), and (2,), to which margins and numbers are clipped.
    link : ``"identity"``, ``"log"`` or ``"logit"``.
    names, categories : the columns that are read from X; None if X has no column names.
    encoding, fill : the encoding of columns as features, as in `privtail.model.Model`.
    """

    coef: Doubles
    intercept: Doubles
    feature_range: Doubles
    margin_range: Doubles
    target_range: Doubles
    link: Literal["identity", "log", "logit"]
    names: Sequence[str] | None
    categories: Mapping[str, Sequence[Label]]
    encoding: Encoding = PLAIN
    fill: Doubles = field(default_factory=lambda: np.array(np.nan))

    assumptions = ()

    def __post_init__(self) -> None:
        # Plain copies: an array of another class would be shown whole blocks of rows.
        for name in ("coef", "intercept", "feature_range", "margin_range", "target_range", "fill"):
            own = np.array(getattr(self, name), np.float64, subok=False).copy()
            object.__setattr__(self, name, own)
        # Read once: which rows are encoded as one block, in a file other rows decide.
        own_names = None if self.names is None else tuple(map(str.__str__, self.names))
        declared = {str.__str__(name): tuple(listed) for name, listed in self.categories.items()}
        if type(self.encoding) is not Encoding or self.link not in LINKS:
            raise InvalidInput("A LinearModel must have an Encoding, and one of the known links.")
        object.__setattr__(self, "names", own_names)
        object.__setattr__(self, "categories", declared)
        object.__setattr__(self, "encoding", replace(self.encoding))
        object.__setattr__(self, "link", LINKS[LINKS.index(self.link)])

    @np.errstate(all="ignore")
    def predictions(self, X: Any, labels: int | None) -> Doubles:
        """Predictions (rows,), or log-probabilities (rows, ``labels``); NaN without one."""
        parts = [self._of(z) for z in self._blocks(X)]
        width = () if labels is None else (labels,)
        return np.concatenate([np.empty((0, *width)), *parts])

    def _blocks(self, X: Any) -> Iterator[Doubles]:
        if self.names is not None and not (isinstance(X, np.ndarray) and not self.categories):
            return table_blocks(X, self.names, self.categories, self.encoding, self.fill)
        records = as_records(X, encoding=self.encoding)
        if not isinstance(records, InMemory) or records.d != self.coef.shape[1]:
            raise InvalidInput(
                f"X must have the {self.coef.shape[1]} features of the model, not {records.d}."
            )
        return row_blocks(records, self.fill)

    def _of(self, z: Doubles) -> Doubles:
        rows = MappedRows.as_they_are(np.ascontiguousarray(z)).clipped(self.feature_range)
        margins, _, counted = rows.margins(np.ascontiguousarray(self.coef.T), self.intercept)
        margins[~counted] = np.nan
        if self.link == "logit":
            largest = np.arange(len(margins)), margins.argmax(axis=1)
            margins = np.clip(margins, self.margin_range[..., 0], self.margin_range[..., 1])
            if len(self.coef) == 1:
                margins = np.hstack([np.zeros_like(margins), margins])
            else:
                margins[largest] += 1e-12  # of labels that are clipped alike, as `predict` does
            return np.asarray(log_softmax(margins, axis=1))
        numbers = margins[:, 0]
        if self.link == "log":
            numbers = np.exp(np.clip(numbers, -_LARGEST_LOG, _LARGEST_LOG))
        return np.asarray(np.clip(numbers, *self.target_range))


@dataclass(frozen=True, eq=False)
class OutsideModel:
    """A user's model: ``predict`` gives numbers (rows,) or probabilities (rows, K)."""

    predict: Callable[[Any], Any]
    trusted_rowwise: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "trusted_rowwise", bool(self.trusted_rowwise))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The assumptions of a promise about its predictions; the statement prints them."""
        return (PURE_MODEL, ROWWISE_MODEL) if self.trusted_rowwise else (PURE_MODEL,)

    def predictions(self, X: Any, labels: int | None) -> Doubles:
        """Predictions (rows,), or log-probabilities (rows, ``labels``); NaN where there is none."""
        if is_file(X):
            raise InvalidInput(
                "A model that is not privtail's is evaluated on rows in memory: pass an array or a "
                "data frame in place of a file."
            )
        if not self.trusted_rowwise:
            require_apart(X)
        n = _length(X)
        width = () if labels is None else (labels,)
        found = np.full((n, *width), np.nan)
        step = _BLOCK_ROWS if self.trusted_rowwise else 1
        for start in range(0, n, step):
            ids = np.arange(start, min(start + step, n))
            found[ids] = apart(partial(self._predicted, X, ids, (len(ids), *width)))
        if labels is None:
            return found
        valid = np.isfinite(found).all(axis=1) & (found >= 0).all(axis=1)
        with np.errstate(all="ignore"):
            found = np.log(found / found.sum(axis=1, keepdims=True))
        found[~valid] = np.nan
        return np.asarray(found)

    def _predicted(self, X: Any, ids: NDArray[np.int64], shape: tuple[int, ...]) -> Doubles:
        def said(some: NDArray[np.int64], shape: tuple[int, ...]) -> Doubles | None:
            return reply(lambda: self.predict(taken(X, some)), shape)

        with np.errstate(all="ignore"), QUIET:
            return together(said, ids, shape)


@dataclass(frozen=True, eq=False)
class FoldedModel:
    """Released models, one for each fold; the model of its own fold predicts a row.

    Formal guarantee
    ----------------
    The prediction for row i is a function of row i, of i and of public numbers.
    """

    models: tuple[LinearModel, ...]
    folds: NDArray[np.int64]

    assumptions = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "folds", np.array(self.folds, np.int64, subok=False).copy())
        models = tuple(self.models)
        if any(type(model) is not LinearModel for model in models):
            raise InvalidInput("The models of folds must be linear models that were released.")
        object.__setattr__(self, "models", tuple(map(_own, models)))

    def predictions(self, X: Any, labels: int | None) -> Doubles:
        """Predictions (rows,), or log-probabilities (rows, ``labels``); NaN where X has gaps."""
        n = _length(X)
        if n != len(self.folds):
            raise InvalidInput(f"X must have the {len(self.folds)} rows of the folds, not {n}.")
        found = np.full((n, *(() if labels is None else (labels,))), np.nan)
        for fold, model in enumerate(self.models):
            own = np.flatnonzero(self.folds == fold)
            found[own] = model.predictions(rows_of(X, own), labels)
        return found


AnyModel = LinearModel | OutsideModel | FoldedModel


def _own(model: AnyModel) -> AnyModel:
    """A copy of a model, which is read once."""
    if not is_one_of(model, (LinearModel, OutsideModel, FoldedModel)):
        raise InvalidInput("A model must be a LinearModel, a FoldedModel or an OutsideModel.")
    return replace(model)


class RowErrors(PrivateRows):
    """A private table of the errors of a model, one row for each record.

    Parameters
    ----------
    columns : (n, p) numbers of each record.
    places : (n,) a number for histograms, which is the target of the curator, or None.
    """

    def __init__(
        self, columns: Doubles, places: Doubles | None, assumptions: Sequence[str]
    ) -> None:
        self._columns, self._places = columns, places
        self._assumptions = tuple(assumptions)

    def curator(self, **options: Any) -> Curator:
        """A curator for questions about these rows; ``places`` are the target."""
        assumptions = self._assumptions
        return Curator(self._columns, self._places, assumptions=assumptions, **options)


class Predicted(PrivateRows):
    """Numeric targets and a model's predictions of them. All refusals happen here.

    An ``exposure`` multiplies the prediction and the constant. A row without a positive finite
    exposure has no target. The exposure is a column of the record.
    """

    def __init__(self, X: Any, y: Any, model: AnyModel, exposure: Any = None) -> None:
        self._y = _target(X, y)
        model = _own(model)
        self._predicted = _same_length(model.predictions(X, None), self._y)
        self._assumptions, self._exposed = model.assumptions, exposure is not None
        self._exposure = np.ones(len(self._y))
        if exposure is not None:
            found = _same_length(_target(X, exposure), self._y)
            usable = (found > 0) & (found < np.inf)
            self._exposure, self._y = (
                np.where(usable, found, 1.0),
                np.where(usable, self._y, np.nan),
            )
            with np.errstate(all="ignore"):
                self._predicted = self._predicted * self._exposure

    def target(self, power: float | None = None) -> RowErrors:
        """The target, and its exposure if there is one, (n, 1) or (n, 2).

        A target that no Tweedie model of this ``power`` allows does not count, as in `errors`.
        """
        y = self._y if power is None else np.where(_allowed(self._y, float(power)), self._y, np.nan)
        exposure = np.where(np.isnan(y), np.nan, self._exposure)
        return RowErrors(np.column_stack([y, exposure])[:, : 1 + self._exposed], None, ())

    def errors(self, centre: float, scale: float, power: float | None = None) -> RowErrors:
        """|r| and r^2 of the model, r^2 of the constant ``centre``; residuals r are over ``scale``.

        With a ``power``, two more columns are the unit deviances of a Tweedie model of this power,
        for the model and for the constant, over that of a residual of ``scale`` at the constant. A
        row with a target that such a model does not allow does not count. Residuals and deviances
        are clipped at `_FARTHEST`. Means of these columns need clipping, too.
        """
        centre, scale = float(centre), float(scale)  # what they are multiplied by is private
        power = None if power is None else float(power)
        constant = centre * self._exposure
        with np.errstate(all="ignore"):
            away = np.abs(np.column_stack([self._y - self._predicted, self._y - constant])) / scale
        away = np.minimum(away, _FARTHEST)  # NaN stays: the row counts for nothing
        away[~np.isfinite(self._y)] = np.nan
        first, second = away.T
        columns = [first, first**2, second**2]
        if power is not None:
            unit = deviance_unit(centre, scale, power)
            columns += [
                deviances(self._y, expected, power) / unit
                for expected in (self._predicted, constant)
            ]
        return RowErrors(np.column_stack(columns), None, self._assumptions)

    def below(self) -> RowErrors:
        """1, and whether target <= prediction (0 or 1), both less 1/2, so in [-1/2, 1/2]."""
        columns = np.column_stack([np.ones(len(self._y)), self._y <= self._predicted]) - 0.5
        columns[~np.isfinite(self._y) | np.isnan(self._predicted)] = np.nan
        return RowErrors(columns, None, self._assumptions)


def deviance_unit(centre: float, scale: float, power: float) -> float:
    """Unit deviance of a residual of ``scale`` at ``centre``, to second order: a number above 0.

    Extreme arguments are clipped, because their powers are not finite.
    """
    ratio = min(max(scale / centre, 1e-75), 1e75)
    return float(ratio**2 * min(max(centre, 1e-150), 1e150) ** (2 - power))


def _allowed(y: Doubles, power: float) -> NDArray[np.bool_]:
    """(rows,) whether a Tweedie model of this power allows each amount."""
    return np.isfinite(y) & ((y > 0) if power == 2 else (y >= 0))


def deviances(y: Doubles, expected: Doubles, power: float) -> Doubles:
    """Unit deviances of amounts from their expectations, row by row, (rows,), at least 0.

    NaN where either is missing, or no model of this power allows the amount: a negative one, and
    zero at power 2. They are clipped at `_FARTHEST`, which is also the value where an expectation
    is not positive.
    """
    allowed = _allowed(y, power) & ~np.isnan(expected)
    with np.errstate(all="ignore"):
        if power == 1:
            found = xlogy(y, y / expected) - y + expected
        elif power == 2:
            found = np.log(expected / y) + y / expected - 1
        else:
            p, q = 1 - power, 2 - power
            found = y**q / (p * q) - y * expected**p / p + expected**q / q
        found = np.where((expected > 0) & ~np.isnan(found), 2 * found, np.inf)
    return np.where(allowed, np.clip(found, 0.0, _FARTHEST), np.nan)


def differences(
    X: Any, y: Any, first: AnyModel, second: AnyModel, exposure: Any = None
) -> RowErrors:
    """The absolute error of the first model less that of the second, (n, 1).

    An ``exposure`` is that of `Predicted`.
    """
    one, two = (Predicted(X, y, model, exposure) for model in (first, second))
    with np.errstate(all="ignore"):
        larger = np.abs(one._y - one._predicted) - np.abs(two._y - two._predicted)
    assumptions = dict.fromkeys((*one._assumptions, *two._assumptions))
    return RowErrors(larger[:, None], None, tuple(assumptions))


def likelihoods(X: Any, y: Any, model: AnyModel, classes: Sequence[Label]) -> RowErrors:
    """1, whether wrong, log loss and its square of labels, all less 1/2; (n, 4), in [-1/2, 1/2].

    Log losses are over `LARGEST_LOSS`, and at most 1. ``places`` are, for two classes, the log-odds
    of the second, plus `APART` if the label is the second; for K > 2 classes, K times the label
    plus the predicted label.
    """
    codes, model = _target(X, y, classes), _own(model)
    logs = _same_length(model.predictions(X, len(classes)), codes)
    valid = np.isfinite(codes) & ~np.isnan(logs).any(axis=1)
    label = np.where(valid, codes, 0).astype(np.int64)
    loss = _losses(logs, label)
    predicted = np.where(valid[:, None], logs, 0.0).argmax(axis=1)
    columns = np.column_stack([np.ones(len(loss)), predicted != label, loss, loss**2]) - 0.5
    columns[~valid] = np.nan
    if len(classes) == 2:
        with np.errstate(all="ignore"):
            odds = np.clip(logs[:, 1] - logs[:, 0], -FARTHEST_ODDS, FARTHEST_ODDS)
        places = odds + APART * label
    else:
        places = (len(classes) * label + predicted).astype(np.float64)
    places[~valid] = np.nan
    return RowErrors(columns, places, model.assumptions)


def excess_losses(
    X: Any, y: Any, first: AnyModel, second: AnyModel, classes: Sequence[Label]
) -> RowErrors:
    """1/2, h, and 4 h^2 - 1/2, where h is half the difference of two models' log losses; (n, 3).

    Log losses are over `LARGEST_LOSS`; all entries are in [-1/2, 1/2].
    """
    codes, first, second = _target(X, y, classes), _own(first), _own(second)
    logs = [_same_length(model.predictions(X, len(classes)), codes) for model in (first, second)]
    valid = np.isfinite(codes) & ~np.isnan(np.hstack(logs)).any(axis=1)
    label = np.where(valid, codes, 0).astype(np.int64)
    half = (_losses(logs[0], label) - _losses(logs[1], label)) / 2
    columns = np.column_stack([np.full(len(half), 0.5), half, 4 * half**2 - 0.5])
    columns[~valid] = np.nan
    assumptions = dict.fromkeys((*first.assumptions, *second.assumptions))
    return RowErrors(columns, None, tuple(assumptions))


FARTHEST_ODDS = 40.0
APART = 128.0
"""Log-odds are clipped at `FARTHEST_ODDS`; those of the second label are shifted by this."""


def _losses(logs: Doubles, label: NDArray[np.int64]) -> Doubles:
    """Log losses in [0, 1], in units of `LARGEST_LOSS`; NaN where there is no prediction."""
    own = np.take_along_axis(logs, label[:, None], axis=1)[:, 0]
    return np.asarray(np.minimum(-own / LARGEST_LOSS, 1.0))


def _same_length(predicted: Doubles, y: Doubles) -> Doubles:
    if len(predicted) != len(y):
        raise InvalidInput(f"X must have the {len(y)} rows of y, not {len(predicted)}.")
    return predicted


def _named(X: Any) -> bool:
    return column_names(X) is not None


def _length(X: Any) -> int:
    if is_file(X):
        return X.n
    if not _named(X):
        return as_records(X, {}).n
    if isinstance(X, Mapping):
        return len(next(iter(X.values()), ()))
    return len(X)


def _target(X: Any, y: Any, classes: Sequence[Label] | None = None) -> Doubles:
    """The target as doubles, or as positions among ``classes``; NaN where it is none of them."""
    _require_here(X, y)
    if not is_file(X):
        require_read(X)
    if isinstance(y, str) and not is_file(X):
        return _target(X, _column(X, y), classes)
    if not isinstance(y, str):
        return _read(y, classes)
    X.require([y := str.__str__(y)], "to compare predictions with")
    if classes is None:
        X.require_numeric(y)
        blocks = column_blocks(X, [y], {})
    else:
        classes = X.typed(y, classes)
        blocks = column_blocks(X, [], {y: classes})
    return np.concatenate([np.empty(0), *(_read(block[y], classes) for block in blocks)])


def _read(y: Any, classes: Sequence[Label] | None) -> Doubles:
    sized = hasattr(type(y), "__len__")
    if sized:
        require_read(y)
    if not sized or getattr(y, "shape", None) == ():
        kind = type(y).__name__
        raise InvalidInput(f"y needs one value for each row, not what a {kind} holds. Pass a list.")
    targets: Any = targets_of(y, len(y), None if classes is None else tuple(classes))
    return np.asarray(targets.rows(slice(0, len(y))))


def _require_here(X: Any, y: Any) -> None:
    """Refuse Dask collections: only computed cells tell their type."""
    if is_spread(X, y):
        raise InvalidInput(
            "A model is evaluated on rows in memory or in files, and these are on a Dask cluster. "
            "Write them to Parquet, and pass what privtail.open_table(folder) gives."
        )


def _column(X: Any, name: str) -> Any:
    if name not in (column_names(X) or ()):
        raise InvalidInput(f"X has no column {name!r}: pass the target y as an array or a column.")
    return X[name]
