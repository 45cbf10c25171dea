"""`cross_validate`: how well an estimator predicts private rows that it was not fitted to."""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from sklearn.base import clone

from privtail.calibration import calibrate
from privtail.coefficients import normal_quantile
from privtail.compilation import steady
from privtail.errors import AccuracyWarning, DeltaWarning, InvalidInput, warn
from privtail.evaluation.evaluating import unbounded
from privtail.evaluation.labels import of_labels
from privtail.evaluation.models import modelled_quantile, of_estimator, variance_power
from privtail.evaluation.numbers import of_numbers, parts_of
from privtail.evaluation.result import Evaluation
from privtail.ledgers import interruptible
from privtail.linear_model.classification import outputs_of
from privtail.linear_model.fitting import PrivateLinearModel
from privtail.linear_model.search import declared_labels, fitted_loss, within
from privtail.promised import Promised
from privtail.statement import state
from privtail.trusted.accounting.curves import GaussianDP
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Plan, Round
from privtail.trusted.folds import Folds
from privtail.trusted.ledger import Ledger
from privtail.trusted.row_errors import FoldedModel
from privtail.trusted.tables import without_persons

AVERAGE = (
    "The numbers are of {count} models, each on the rows that it was not fitted to. The intervals "
    "do not allow for the rows that the models share."
)
WARNED = "{some} of {count} models warned: {text}"


