"""`compare`: whether one model predicts private rows better than another."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from privtail.calibration import calibrated
from privtail.coefficients import normal_quantile
from privtail.compilation import steady
from privtail.errors import InvalidInput
from privtail.evaluation.models import as_model, require_exposure
from privtail.evaluation.numbers import HALF, PERSONS, ends_of
from privtail.evaluation.result import Estimate
from privtail.ledgers import interruptible
from privtail.mean import mean_of
from privtail.promised import Promised
from privtail.statement import Statement, state, unkept
from privtail.trusted import row_errors
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.row_errors import LARGEST_LOSS, AnyModel
from privtail.views import Row, numbers

DIFFERENCE = "difference of the mean {losses}, first less second"
LABELS = "compare: labels"
OPEN = (
    "Nothing bounds the difference on one side or both, because noise may hide rows in which the "
    "losses differ. Models that agree in nearly all rows cannot be told apart. For others use more "
    "rows or a larger epsilon."
)
HIDDEN = (
    "Noise may hide about {rows:,} rows in which the losses differ far more than in all others, "
    "and a few times as many if these differ in size. The difference, and a finite end of its "
    "interval, do not allow for them. More rows or a larger epsilon may help."
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Which of two models predicts better, and how sure that is.

    Attributes
    ----------
    difference : Estimate
        By how much the mean loss of the first is larger than that of the second: of numbers
        absolute errors, of labels log losses. Below zero the first is better.
    better : {"first", "second"}
        By the sign of the difference.
    p_value : float
        One-sided: the chance of a difference this far from zero, or farther on its side, if both
        models were equally good. It allows for noise and sampling error; with ``groups`` for noise
        alone, so it is too small for the population. It is .5 if nothing bounds the difference.
    privacy_ : Statement
        What was spent.
    notes : tuple of str
        What a reader should know.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import clone
    >>> from privtail import compare
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> model = DPLinearRegression(epsilon=1.0)
    >>> first, second = (clone(model).fit(X[:1_000], X[:1_000, i]) for i in (0, 1))
    >>> compare(first, second, X[1_000:], X[1_000:, 0], epsilon=1.0).better
    'first'
    """

    difference: Estimate
    better: Literal["first", "second"]
    p_value: float
    privacy_: Statement
    notes: tuple[str, ...]

    def __str__(self) -> str:
        promised = "".join(f"; {text}" for text in unkept(self.privacy_))
        notes = "".join(f"\nNote. {text}" for text in self.notes)
        return f"{self._told}; {self._named} {self.difference}{promised}{notes}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: an end that is infinite is None."""
        return {
            "difference": self.difference.to_dict(),
            "better": self.better,
            "p_value": self.p_value,
            "notes": list(self.notes),
            "statement": self.privacy_.to_json(),
        }

    def _repr_html_(self) -> str:
        e = self.difference
        row = Row.of(self._named, e.value, e.low, e.high)
        return numbers([row], (f"{self._told}.", *self.notes, self.privacy_.headline))

    @property
    def _named(self) -> str:
        labels = self.privacy_.label == LABELS
        return DIFFERENCE.format(losses="log losses" if labels else "absolute errors")

    @property
    def _told(self) -> str:
        unclear = self.difference.low <= 0 <= self.difference.high
        told = "Neither model is shown to be" if unclear else f"The {self.better} model is"
        p_value = f"{self.p_value:.2g}" if self.p_value else "below 1e-300"
        return f"{told} better (one-sided p-value {p_value})"


