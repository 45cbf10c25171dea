"""Fitted models as JSON: what is needed to predict, and what it cost."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privtail.coefficients import CoefficientTable
from privtail.errors import InvalidInput
from privtail.gaps import Gaps
from privtail.losses import require_power
from privtail.schema.declared import Label, whole
from privtail.schema.encoding import PLAIN, Design, Encoding
from privtail.statement import Statement
from privtail.trusted.tables import TableFile, table_blocks
from privtail.written import written_whole

Link = Literal["identity", "log", "logit"]

LINKS: dict[str, Link] = {
    "linear": "identity",
    "ridge": "identity",
    "lasso": "identity",
    "elastic-net": "identity",
    "huber": "identity",
    "lad": "identity",
    "quantile": "identity",
    "poisson": "log",
    "gamma": "log",
    "tweedie": "log",
    "logistic": "logit",
    "sparse": "identity",
    "sparse-logistic": "logit",
}
"""How a model of each kind makes predictions of its scores; a generalized one says it itself."""

GENERALIZED = "generalized"
LARGEST_LOG = 30.0
"""Expected counts are exp(score) of scores clipped to plus or minus this."""

_FORMAT, _VERSION = "privtail-model", 6


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that `Model.save` or ``privtail fit`` wrote.

    Parameters
    ----------
    path : path
        A file of JSON.

    Returns
    -------
    Model

    Raises
    ------
    InvalidInput
        If the file cannot be read or is not such a model.

    Examples
    --------
    >>> import privtail
    >>> model = privtail.load("model.json")  # doctest: +SKIP
    >>> model.predict(frame), model.statement  # doctest: +SKIP
    """
    path = Path(path)
    try:
        content = json.loads(path.read_bytes()) if path.is_file() else None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON, so it is no model of privtail.") from None
    if content is None:
        raise InvalidInput(f"There is no file {path}.")
    try:
        return Model.from_json(content)
    except InvalidInput as error:
        raise InvalidInput(f"{path} is no model of privtail that can be used. {error}") from None