@interruptible
@steady
def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    cv: int = 5,
    confidence: float = 0.95,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    exposure: Any = None,
) -> Evaluation:
    """Measure how well an estimator predicts rows that it was not fitted to; every fit is paid for.

    The rows are divided at random into ``cv`` folds, by position alone. The estimator is fitted
    ``cv`` times, each time without one fold. Then all rows are evaluated together, each with the
    model that was fitted without it. So each row is in one test fold, and the intervals have the
    noise of one evaluation of n rows, not of n / ``cv``.

    ``epsilon`` and ``delta`` are the total, and the ledger is charged once, before the first fit.
    The test folds are disjoint: a row is in one of them, so their evaluations compose in parallel.
    The training sets overlap: a row is in ``cv`` - 1 of them, and these fits compose sequentially,
    in zCDP. So a row takes part in ``cv`` - 1 fits and one evaluation, and all have the same rho.
    With 5 folds and a total epsilon of 1, each alone costs about .4 at the same delta.

    With ``groups`` a person is protected: all rows of a person are in one fold, and ``max_rows`` of
    the estimator says how many count. The intervals allow for no sampling error then.

    Parameters
    ----------
    estimator : estimator
        One of `privtail.linear_model`, not fitted. Its own epsilon, delta, noise and ledger are not
        used; a classifier needs ``classes=``.
    X : array, CSR matrix, data frame, mapping, Arrow table or table of `open_table`
        Features (n, d).
    y : array of shape (n,) or str
        Target; of a table of `open_table` the name of its column.
    epsilon : float
        Privacy budget of all fits and of the evaluation together, above 0.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    cv : int, default=5
        Number of folds, from 2 to n. More folds fit more rows, with more noise each.
    confidence : float, default=0.95
        Confidence of the intervals, in (0, 1).
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private.
    random_state : int or None, default=None
        Seed of public choices, the folds among them, and of simulated noise.
    ledger : Ledger, path or None, default=None
        A shared `Ledger` that is charged, or the path of an existing one.
    groups : array of shape (n,), str or None, default=None
        The person of each row; goes with ``max_rows`` of the estimator.
    exposure : array of shape (n,), str or None, default=None
        For counts and amounts: how long, or how much, each row was observed.

    Returns
    -------
    Evaluation
        As of `evaluate`. ``result.models`` are the fitted estimators, one for each fold.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used: an estimator that is not privtail's, of whose
        fits nobody knows what they cost; ``groups`` without ``max_rows`` of the estimator, or the
        other way round; rows on a Dask cluster; a classifier without ``classes``.
    BudgetExceeded
        If the ledger has too little left. No row was read.
    UnsupportedAccounting
        If the cost of a fit is not known in zCDP, as with Poisson batches.

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
    >>> result = privtail.cross_validate(
    ...     DPLinearRegression(), X, y, epsilon=2, noise="simulated", random_state=0
    ... )
    >>> bool(result["mae"].low < 1.1 < result["mae"].high), len(result.models)
    (True, 5)
    """
    normal_quantile(confidence)  # refuses what is none, before anything is charged
    if not isinstance(estimator, PrivateLinearModel):
        raise InvalidInput(
            "cross_validate fits estimators of privtail.linear_model, got "
            f"{type(estimator).__name__}. Pass one of these: of anything else nobody knows "
            "what a fit costs."
        )
    labels = declared_labels(estimator)
    power, quantile = variance_power(estimator), modelled_quantile(estimator)
    parts = parts_of(quantile) if labels is None else (1.0,)
    if exposure is not None and power is None:
        raise InvalidInput("An exposure belongs to counts and amounts: leave it out.")
    whole = clone(estimator).set_params(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, verbose=0,
    )  # fmt: skip
    X, groups = without_persons(X, groups)
    options = {} if exposure is None else {"exposure": exposure}
    outputs = 1 if labels is None else outputs_of(len(labels))
    curator = whole._curate(X, y, groups, {}, outputs=outputs, classes=labels, **options)  # noqa: SLF001
    curator.label = f"cross_validate({type(estimator).__name__})"
    folds = Folds(curator, X, y, exposure, cv)

    def plan(multiplier: float) -> Plan:
        stage = f"{cv} fits and their evaluation"
        return (Round(stage=stage, events=(folds.event(multiplier),)),)

    multiplier = calibrate(plan, curator.budget)
    models = [
        clone(whole).set_params(
            ledger=None, invalid="zero", random_state=None if random_state is None else
            random_state + fold,
        )
        for fold in range(cv)
    ]  # fmt: skip
    plans = [
        within(model, folds.problem(fold), folds.rho(multiplier))
        for fold, model in enumerate(models)
    ]
    plans[0].warn()
    curator.open(
        plan(multiplier),
        within=[(p.releases, fitted_loss(m, outputs)) for p, m in zip(plans, models, strict=True)],
    )

    def fit(fold: int, X: Any, y: Any, exposure: Any, seats: Any, allowance: Allowance) -> Any:
        model = models[fold].set_params(ledger=allowance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            more = {} if exposure is None else {"exposure": exposure}
            return model.fit(X, y, seats, **more).set_params(ledger=None)

    def judged(folded: FoldedModel, seats: Any, allowance: Allowance) -> Evaluation:
        promised = Promised(
            epsilon=_epsilon_of(folds.rho(multiplier), delta, parts), delta=delta,
            neighbours=neighbours, noise=noise, random_state=random_state, ledger=allowance,
            groups=seats, max_rows=curator.max_rows,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)  # the plan has said it
            if labels is None:
                return of_numbers(folded, X, y, promised, confidence, exposure, power, quantile)
            return of_labels(folded, X, y, tuple(labels), promised, confidence)

    fitted, found = folds.run(multiplier, fit, of_estimator, judged)
    warned = Counter(text for model in fitted for text in model.warnings_)
    unclear = unbounded(found)
    notes = (AVERAGE.format(count=cv), *found.notes, *unclear)
    notes += tuple(WARNED.format(some=warned[text], count=cv, text=text) for text in warned)
    statement = state(curator, notes)
    for model in fitted:
        model.privacy_ = statement
    found = replace(found, statements=(statement,), notes=notes, models=tuple(fitted))
    for text in unclear:
        warn(text, AccuracyWarning)
    return found


def _epsilon_of(rho: float, delta: float, parts: Sequence[float]) -> float:
    """The epsilon of an evaluation that costs ``rho``, or slightly less; its noise is Gaussian.

    Each of its plans gets one of ``parts`` of this epsilon, and the same part of delta.
    """
    if math.isinf(rho):
        return math.inf

    def used(epsilon: float) -> float:
        return sum(_rho(part * epsilon, part * delta) for part in parts)

    epsilon = GaussianDP(math.sqrt(2 * rho)).epsilon(delta)
    for _ in range(6):
        epsilon *= min(math.sqrt(rho / used(epsilon)), 2.0) * (1 - 1e-6)
    while used(epsilon) > rho:
        epsilon *= 0.99
    return epsilon * (1 - 1e-6)


def _rho(epsilon: float, delta: float) -> float:
    """The rho of Gaussian noise that is (epsilon, delta)-DP, rounded up a little."""
    low, high = 0.0, 1.0
    while GaussianDP(high).epsilon(delta) < epsilon:
        low, high = high, 2 * high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if GaussianDP(middle).epsilon(delta) < epsilon else (low, middle)
    return high**2 / 2