@interruptible
@steady
def compare(
    first: Any,
    second: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    confidence: float = 0.95,
    trusted_rowwise: bool = False,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
    exposure: Any = None,
) -> Comparison:
    """Compare two fitted models on private rows: which one predicts better.

    The two losses of each row are subtracted before they are averaged, so the mean difference is
    known better than either mean loss. The loss is the absolute error for numbers, and the log loss
    for labels, where a probability below .001 counts as .001.

    Parameters
    ----------
    first, second : estimator or Model
        Models that `evaluate` takes. Classifiers need the same classes. Both must predict rates
        (fitted with an exposure), or neither.
    X : array, data frame, mapping, table of `open_table` or path
        Held-out rows.
    y : array of shape (n,) or str
        The true values.
    epsilon : float
        Privacy budget of the whole comparison, above 0.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    confidence : float, default=0.95
        Confidence of the interval, in (0, 1).
    trusted_rowwise : bool, default=False
        A promise that models which are not privtail's predict each row from that row alone; see
        `evaluate`.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private.
    random_state : int or None, default=None
        Seed of public choices, and of simulated noise.
    ledger : Ledger, path or None, default=None
        A shared `Ledger` that is charged, or the path of an existing one.
    groups : array of shape (n,), str or None, default=None
        The person of each row. Then persons are protected instead of rows.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.
    exposure : array of shape (n,), str or None, default=None
        For models of rates: how long, or how much, each row was observed. It may be the name of a
        column where y may. It multiplies the predictions of both models. A row where it is not
        positive and finite counts for nothing.

    Returns
    -------
    Comparison

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Examples
    --------
    >>> import numpy as np
    >>> import privtail
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> y = X @ [1.0, -2.0] + np.random.default_rng(1).normal(size=2_000)
    >>> both = LinearRegression().fit(X[:100], y[:100])
    >>> worse = LinearRegression(fit_intercept=False).fit(X[:100] + 1, y[:100])
    >>> privtail.compare(
    ...     both, worse, X[100:], y[100:], epsilon=1, trusted_rowwise=True, noise="simulated",
    ...     random_state=0,
    ... ).better
    'first'
    """
    normal_quantile(confidence)  # refuses what is none, before anything is charged
    models = [as_model(model, X, y, trusted_rowwise) for model in (first, second)]
    (one, classes), (other, others) = models
    if classes != others:
        raise InvalidInput("Both models need the same classes, in the same order, or none.")
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    X, promised = promised.over(X)
    if classes is None:
        require_exposure((first, second), exposure)
        difference, std, statement = _of_numbers(one, other, X, y, promised, confidence, exposure)
    elif exposure is not None:
        raise InvalidInput("Labels have no exposure: leave it out.")
    else:
        difference, std, statement = _of_labels(one, other, X, y, classes, promised, confidence)
    better: Literal["first", "second"] = "first" if difference.value < 0 else "second"
    p_value = float(ndtr(-abs(difference.value) / std)) if 0 < std < math.inf else 0.5
    open_ended = not math.isfinite(difference.high - difference.low)
    notes = (OPEN,) * open_ended + (PERSONS,) * (promised.groups is not None)
    return Comparison(difference, better, p_value, statement, notes)


def _of_numbers(
    one: AnyModel, other: AnyModel, X: Any, y: Any, promised: Promised, confidence: float,
    exposure: Any,
) -> tuple[Estimate, float, Statement]:  # fmt: skip
    rows = row_errors.differences(X, y, one, other, exposure)
    curator = rows.curator(**promised.options("compare: numbers"))
    promised.warn(curator.problem.n)
    found = mean_of(curator, hidden=HIDDEN)
    low, high = ends_of(found, confidence)[0]
    spread = math.hypot(float(found.noise_std[0]), np.nan_to_num(float(found.sampling_std[0])))
    value = float(found.value[0])
    # What clipping may have cost on the side of zero counts as no evidence.
    clipped = float((found.clipped_below if value > 0 else found.clipped_above)[0])
    left = max(abs(value) - clipped, 0.0)
    std = spread * abs(value) / left if left > 0 else math.inf
    return Estimate(value, float(low), float(high)), std, found.privacy_


def _of_labels(
    one: AnyModel, other: AnyModel, X: Any, y: Any, classes: tuple[Any, ...], promised: Promised,
    confidence: float,
) -> tuple[Estimate, float, Statement]:  # fmt: skip
    rows = row_errors.excess_losses(X, y, one, other, classes)
    curator = rows.curator(**promised.options(LABELS))
    promised.warn(curator.problem.n)
    n, answer = curator.problem.n, curator.problem.means(HALF)
    multiplier = calibrated(
        curator,
        lambda m: (Round(stage="log losses", events=(GaussianNoise(m).event(answer),)),),
    )
    noise = GaussianNoise(multiplier)
    std = noise.event(answer).std
    whole, half, square = curator.everyone().means(HALF).release(noise)
    part = max(2 * whole, 2 * std, 1 / n)
    value, second = 2 * half / part, square / part + 0.5
    spread = max(second - value**2, 0.0) if promised.groups is None else 0.0
    deviation = math.sqrt((2 * std / part) ** 2 + (2 * std * value / part) ** 2)
    deviation = LARGEST_LOSS * math.hypot(deviation, math.sqrt(spread / (part * n)))
    value, reach = LARGEST_LOSS * value, normal_quantile(confidence) * deviation
    difference = Estimate(
        float(value), float(max(value - reach, -LARGEST_LOSS)),
        float(min(value + reach, LARGEST_LOSS)),
    )  # fmt: skip
    return difference, deviation, state(curator)
