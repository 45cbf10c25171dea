"""What an evaluation says: numbers with intervals, and curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.spelling import counted, finite_or_none, guess, with_interval
from privtail.statement import Statement, unkept
from privtail.views import Row, numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """One number of an evaluation.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Ends of its interval; infinite where nothing that was released bounds it.
    reliable : bool
        Whether it is a number, and both ends are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import evaluate
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> model = DPLinearRegression(epsilon=1.0).fit(X[:1_000], X[:1_000, 0])
    >>> found = evaluate(model, X[1_000:], X[1_000:, 0], epsilon=1.0)
    >>> mae = found.numbers["mae"]
    >>> bool(mae.low <= mae.value <= mae.high)
    True
    """

    value: float
    low: float
    high: float

    @property
    def reliable(self) -> bool:
        """Whether it is a number, and both ends are finite."""
        return all(map(math.isfinite, (self.value, self.low, self.high)))

    def to_dict(self) -> dict[str, float | None]:
        """Plain numbers for JSON; None where a number is not known or an end is infinite."""
        return {name: finite_or_none(x) for name, x in asdict(self).items()}

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return with_interval(self.value, self.low, self.high, 4)


@dataclass(frozen=True, eq=False)
class Curves:
    """Curves of a classifier of two labels, made of noisy counts in bins of probability.

    Attributes
    ----------
    thresholds : ndarray of shape (bins - 1,)
        Probabilities between the bins, ascending.
    predicted : ndarray of shape (bins,)
        Typical predicted probability of each bin.
    observed : ndarray of shape (bins,)
        Share of the second label in each bin; NaN where noise hides it.
    observed_low, observed_high : ndarray of shape (bins,)
        Ends of the intervals of ``observed``.
    false_positive_rate, true_positive_rate : ndarray of shape (bins + 1,)
        The ROC curve, ascending.
    precision, recall : ndarray of shape (bins,)
        At each threshold, the lowest first; everything is positive at the first.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import evaluate
    >>> from privtail.linear_model import DPLogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1], epsilon=1.0).fit(X[:1_000], y[:1_000])
    >>> found = evaluate(model, X[1_000:], y[1_000:], epsilon=1.0)
    >>> found.curves.recall.shape == found.curves.precision.shape
    True
    """

    thresholds: Doubles
    predicted: Doubles
    observed: Doubles
    observed_low: Doubles
    observed_high: Doubles
    false_positive_rate: Doubles
    true_positive_rate: Doubles
    precision: Doubles
    recall: Doubles

    def to_dict(self) -> dict[str, list[float | None]]:
        """Lists of numbers; None where a number is not known."""
        return {name: [finite_or_none(x) for x in values] for name, values in asdict(self).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, Estimate]):
    """How well a model predicts rows that it was not fitted to; a mapping of its numbers.

    Attributes
    ----------
    numbers : dict of str to Estimate
        The numbers by name. A model of numbers has ``mae``, ``rmse``, ``r2``, ``constant`` (the
        released mean of the target) and ``constant_rmse`` (of predicting it). Counts and amounts
        also have ``deviance``, ``d2`` and ``constant_deviance``. A quantile has ``coverage``, the
        share of targets that are at most the prediction. Labels have ``accuracy``, ``log_loss`` (a
        probability below .001 counts as .001, unlike in scikit-learn), ``constant_accuracy`` and
        ``constant_log_loss``, where the constant predicts the shares of the labels. Two labels also
        have ``auc``, and ``precision`` and ``recall`` of the second at probability 1/2.
    curves : Curves or None
        For two labels; None for other models.
    confusion : ndarray of shape (K, K) or None
        Noisy counts of up to 20 labels, true ones in rows, predicted ones in columns; None for
        numbers.
    classes : tuple or None
        The labels in order; None for numbers.
    confidence : float
        Confidence of the intervals.
    n : int
        Number of rows.
    statements : tuple of Statement
        What was spent, one for every plan.
    notes : tuple of str
        What a reader should know of the numbers.
    models : tuple of estimator
        The fitted estimators of `cross_validate`, one for each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import evaluate
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> model = DPLinearRegression(epsilon=1.0).fit(X[:1_000], X[:1_000, 0])
    >>> found = evaluate(model, X[1_000:], X[1_000:, 0], epsilon=1.0)
    >>> "rmse" in found.numbers
    True
    """

    numbers: dict[str, Estimate]
    curves: Curves | None
    confusion: Doubles | None
    classes: tuple[Any, ...] | None
    confidence: float
    n: int
    statements: tuple[Statement, ...]
    notes: tuple[str, ...]
    models: tuple[Any, ...] = ()

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.numbers:
            near = guess(str(name), self.numbers)
            raise KeyError(
                f"There is no score {name!r}.{near} There are: {', '.join(self.numbers)}."
            )
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, texts and lists, for JSON; None where a number is not known."""
        return {
            "n": self.n,
            "confidence": self.confidence,
            "numbers": {name: estimate.to_dict() for name, estimate in self.numbers.items()},
            "curves": None if self.curves is None else self.curves.to_dict(),
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            "classes": None if self.classes is None else list(self.classes),
            "notes": list(self.notes),
            "statements": [statement.to_json() for statement in self.statements],
        }

    def __str__(self) -> str:
        width = max(map(len, self.numbers))
        lines = [f"{words(name):<{width}}  {e}" for name, e in self.numbers.items()]
        head = f"{counted(self.n, 'row')}; [...] is a {100 * self.confidence:g} % interval"
        notes = (f"Note. {text}" for text in self.notes)
        return "\n".join([head, *lines, *notes, *unkept(*self.statements)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = (Row.of(words(name), e.value, e.low, e.high) for name, e in self.numbers.items())
        head = f"{counted(self.n, 'row')}, intervals of {100 * self.confidence:g} %"
        promised = (statement.headline for statement in self.statements)
        return numbers(rows, (*self.notes, *promised), head)

    def plot(self) -> Figure:
        """ROC, precision and recall, and calibration of two labels, side by side.

        Raises
        ------
        InvalidInput
            If there are no curves, or Matplotlib is not installed.
        """
        if self.curves is None:
            raise InvalidInput("There are curves of two labels only. print(evaluation) has all.")
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise InvalidInput("Pictures need Matplotlib: pip install 'privtail[plot]'.") from None
        figure = Figure(figsize=(12, 4), layout="constrained")
        roc, precision, calibration = figure.subplots(1, 3)
        curves = self.curves
        roc.plot([0, 1], [0, 1], color="0.7", linestyle="--")
        roc.plot(curves.false_positive_rate, curves.true_positive_rate, marker=".")
        roc.set(xlabel="false positive rate", ylabel="true positive rate")
        roc.set_title(f"ROC curve, area {self['auc']}")
        precision.plot(curves.recall, curves.precision, marker=".")
        precision.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
        precision.set_title("Precision and recall")
        known = np.isfinite(curves.observed)
        at, seen = curves.predicted[known], curves.observed[known]
        ends = np.vstack([seen - curves.observed_low[known], curves.observed_high[known] - seen])
        calibration.plot([0, 1], [0, 1], color="0.7", linestyle="--")
        calibration.errorbar(at, seen, yerr=np.maximum(ends, 0.0), fmt="o", capsize=3)
        calibration.set(xlabel="predicted probability", ylabel=f"share of {self.classes[1]!r}")  # type: ignore[index]
        calibration.set_title(f"Calibration, intervals of {100 * self.confidence:g} %")
        return figure


def words(name: str) -> str:
    """What a score is called, such as ``constant RMSE``."""
    short = ("mae", "rmse", "r2", "d2", "auc")
    return " ".join(part.upper() if part in short else part for part in name.split("_"))
