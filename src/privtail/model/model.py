"""Fitted models as JSON: what is needed to predict, and what it cost."""

from __future__ import annotations

import functools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.coefficients import CoefficientTable
from privtail.errors import InvalidInput
from privtail.gaps import Gaps
from privtail.json_files import json_of
from privtail.model import fields
from privtail.model.fields import Column
from privtail.model.predicting import (
    GENERALIZED,
    LINKS,
    Link,
    cut,
    expected_counts,
    exposure_column,
    label_array,
    likely_labels,
    numbered,
    probabilities,
    scores_of,
    usable_exposure,
)
from privtail.schema.declared import Label, whole
from privtail.schema.encoding import PLAIN, Design, Encoding
from privtail.spelling import counted
from privtail.statement import Statement
from privtail.trusted.tables import is_file, table_blocks
from privtail.written import written_whole

_FORMAT, _VERSION = "privtail-model", 1


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
    return model_of(json_of(path, "a model that privtail wrote")[0], path)


def model_of(content: Any, path: Path) -> Model:
    """The model that a file holds.

    Raises
    ------
    InvalidInput
        If it is no such model.
    """
    try:
        return Model.from_json(content)
    except InvalidInput as error:
        raise InvalidInput(f"{path} is no model of privtail that can be used. {error}") from None


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
        farther than what was released of them. Infinite by default.
    target_range : ndarray of shape (2,)
        Ends to which predictions of numbers and counts are clipped.
    margin_range : ndarray of shape (2,) or (n_classes, 2)
        Ends to which scores of classes are clipped, for more than two of each class.
    noise_std, sampling_std : ndarray of shape (K, n_features)
        Standard deviations of what noise, and the sampling of the rows, did to ``coef``. Infinite
        for a feature that is not used, NaN where not known. ``sampling_std`` is infinite, too,
        where noise hides whether a feature is nearly collinear with others.
    encoding : Encoding
        What was declared of the features beside categories.
    fill : ndarray of shape (n_features,)
        What a missing number counts as; NaN where its row has no prediction.
    power : float or None
        For counts and amounts, the power of the mean in the variance.
    quantile : float or None
        Which quantile of the target is predicted, of quantile regression.
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
    feature_range: NDArray[np.float64] = field(default_factory=lambda: fields.endless(1))
    target_range: NDArray[np.float64] = field(default_factory=lambda: fields.endless(1)[0])
    margin_range: NDArray[np.float64] = field(default_factory=lambda: fields.endless(1)[0])
    noise_std: NDArray[np.float64] = field(default_factory=lambda: np.array(math.nan))
    sampling_std: NDArray[np.float64] = field(default_factory=lambda: np.array(math.nan))
    encoding: Encoding = PLAIN
    fill: NDArray[np.float64] = field(default_factory=lambda: np.array(math.nan))
    power: float | None = None
    quantile: float | None = None
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
            target_range=getattr(estimator, "target_range_", fields.endless(1)[0]),
            margin_range=getattr(estimator, "margin_range_", fields.endless(1)[0]),
            noise_std=np.atleast_2d(estimator.coef_noise_std_),
            sampling_std=np.atleast_2d(estimator.coef_sampling_std_),
            encoding=estimator.encoding_,
            fill=estimator.fill_,
            power=getattr(estimator, "variance_power", None),
            quantile=getattr(estimator, "modelled_quantile", None),
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
            For models with the log link: the prediction for an exposure of 1 is multiplied by it.
            An array, or the name of a column of ``data``.

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
            raise InvalidInput(
                f"A {self.kind} model has no exposure: its link is no logarithm. Leave it out."
            )
        if isinstance(exposure, str):
            exposure = exposure_column(data, exposure)
        return np.asarray(answers * usable_exposure(exposure, len(answers)))

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
            raise InvalidInput(
                f"A {self.kind} model predicts numbers; it has no probabilities. Use predict."
            )
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

        Raises
        ------
        InvalidInput
            If a column of the model is missing, or cannot be used.
        """
        gaps = self.gaps()
        scores = self.scores(gaps.counting(self.designs(data)))
        gaps.warn(of_file=is_file(data) or isinstance(data, str | os.PathLike))
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
        return cut(scores[:, 0] if len(self.coef) == 1 else scores, self.margin_range)

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

    def summary(self, confidence: float = 0.95) -> CoefficientTable:
        """Slopes with standard errors, z, p values and intervals for the population, by name.

        A base level stands among them with the slope 0. With the log link there are relativities,
        the exponentials of slopes: 1 at a base level. Standard errors allow for noise and sampling;
        where either is not known they are NaN, and the table says why.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence of the intervals, in (0, 1).

        Returns
        -------
        CoefficientTable

        Raises
        ------
        InvalidInput
            If ``confidence`` is not in (0, 1).
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
            rows, self.coef, self.intercept, noise, sampling, self.statement.headline, confidence,
            noisy=self.statement.noise != "none", link=self.link,
        )  # fmt: skip

    table = summary

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
            "feature_range": fields.nullable(self.feature_range),
            "target_range": fields.nullable(self.target_range),
            "margin_range": fields.nullable(self.margin_range),
            "noise_std": fields.deviations_to_json(self.noise_std, self.coef.shape),
            "sampling_std": fields.deviations_to_json(self.sampling_std, self.coef.shape),
            **({"fill": fields.nullable(self.fill)} if self.encoded.optional else {}),
            **({} if self.power is None else {"power": self.power}),
            **({} if self.quantile is None else {"quantile": float(self.quantile)}),
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
            raise InvalidInput(f"Its format must be {_FORMAT!r}.")
        if content.get("version") != _VERSION:
            raise InvalidInput(
                f"This release of privtail reads only version {_VERSION} of the format. Update it."
            )
        columns = tuple(fields.column(c) for c in fields.typed(content, "columns", list))
        classes = content.get("classes")
        if classes is not None:
            classes = fields.labels("classes", classes)
        kind = fields.typed(content, "kind", str)
        link = fields.typed(content, "link", str)
        if kind not in (*LINKS, GENERALIZED) or (LINKS.get(kind) == "logit") != (
            classes is not None
        ):
            raise InvalidInput(
                f"The fields 'kind' and 'classes' do not fit together. {fields.MEND}"
            )
        if link != LINKS.get(kind, link) or link not in ("identity", "log", "logit"):
            raise InvalidInput(
                f"The field 'link' does not fit the kind of the model. {fields.MEND}"
            )
        outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        if len({column.name for column in columns}) != len(columns) or not columns:
            raise InvalidInput("The field 'columns' must name distinct columns.")
        encoding = Encoding.from_json(content)
        known = {c.name: c.categories for c in columns if c.categories is not None}
        design = encoding.design([c.name for c in columns], known)
        features = len(design.names)
        return cls(
            kind=kind,
            target=fields.typed(content, "target", str),
            columns=columns,
            classes=classes,
            coef=fields.numbers(content, "coef", (outputs, features)),
            intercept=fields.numbers(content, "intercept", (outputs,)),
            statement=Statement.from_json(fields.typed(content, "statement", dict)),
            link=link,
            feature_range=fields.ranges("feature_range", content.get("feature_range"), features),
            target_range=fields.ranges("target_range", [content.get("target_range")], 1)[0],
            margin_range=fields.margin_range(content.get("margin_range"), outputs),
            noise_std=fields.deviations("noise_std", content, (outputs, features)),
            sampling_std=fields.deviations("sampling_std", content, (outputs, features)),
            encoding=encoding,
            fill=fields.fill(content.get("fill"), design),
            power=fields.power(content),
            quantile=fields.quantile(content),
            exposure=content.get("exposure") and fields.typed(content, "exposure", str),
        )

    def __repr__(self) -> str:
        return f"<Model: {self.kind}, {self.target} from {counted(len(self.columns), 'column')}>"