@dataclass(frozen=True)
class Column:
    """A column that a model reads: a number, or one of declared categories."""

    name: str
    categories: tuple[Label, ...] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A released linear model.

    Attributes
    ----------
    kind : str
        What was fitted: a name of `LINKS`, or ``"generalized"``.
    target : str
        Name of what is predicted.
    columns : tuple of Column
        The feature columns, in order.
    classes : tuple or None
        Labels in order; None for numbers.
    coef : ndarray of shape (K, n_features)
        Slopes; K = 1 for numbers and for two classes.
    intercept : ndarray of shape (K,)
        Scores where all features are 0.
    statement : Statement
        What was spent.
    link : {"identity", "log", "logit"}
        What a prediction is: the score, its exponential, or the most probable label.
    feature_range : ndarray of shape (n_features, 2)
        Ends to which features are clipped before they are scored, so that the model extrapolates no
        farther than what was released of them. Infinite by default, and in files of earlier
        versions.
    target_range : ndarray of shape (2,)
        Ends to which predictions of numbers and counts are clipped.
    margin_range : ndarray of shape (2,)
        Ends to which scores of two classes are clipped.
    noise_std, sampling_std : ndarray of shape (K, n_features)
        Standard deviations of what noise, and the sampling of the rows, did to ``coef``. Infinite
        for a feature that is not used, NaN where not known, as in files of earlier versions.
    encoding : Encoding
        What was declared of the features beside categories.
    fill : ndarray of shape (n_features,)
        What a missing number counts as; NaN where its row has no prediction.
    power : float or None
        Of the mean in the variance, of counts and amounts.
    exposure : str or None
        What the exposure of the fit was called: predictions are rates for one of it.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPRidge
    >>> X = np.random.default_rng(0).normal(size=(1_000, 2))
    >>> model = DPRidge(noise="simulated", random_state=0).fit(X, X[:, 0]).to_model()
    >>> model.predict(X).shape
    (1000,)
    """

    kind: str
    target: str
    columns: tuple[Column, ...]
    classes: tuple[Label, ...] | None
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    statement: Statement
    link: Link = "identity"
    feature_range: NDArray[np.float64] = field(default_factory=lambda: _endless(1))
    target_range: NDArray[np.float64] = field(default_factory=lambda: _endless(1)[0])
    margin_range: NDArray[np.float64] = field(default_factory=lambda: _endless(1)[0])
    noise_std: NDArray[np.float64] = field(default_factory=lambda: np.array(math.nan))
    sampling_std: NDArray[np.float64] = field(default_factory=lambda: np.array(math.nan))
    encoding: Encoding = PLAIN
    fill: NDArray[np.float64] = field(default_factory=lambda: np.array(math.nan))
    power: float | None = None
    exposure: str | None = None

    @classmethod
    def of(cls, estimator: Any, *, target: str, columns: Sequence[Column]) -> Model:
        """The model that a fitted estimator of `privtail.linear_model` holds.

        Parameters
        ----------
        estimator : estimator
            A fitted one.
        target : str
            Name of what it predicts.
        columns : sequence of Column
            The feature columns, in order.

        Returns
        -------
        Model
        """
        classes = getattr(estimator, "classes_", None)
        return cls(
            kind=estimator.kind,
            target=target,
            columns=tuple(columns),
            classes=None if classes is None else tuple(whole(c) for c in classes.tolist()),
            coef=np.atleast_2d(estimator.coef_),
            intercept=np.atleast_1d(estimator.intercept_),
            statement=estimator.privacy_,
            link=estimator.link,
            feature_range=estimator.feature_range_,
            target_range=getattr(estimator, "target_range_", _endless(1)[0]),
            margin_range=getattr(estimator, "margin_range_", _endless(1)[0]),
            noise_std=np.atleast_2d(estimator.coef_noise_std_),
            sampling_std=np.atleast_2d(estimator.coef_sampling_std_),
            encoding=estimator.encoding_,
            fill=estimator.fill_,
            power=getattr(estimator, "variance_power", None),
            exposure=getattr(estimator, "exposure_", None),
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the coefficients, such as ``age`` and ``education=Masters``."""
        return self.encoded.names

    @functools.cached_property
    def encoded(self) -> Design:
        """From columns to features."""
        return self.encoding.design([c.name for c in self.columns], self.categories)

    def get_feature_names_out(self) -> NDArray[Any]:
        """Names of the coefficients, in the order of ``coef``.

        Returns
        -------
        ndarray of str
        """
        return np.array(self.features, dtype=object)

    @property
    def numeric(self) -> list[str]:
        """Names of the columns of numbers."""
        return [column.name for column in self.columns if column.categories is None]

    @property
    def categories(self) -> dict[str, tuple[Label, ...]]:
        """Declared categories of the others, by name."""
        return {c.name: c.categories for c in self.columns if c.categories is not None}

    # ---------------------------------------------------------------- use

    def predict(self, data: Any, exposure: Any = None) -> NDArray[Any]:
        """Numbers, expected counts or amounts, or labels.

        Parameters
        ----------
        data : data frame, Arrow table, mapping, table of `privtail.open_table` or path
            Columns are found by name; others are ignored. A category that was not declared is all
            zeros. A model that was fitted on an array takes arrays.
        exposure : array of shape (rows,) or str, default=None
            Of models with the log link: what is expected for one is multiplied by it; the name of a
            column of ``data``, or an array.

        Returns
        -------
        ndarray of shape (rows,)
            NaN, or None if labels are text, where a number of the row is missing or not finite, or
            its exposure not positive.

        Raises
        ------
        InvalidInput
            If a column is missing, or holds text where numbers are needed.
        """
        answers = self.answers(self.decision_function(data))
        if exposure is None:
            return answers
        if self.link != "log":
            raise InvalidInput(f"A {self.kind} model has no exposure: its link is no logarithm.")
        if isinstance(exposure, str):
            exposure = np.concatenate([np.empty((0, 1)), *table_blocks(data, [exposure], {})])
        return np.asarray(answers * usable_exposure(exposure))

    def answers(self, scores: NDArray[np.float64]) -> NDArray[Any]:
        """Predictions from `decision_function`.

        Parameters
        ----------
        scores : ndarray of shape (rows,) or (rows, n_classes)
            Scores.

        Returns
        -------
        ndarray of shape (rows,)
        """
        if self.classes is None:
            numbers = expected_counts(scores) if self.link == "log" else scores
            return np.clip(numbers, *self.target_range)
        return likely_labels(scores, label_array(self.classes))

    def predict_proba(self, data: Any) -> NDArray[np.float64]:
        """Probability of every class.

        Parameters
        ----------
        data : data frame, Arrow table, mapping, table of `privtail.open_table` or path
            Rows, as `predict` takes them.

        Returns
        -------
        ndarray of shape (rows, n_classes)
            NaN where a number of the row is missing.

        Raises
        ------
        InvalidInput
            If the model predicts numbers, or a column is missing.
        """
        if self.classes is None:
            raise InvalidInput(f"A {self.kind} model predicts numbers; it has no probabilities.")
        return probabilities(self.decision_function(data))

    def decision_function(self, data: Any) -> NDArray[np.float64]:
        """Scores, before they become predictions.

        Parameters
        ----------
        data : data frame, Arrow table, mapping, table of `privtail.open_table` or path
            Rows, as `predict` takes them.

        Returns
        -------
        ndarray of shape (rows,) or (rows, n_classes)
            One score for numbers and for two classes.
        """
        gaps = self.gaps()
        scores = self.scores(gaps.counting(self.designs(data)))
        if isinstance(data, TableFile | str | os.PathLike):
            gaps.warn()
        return scores

    def scores(self, designs: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Scores from blocks of `designs`.

        Parameters
        ----------
        designs : iterable of ndarray
            Features as the model sees them.

        Returns
        -------
        ndarray of shape (rows,) or (rows, n_classes)
        """
        scores = scores_of(designs, self.coef, self.intercept, self.feature_range)
        return scores[:, 0].clip(*self.margin_range) if len(self.coef) == 1 else scores

    def gaps(self) -> Gaps:
        """A count of what is missing in `designs`, which pass through it."""
        return Gaps(self.encoded.watched())

    def design(self, data: Any) -> NDArray[np.float64]:
        """The features as the model sees them.

        Parameters
        ----------
        data : data frame, Arrow table, mapping, table of `privtail.open_table` or path
            Rows, as `predict` takes them.

        Returns
        -------
        ndarray of shape (rows, n_features)
        """
        return np.concatenate([np.empty((0, len(self.features))), *self.designs(data)])

    def designs(self, data: Any) -> Iterator[NDArray[np.float64]]:
        """The features as the model sees them, in blocks of rows; of a file, as they are read.

        Parameters
        ----------
        data : data frame, Arrow table, mapping, table of `privtail.open_table` or path
            Rows, as `predict` takes them.

        Yields
        ------
        ndarray
        """
        names = [column.name for column in self.columns]
        if isinstance(data, np.ndarray) and names == [f"x{i}" for i in range(len(names))]:
            data = numbered(data, names)
        return table_blocks(data, names, self.categories, self.encoding, self.fill)

    def summary(self, level: float = 0.95) -> CoefficientTable:
        """The same as `table`, by the name that statsmodels gives it.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals, in (0, 1).

        Returns
        -------
        CoefficientTable

        Raises
        ------
        InvalidInput
            If ``level`` is not in (0, 1).
        """
        return self.table(level)

    def table(self, level: float = 0.95) -> CoefficientTable:
        """Slopes with standard errors, z, p values and intervals for the population, by name.

        A base level stands among them with the slope 0. With the log link there are relativities,
        the exponentials of slopes: 1 at a base level. Standard errors hold noise and sampling;
        where either is not known they are NaN, and the table says why.

        Parameters
        ----------
        level : float, default=0.95
            Level of the intervals, in (0, 1).

        Returns
        -------
        CoefficientTable

        Raises
        ------
        InvalidInput
            If ``level`` is not in (0, 1).
        """
        outputs = [""] if len(self.coef) == 1 else [f"{label}: " for label in self.classes or ()]
        d = len(self.features)
        rows = [
            (f"{output}{name}", None if place is None else k * d + place)
            for k, output in enumerate(outputs)
            for name, place in self.encoded.lines()
        ]
        noise, sampling = (
            np.broadcast_to(std, self.coef.shape) for std in (self.noise_std, self.sampling_std)
        )
        return CoefficientTable.of(
            rows, self.coef, self.intercept, noise, sampling, self.statement.headline, level,
            noisy=self.statement.noise != "none", log=self.link == "log",
        )  # fmt: skip

    def to_sklearn(self) -> Any:
        """A plain fitted estimator of scikit-learn; see `privtail.export.to_sklearn`."""
        from privtail.export import to_sklearn

        return to_sklearn(self)

    # ---------------------------------------------------------------- written

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model as JSON, whole or not at all.

        Parameters
        ----------
        path : path
            File to write.
        overwrite : bool, default=False
            Replace an existing file.

        Raises
        ------
        InvalidInput
            If the file exists (without ``overwrite``) or cannot be written.
        """
        with written_whole(Path(path), overwrite=overwrite) as file:
            file.write(self.to_text().encode())

    def to_text(self) -> str:
        """The text of the file."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `from_json` restores the model from it."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "kind": self.kind,
            "link": self.link,
            "target": self.target,
            "columns": [
                {"name": c.name} | ({} if c.categories is None else {"categories": c.categories})
                for c in self.columns
            ],
            **self.encoding.to_json(),
            "classes": self.classes,
            "coef": self.coef.tolist(),
            "intercept": self.intercept.tolist(),
            "feature_range": _nullable(self.feature_range),
            "target_range": _nullable(self.target_range[None])[0],
            "margin_range": _nullable(self.margin_range[None])[0],
            "noise_std": _deviations_to_json(self.noise_std, self.coef.shape),
            "sampling_std": _deviations_to_json(self.sampling_std, self.coef.shape),
            **({"fill": _nullable(self.fill[None])[0]} if self.encoded.optional else {}),
            **({} if self.power is None else {"power": self.power}),
            **({} if self.exposure is None else {"exposure": self.exposure}),
            "statement": self.statement.to_json(),
        }

    @classmethod
    def from_json(cls, content: Any) -> Model:
        """Read what `to_json` wrote.

        Parameters
        ----------
        content : mapping
            A JSON object.

        Returns
        -------
        Model

        Raises
        ------
        InvalidInput
            If a field is missing, has a wrong type, or the sizes do not fit.
        """
        if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
            raise InvalidInput(f"Its format is not {_FORMAT!r}.")
        if content.get("version") not in range(1, _VERSION + 1):
            raise InvalidInput(f"This privtail reads versions 1 to {_VERSION}. Update privtail.")
        content = _with_ranges(content)
        columns = tuple(_column(c) for c in _typed(content, "columns", list))
        classes = content.get("classes")
        if classes is not None:
            classes = _labels("classes", classes)
        kind = _typed(content, "kind", str)
        link = content.get("link", LINKS.get(kind))
        if kind not in (*LINKS, GENERALIZED) or (LINKS.get(kind) == "logit") != (
            classes is not None
        ):
            raise InvalidInput("The fields 'kind' and 'classes' do not fit together.")
        if link != LINKS.get(kind, link) or link not in ("identity", "log", "logit"):
            raise InvalidInput("The field 'link' does not fit the kind of the model.")
        outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        if len({column.name for column in columns}) != len(columns) or not columns:
            raise InvalidInput("The field 'columns' must name distinct columns.")
        encoding = Encoding.from_json(content)
        known = {c.name: c.categories for c in columns if c.categories is not None}
        design = encoding.design([c.name for c in columns], known)
        features = len(design.names)
        return cls(
            kind=kind,
            target=_typed(content, "target", str),
            columns=columns,
            classes=classes,
            coef=_numbers(content, "coef", (outputs, features)),
            intercept=_numbers(content, "intercept", (outputs,)),
            statement=Statement.from_json(_typed(content, "statement", dict)),
            link=link,
            feature_range=_ranges("feature_range", content.get("feature_range"), features),
            target_range=_ranges("target_range", [content.get("target_range")], 1)[0],
            margin_range=_ranges("margin_range", [content.get("margin_range")], 1)[0],
            noise_std=_deviations("noise_std", content, (outputs, features)),
            sampling_std=_deviations("sampling_std", content, (outputs, features)),
            encoding=encoding,
            fill=_fill(content.get("fill"), design),
            power=_power(content, kind),
            exposure=content.get("exposure") and _typed(content, "exposure", str),
        )

    def __repr__(self) -> str:
        return f"<Model: {self.kind}, {self.target} from {len(self.columns)} columns>"


# --- from features to predictions -----------------------------------------------------------------


def scores_of(
    designs: Iterable[Any], coef: NDArray[np.float64], intercept: Any,
    feature_range: NDArray[np.float64],
) -> NDArray[np.float64]:  # fmt: skip
    """Scores (rows, K) of blocks of features, dense or CSR; NaN in rows that are not `finite`.

    Features are clipped to their ranges (features, 2).
    """
    scores = [np.empty((0, len(coef)))]
    with np.errstate(all="ignore"):
        for features in designs:
            inside, zero = _clipped(features, *feature_range.T)
            block = np.asarray(inside @ coef.T + zero @ coef.T + intercept, dtype=np.float64)
            block[~finite(features)] = np.nan
            scores.append(block)
    return np.concatenate(scores)


def _clipped(
    features: Any, lows: NDArray[np.float64], highs: NDArray[np.float64]
) -> tuple[Any, NDArray[np.float64]]:
    """Features between their ends, less what zeros of them become (features,) if they are CSR."""
    if not hasattr(features, "tocsr"):
        return np.clip(features, lows, highs), np.zeros(features.shape[1])
    lows, highs = (np.broadcast_to(ends, features.shape[1]) for ends in (lows, highs))
    zero, inside = np.clip(0.0, lows, highs), features.tocsr(copy=True)
    inside.sum_duplicates()
    at = inside.indices
    inside.data = np.clip(inside.data, lows[at], highs[at]) - zero[at]
    return inside, zero


def finite(features: Any) -> NDArray[np.bool_]:
    """Which rows of features, dense or CSR, hold finite numbers alone."""
    if not hasattr(features, "tocsr"):
        return np.asarray(np.isfinite(features).all(axis=1))
    rows = np.repeat(np.arange(features.shape[0]), np.diff(features.indptr))
    whole_rows = np.ones(features.shape[0], dtype=np.bool_)
    whole_rows[rows[~np.isfinite(features.data)]] = False
    return whole_rows


def likely_labels(scores: NDArray[np.float64], classes: NDArray[Any]) -> NDArray[Any]:
    """The most probable label of every row; where a score is NaN none: NaN of numbers, or None."""
    two = scores.ndim == 1
    labels: NDArray[Any] = classes[(scores > 0).astype(int) if two else scores.argmax(axis=1)]
    unknown = np.isnan(scores if two else scores.sum(axis=1))
    if unknown.any():
        numbers = classes.dtype.kind in "iuf"
        labels = labels.astype(np.float64 if numbers else object)
        labels[unknown] = np.nan if numbers else None
    return labels


def numbered(rows: NDArray[Any], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Columns of an array by name, for a model that was fitted on an array.

    Raises
    ------
    InvalidInput
        If there are more or fewer columns than names.
    """
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise InvalidInput(
            f"The model takes {len(names)} features, in an array of shape (rows, {len(names)}); "
            f"got {rows.shape}."
        )
    return dict(zip(names, rows.T, strict=True))


def label_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array that keeps the type of each: text and numbers together are objects."""
    kinds = {isinstance(label, str) for label in labels}
    return np.array(labels, dtype=object if len(kinds) > 1 else None)


def probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of every class (rows, classes), from scores (rows,) of the second or (rows, classes)."""
    from scipy.special import expit, softmax

    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    return np.asarray(softmax(scores, axis=1))


def usable_exposure(exposure: Any) -> NDArray[np.float64]:
    """Exposures (rows,) of rows to predict; NaN where they are not positive and finite."""
    found = np.asarray(exposure, dtype=np.float64).reshape(-1)
    return np.where((found > 0) & (found < np.inf), found, np.nan)


def expected_counts(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Expected counts of a model with the log link, before they are clipped to their range."""
    return np.exp(np.clip(scores, -LARGEST_LOG, LARGEST_LOG))


# --- reading fields -------------------------------------------------------------------------------


def _power(content: Mapping[str, Any], kind: str) -> float | None:
    found = content.get("power", {"poisson": 1.0, "gamma": 2.0}.get(kind))
    if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise InvalidInput("The field 'power' is no number.")
    if found is not None:
        require_power(found)
    return found


def _typed(content: Mapping[str, Any], name: str, kind: type) -> Any:
    if not isinstance(content.get(name), kind):
        raise InvalidInput(f"The field {name!r} is missing or has a wrong type.")
    return content[name]


def _column(content: Any) -> Column:
    if not isinstance(content, Mapping):
        raise InvalidInput("The field 'columns' is missing or has a wrong type.")
    categories = content.get("categories")
    name = _typed(content, "name", str)
    return Column(name, None if categories is None else _labels(name, categories))


def _labels(name: str, content: Any) -> tuple[Label, ...]:
    plain = isinstance(content, list) and all(isinstance(v, str | int | float) for v in content)
    if not plain or not content or len(set(content)) != len(content):
        raise InvalidInput(f"The labels of {name!r} must be a list of distinct values.")
    return tuple(content)


def _numbers(
    content: Mapping[str, Any], name: str, shape: tuple[int, ...]
) -> NDArray[np.float64]:  # fmt: skip
    try:
        numbers = np.array(_typed(content, name, list), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise InvalidInput(f"The field {name!r} must hold finite numbers of shape {shape}.")
    return numbers


def _deviations_to_json(std: NDArray[np.float64], shape: tuple[int, ...]) -> Any:
    """Null where one is not known; "inf" where it is infinite, which JSON has no number for."""
    rows = np.broadcast_to(std, shape).tolist()
    return [[None if math.isnan(x) else "inf" if x == math.inf else x for x in row] for row in rows]


def _deviations(
    name: str, content: Mapping[str, Any], shape: tuple[int, int]
) -> NDArray[np.float64]:
    """What `_deviations_to_json` wrote; not known in files of earlier versions."""
    if content.get(name) is None:
        return np.full(shape, math.nan)
    try:
        std = np.array(_typed(content, name, list), dtype=np.float64)  # null becomes NaN
    except (TypeError, ValueError, OverflowError):
        std = np.empty(0)
    if std.shape != shape or (std < 0).any():
        raise InvalidInput(f"The field {name!r} must hold numbers from 0 of shape {shape}.")
    return std


def _fill(content: Any, design: Design) -> NDArray[np.float64]:
    """What missing numbers count as, for the features that are filled in; NaN for the others."""
    count, places = len(design.names), list(design.optional)
    fill = np.full(count, math.nan)
    if not places:
        return fill
    try:
        given = np.array(content, dtype=np.float64)  # null becomes NaN
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0)
    if given.shape != fill.shape or not np.isfinite(given[places]).all():
        raise InvalidInput(f"The field 'fill' must hold {count} numbers or nulls.")
    fill[places] = given[places]
    return fill


def _endless(count: int) -> NDArray[np.float64]:
    return np.tile([-np.inf, np.inf], (count, 1))


def _nullable(ranges: NDArray[np.float64]) -> list[list[float | None]]:
    """Ends as JSON has them: null where there is none."""
    return [[end if np.isfinite(end) else None for end in pair] for pair in ranges.tolist()]


def _with_ranges(content: Mapping[str, Any]) -> dict[str, Any]:
    """With the ranges under the names that they have now; versions 1 to 3 had others for two."""
    renamed = dict(content)
    if "ends" in content:
        renamed.setdefault("margin_range", content["ends"])
    if isinstance(highest := content.get("highest"), int | float):
        renamed.setdefault("target_range", [None, math.exp(min(highest, LARGEST_LOG))])
    return renamed


def _ranges(name: str, content: Any, count: int) -> NDArray[np.float64]:
    """What `_nullable` wrote; without ends where a file of an earlier version has none."""
    ranges = _endless(count)
    if content is None or content == [None]:
        return ranges
    try:
        given = np.array(content, dtype=np.float64)  # null becomes NaN
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0)
    if given.shape == ranges.shape:
        ranges = np.where(np.isnan(given), ranges, given)
    if given.shape != ranges.shape or not (ranges[:, 0] <= ranges[:, 1]).all():
        raise InvalidInput(f"The field {name!r} must hold {count} pairs of a low and a high end.")
    return ranges


# --- writing files --------------------------------------------------------------------------------
