"""`evaluate`: how well a model predicts private rows."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any, Literal

from privtail.coefficients import normal_quantile
from privtail.compilation import steady
from privtail.errors import AccuracyWarning, InvalidInput, real, warn
from privtail.evaluation.labels import of_labels
from privtail.evaluation.models import (
    as_model,
    modelled_quantile,
    require_exposure,
    variance_power,
)
from privtail.evaluation.numbers import of_numbers
from privtail.evaluation.result import Evaluation, words
from privtail.ledgers import interruptible
from privtail.losses import require_power
from privtail.model import Model
from privtail.promised import Promised
from privtail.trusted.budget import Neighbours
from privtail.trusted.ledger import Ledger

OPEN = (
    "The released numbers give no bound for {names}, because noise may hide large errors. More "
    "rows or a larger epsilon may help."
)
HIDDEN = (
    "Noise hides {names}: too few rows count, or have the second label, or are predicted to have "
    "it. More rows or a larger epsilon may help."
)


def unbounded(found: Evaluation) -> tuple[str, ...]:
    """What is to be said of numbers that nothing bounds; nothing if all are bounded."""
    poor = {words(name): x for name, x in found.items() if not x.reliable}
    hidden = [name for name, x in poor.items() if math.isfinite(x.high - x.low)]
    open_ = [name for name in poor if name not in hidden]
    told = ((OPEN, open_), (HIDDEN, hidden))
    return tuple(text.format(names=", ".join(names)) for text, names in told if names)


def require_quantile(quantile: float | None) -> None:
    """Refuse a quantile outside (0, 1), before anything is charged."""
    if quantile is not None and not 0 < real("quantile", quantile) < 1:
        raise InvalidInput(f"quantile must lie in (0, 1), got {quantile!r}.")


@interruptible
@steady
def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
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
    power: float | None = None,
    quantile: float | None = None,
) -> Evaluation:
    """Measure how well a fitted model predicts private rows, with intervals.

    Pass rows that the model was not fitted to: on its own rows a model looks better than it is.
    Nobody has to know a bound on the errors.

    **Numbers.** 20 % of epsilon and of delta pay for the mean and the scale of the target. The rest
    pays for private means of absolute and squared errors, of the model and of the constant that
    predicts this mean. They are those of `privtail.private_mean`, so intervals allow for clipping.
    R2 is 1 less the ratio of the squared errors. Noise moves the constant away from the true mean,
    so R2 is larger than scikit-learn's, on average by the squared noise over the variance.

    For counts and amounts the mean deviance is released too, and D2, which is 1 less the ratio of
    this deviance to that of the constant. With an exposure the constant predicts the mean rate
    times the exposure.

    For a model of a quantile 30 % of the budget pay for its coverage: the share of targets that are
    at most the prediction. Compare it with the quantile.

    If the mean of the target is not reliable, intervals of errors have no upper end, because rows
    that noise hides may be of any size. R2 and D2 are then NaN.

    Squared errors have heavier tails than errors. So a few rows may make most of the RMSE, and its
    interval does not allow for those that noise hides. The RMSE of the same rows is never below the
    MAE, so neither it nor its upper end is shown below that of the MAE. With 2,000 rows of
    lognormal errors, intervals of 95 % held the RMSE in 85 % of 100 runs at epsilon .5 and in all
    at 2. They held the MAE in all, and with 20,000 rows both (`benchmarks/evaluations.py`). If few
    rows have large errors and all others small ones, noise may hide them from the MAE, too: a note
    says about how many.

    The same holds for deviances and D2 of counts that are mostly zero and have a long tail: of
    20,000 rows of BlogFeedback they held the deviance in 71 of 100 runs at epsilon .5, D2 in 70.

    **Labels.** One plan releases two things. Accuracy and log loss are noisy means, where a
    probability below .001 counts as .001. Rows are counted in bins of predicted probability for
    each true label, and the curves are made of these counts. The bins hold about equally many rows.
    Two histograms find them, for 7 % of the squared Gaussian-DP parameter. The counts in bins
    take 31 %, and the means 62 % (under zero-out 10, 45 and 45 %). For three labels or more, true
    and predicted labels are counted in place of bins.

    Parameters
    ----------
    model : estimator or Model
        A fitted estimator of privtail, a loaded `Model`, or any object with ``predict`` (of labels
        with ``predict_proba`` and ``classes_``), such as a fitted scikit-learn estimator.
    X : array, data frame, mapping, table of `open_table` or path
        Held-out rows. A row counts for nothing if one of its numbers is missing, or if its label is
        not one of the model's.
    y : array of shape (n,), str or None, default=None
        The true values. For a model of privtail, the name of a column of X; None is the target of a
        loaded `Model`.
    epsilon : float
        Privacy budget of the whole evaluation, above 0.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    confidence : float, default=0.95
        Confidence of the intervals, in (0, 1).
    trusted_rowwise : bool, default=False
        A promise that a model which is not privtail's predicts each row from that row alone, and
        raises for no row. It is then called with many rows at once; otherwise with one at a time,
        which may take long. The statement prints the promise.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private.
    random_state : int or None, default=None
        Seed of public choices, and of simulated noise.
    ledger : Ledger, path or None, default=None
        A shared `Ledger` that is charged, or the path of an existing one.
    groups : array of shape (n,), str or None, default=None
        The person of each row. Then persons are protected instead of rows. The intervals
        allow for no sampling error then: rows of a person are not independent.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.
    exposure : array of shape (n,), str or None, default=None
        For models of rates: how long, or how much, each row was observed. It may be the name of a
        column where y may. A row where it is not positive and finite counts for nothing.
    power : float or None, default=None
        Power of the mean in the variance, from 1 to 2. It says which deviance is released; a row
        whose target is negative, or zero at 2, then counts for nothing. None takes that of a model
        of privtail with a log link; other models have no deviance.
    quantile : float or None, default=None
        Which quantile of the target the model predicts, in (0, 1). Then the coverage is released,
        too: the share of targets that are at most the prediction. By default that of the model.

    Returns
    -------
    Evaluation
        ``result["rmse"].value``; ``print(result)`` shows all numbers.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If no released number bounds an error.

    Examples
    --------
    >>> import numpy as np
    >>> import privtail
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(20_000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(1).standard_t(3, 20_000)
    >>> model = DPLinearRegression(epsilon=1, noise="simulated", random_state=0)
    >>> model = model.fit(X[:10_000], y[:10_000])
    >>> result = privtail.evaluate(
    ...     model, X[10_000:], y[10_000:], epsilon=1, noise="simulated", random_state=0
    ... )
    >>> bool(result["mae"].low < 1.1 < result["mae"].high)
    True
    """
    normal_quantile(confidence)  # refuses what is none, before anything is charged
    if y is None:
        if not isinstance(model, Model):
            raise InvalidInput("Pass the true targets: evaluate(model, X, y, epsilon=1).")
        y = model.target
    asked, classes = as_model(model, X, y, trusted_rowwise)
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    X, promised = promised.over(X)
    if classes is None:
        power = variance_power(model) if power is None else power
        if power is not None:
            require_power(real("power", power))
        require_exposure((model,), exposure)
        quantile = modelled_quantile(model) if quantile is None else quantile
        require_quantile(quantile)
        found = of_numbers(asked, X, y, promised, confidence, exposure, power, quantile)
    elif exposure is not None or power is not None or quantile is not None:
        raise InvalidInput("Labels have no exposure, deviance or quantile: leave these out.")
    else:
        found = of_labels(asked, X, y, classes, promised, confidence)
    notes = unbounded(found)
    for text in notes:
        warn(text, AccuracyWarning)
    return replace(found, notes=(*found.notes, *notes))
