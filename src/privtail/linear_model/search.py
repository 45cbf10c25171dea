"""Hyper-parameter search whose whole cost is paid: the best of a secret number of trials."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privtail.calibration import calibrate
from privtail.errors import InvalidInput, UnsupportedAccounting, told
from privtail.linear_model.classification import outputs_of, sorted_labels
from privtail.linear_model.estimator import PrivateEstimator, as_a_whole
from privtail.linear_model.fitting import PrivateLinearModel, require_number
from privtail.linear_model.planning import FitPlan
from privtail.linear_model.regressor import PrivateRegressor
from privtail.losses import (
    AmountLoss,
    AnyLoss,
    GeneralLoss,
    LogisticLoss,
    Loss,
    MultinomialLoss,
    RelativeHuberLoss,
    WrongLabel,
)
from privtail.statement import Statement, state
from privtail.summaries.column_summaries import ColumnSummaries
from privtail.summaries.summary import UNUSED, Summary
from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP
from privtail.trusted.allowance import Allowance
from privtail.trusted.callbacks import core_loss
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.problem import Problem
from privtail.trusted.refusals import as_known, as_plain_numbers
from privtail.trusted.search import BestTrial, Found, Part, Score, TrialSearch
from privtail.trusted.tables import is_file, without_persons

Doubles = NDArray[np.float64]

CLAMP = 3.0
"""A row's loss is clamped at that of an error of this many scales of the target."""

SUMMARY_NOISE = 3.0
"""Noise multiplier of the histogram releases for the target's scale, relative to a trial's."""

SMALLER, ATTEMPTS = 0.94, 20
"""Steps down, and how many, to an epsilon at which a fit costs no more than a trial may.

Of Gaussian noise alone the first is exact; beside a noisy choice no closed form is known.
"""

BUDGETED = frozenset(
    {"epsilon", "delta", "neighbours", "noise", "random_state", "ledger", "max_rows", "invalid",
     "verbose", "categories", "missing", "drop", "features", "classes", "count_invalid"}
)  # fmt: skip
"""Parameters that a search does not try: they are the search's own, or change what is released."""


def _classifies(search: Any) -> bool:
    return hasattr(search.estimator, "predict_proba")


@dataclass(eq=False, repr=False)
class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):  # type: ignore[misc]
    """Choose hyper-parameters privately: the choice, and every fit that led to it, is paid for.

    A quarter of the rows is held out at random. A trial draws a candidate, fits it to the other
    rows and releases its noisy mean loss on those held out. The number of trials has a geometric
    distribution and is secret, and only the best trial is shown. So all trials together cost about
    as much as two or three of them, however many there were (Liu and Talwar 2019; Papernot and
    Steinke 2022). There is no ``cv_results_``, and the ledger has one entry. The running time shows
    the number of trials; it is outside the promise.

    ``epsilon``, ``delta``, ``noise``, ``ledger`` and the like are those of the whole search; those
    of ``estimator`` are not used. With ``groups`` a person is protected: all rows of a person are
    held out, or none is.

    Parameters
    ----------
    estimator : estimator
        An estimator of this module.
    param_grid : mapping of str to sequence, or a list of mappings
        Parameter to the values to try. They are public: choosing them by looking at the rows is
        outside the promise.
    trials : int, default=10
        Mean number of trials, from 1 to a million; 1 is one random candidate. More trials find
        better ones and leave less budget for each.
    held_out : float, default=0.25
        Fraction of the rows that scores, in (0, 1).

    Attributes
    ----------
    best_estimator_ : estimator
        The model of the best trial, fitted to the rows that were not held out. Its ``privacy_`` is
        that of the search.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its released score: noisy, and too good on average, since it is the best of several. For
        labels it is the fraction that is right. For numbers it is minus the mean loss of
        ``estimator``, where the loss of each row is at most that of an error of 3 scales of the
        target; the scale is released. For counts it is the mean reduction of the Poisson loss
        against a constant, which is released too. Features and predictions are clipped to their
        ranges. With ``groups`` a row that does not count adds no loss.
    score_noise_std_ : float
        Standard deviation of the noise in a score.
    trial_epsilon_ : float
        What one trial costs, at ``delta``.
    classes_ : ndarray of shape (n_classes,)
        Labels, of a classifier.
    warnings_ : tuple of str
        What the best trial warned of, from released numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import PrivateSearchCV
    >>> from privtail.linear_model import DPRidge
    >>> X = np.random.default_rng(0).standard_t(3, (20_000, 4))
    >>> y = X @ [1.0, 2.0, 3.0, 4.0]
    >>> grid = {"alpha": [1.0, 1e6]}
    >>> search = PrivateSearchCV(DPRidge(), grid, noise="simulated", random_state=0).fit(X, y)
    >>> search.best_params_, len(search.privacy_.plan)
    ({'alpha': 1.0}, 2)
    """

    estimator: Any
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    trials: int = 10
    held_out: float = 0.25

    @as_a_whole
    def fit(self, X: Any, y: Any = None, groups: Any = None, **unknown: Any) -> Self:
        """Search; charges the ledger once.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table or table of `privtail.open_table`
            Features (n, d). Every trial reads a file as a fit does.
        y : array of shape (n,) or str, default=None
            Target; needed. With a table of `privtail.open_table` the name of its column.
        groups : array of shape (n,) or str, default=None
            The person of each row. Then persons are protected, with ``max_rows`` rows at most.
        **unknown : Any
            Nothing else is accepted.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If a parameter or the data cannot be used.
        BudgetExceeded
            If the ledger has too little left. No row was read.
        UnsupportedAccounting
            If no theorem gives the cost of these releases for these neighbours.
        """
        if unknown.get("exposure") is not None:
            raise InvalidInput(
                "A search scores margins without an exposure: compare estimators with "
                "privtail.cross_validate(estimator, X, y, epsilon=1, exposure=exposure)."
            )
        self._refuse(unknown)
        candidates, labels = self._candidates(), declared_labels(self.estimator)
        loss = _score(self.estimator, labels)
        self._require_target(y)
        categories, encoding = self.estimator.categories or {}, self.estimator.encoding()
        if encoding.missing != "drop":
            raise InvalidInput(
                "A search scores rows before it knows what their missing numbers count as: use "
                'missing="drop" in it, or compare estimators with privtail.cross_validate.'
            )
        if is_file(X):
            X, groups = without_persons(X, groups)
            X, categories = X.declaring(categories), {}
        if self.invalid == "raise":
            X, y = as_plain_numbers(X), as_plain_numbers(y) if labels is None else as_known(y)
        curator = self._entrusted(
            X, y, groups, categories, encoding=encoding, intercept=True, outputs=loss.outputs,
            classes=labels,
        )  # fmt: skip
        search = TrialSearch(
            curator, X, y, self._held_out(curator.problem.n),
            noise=self.noise, classes=labels, categories=categories, encoding=encoding,
        )  # fmt: skip
        summaries = ColumnSummaries(target=labels is None)

        def plan(multiplier: float) -> Plan:
            rows = curator.problem.max_rows
            event = BestTrial(multiplier=multiplier, trials=self.trials, rows=rows).event()
            releases = summaries.plan(SUMMARY_NOISE * multiplier, curator.problem, 0)
            return compose(releases, (Round(stage="hyper-parameter search", events=(event,)),))

        mechanism = BestTrial(multiplier=calibrate(plan, self._budget()), trials=self.trials)
        plans = [self._planned(model, search.problem, mechanism.rho) for model, _ in candidates]
        plans[0].warn()
        within = [
            (p.releases, fitted_loss(model, loss.outputs))
            for p, (model, _) in zip(plans, candidates, strict=True)
        ]
        curator.open(plan(mechanism.multiplier), within=within)
        score = Score(loss, 1.0)
        if labels is None:
            summary = summaries.run(curator, SUMMARY_NOISE * mechanism.multiplier, ())
            score = _clamped(loss, summary, curator.problem.rows)

        def fit(
            which: int, part: Part, allowance: Allowance, seed: int
        ) -> tuple[Any, Doubles, PredictionRanges]:
            model = clone(candidates[which][0]).set_params(ledger=allowance, categories=categories)
            if self.noise == "simulated":
                model.set_params(random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(part.X, part.y, part.groups)
            w = np.vstack([np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)])
            return model, w, PredictionRanges.of(model.feature_range_, _margin_range(model))

        found = search.run(mechanism, len(candidates), fit, score)
        for model, _ in candidates:
            if isinstance(model, PrivateRegressor):
                curator.assume(core_loss(model.objective()).assumptions)
        self._keep(found, candidates[found.candidate][1], labels)
        self.score_noise_std_ = search.noise(mechanism, score)
        self.trial_epsilon_ = max(p.epsilon for p in plans)
        self.privacy_: Statement = state(curator, (FOUND, *found.model.privacy_.notes))
        self.best_estimator_.privacy_ = self.privacy_
        self.warnings_ = found.model.warnings_
        return self

    def _keep(self, found: Found, params: dict[str, Any], labels: Any) -> None:
        self.best_estimator_ = found.model.set_params(
            ledger=None, random_state=self.random_state, categories=self.estimator.categories,
            invalid=self.invalid,
        )  # fmt: skip
        self.best_params_ = params
        self.best_score_ = -found.loss if labels is None else 1 - found.loss
        if labels is not None:
            self.classes_ = found.model.classes_

    def _candidates(self) -> list[tuple[PrivateLinearModel, dict[str, Any]]]:
        """Every candidate with its parameters, and nothing of its own budget."""
        if not isinstance(self.estimator, PrivateLinearModel):
            raise InvalidInput(
                "PrivateSearchCV searches among estimators of privtail.linear_model, got "
                f"{type(self.estimator).__name__}. Pass one of these: of anything else nobody "
                "knows what a fit costs."
            )
        if (rows := self.estimator.max_rows) not in (None, self.max_rows):
            raise InvalidInput(
                f"max_rows={told(rows)} of the estimator is not that of the search, which decides "
                f"who is protected. Pass it there: PrivateSearchCV(..., max_rows={told(rows)})."
            )
        if not self.param_grid:
            raise InvalidInput('param_grid needs values to try: {"alpha": [0.1, 1.0, 10.0]}.')
        if isinstance(self.param_grid, Iterator):
            raise InvalidInput("param_grid can be read once alone: give a list of dicts.")
        found, known = [], self.estimator.get_params()
        try:
            grid = ParameterGrid(self.param_grid)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"param_grid must map parameters to lists of values. {error}"
            ) from None
        for params in grid:
            for name in sorted(BUDGETED & set(params)):
                raise InvalidInput(
                    f"{name} is not searched: it is the search's own, or decides what is released."
                )
            for name in sorted(params.keys() - known.keys()):
                raise InvalidInput(
                    f"param_grid names {name!r}, which is no parameter of "
                    f"{type(self.estimator).__name__} to be searched. There are: "
                    f"{', '.join(sorted(known.keys() - BUDGETED))}."
                )
            model = clone(self.estimator).set_params(
                **params, delta=self.delta, neighbours=self.neighbours, noise=self.noise,
                random_state=self.random_state, ledger=None, invalid="zero", verbose=0,
                max_rows=self.max_rows,
            )  # fmt: skip
            found.append((model, params))
        return found

    def _held_out(self, n: int) -> int:
        require_number("held_out", self.held_out, 0, open_end=True)
        if not self.held_out < 1:
            raise InvalidInput(f"held_out must be a fraction such as 0.25, got {self.held_out!r}.")
        return min(max(1, round(self.held_out * n)), n - 1)

    def _planned(self, model: PrivateLinearModel, problem: Problem, rho: float) -> FitPlan:
        """The plan of one trial; sets the largest epsilon at which it costs no more than rho."""
        if isinstance(model, PrivateRegressor):
            kind, asked = model.objective().targets, self.estimator.objective().targets
            if kind != asked:
                raise InvalidInput(
                    f"A candidate's loss is for targets of the kind {kind!r}, and the estimator's, "
                    f"which scores it, for {asked!r}. Search them apart."
                )
        return within(model, problem, rho)

    # ---------------------------------------------------------------- used

    def predict(self, X: Any) -> Any:
        """Predictions of ``best_estimator_``.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d).

        Returns
        -------
        ndarray of shape (rows,)

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities of ``best_estimator_``.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d).

        Returns
        -------
        ndarray of shape (rows, n_classes)

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Scores of ``best_estimator_``.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d).

        Returns
        -------
        ndarray of shape (rows,) or (rows, n_classes)

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score of ``best_estimator_``, without noise.

        It is outside the promise, unless the rows are public.

        Parameters
        ----------
        X : array or data frame
            Features (rows, d).
        y : array of shape (rows,)
            Target or labels.
        sample_weight : array of shape (rows,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        tags.input_tags = inner.input_tags
        tags.input_tags.allow_nan = self.invalid != "raise"
        return tags


FOUND = (
    "The best of a secret number of trials; its score is noisy, and too good on average. "
    "Hyper-parameters were chosen among public values."
)


def within(model: PrivateLinearModel, problem: Problem, rho: float) -> FitPlan:
    """The plan of a fit that costs no more than rho in zCDP; sets the largest such epsilon.

    Raises
    ------
    InvalidInput
        If its delta pays for all that rho does.
    UnsupportedAccounting
        If its cost is not known in zCDP.
    """
    problem = replace(problem, intercept=model.fit_intercept)
    if math.isinf(rho):
        model.set_params(epsilon=math.inf)
        return model.planned(problem)
    exact = GaussianDP(math.sqrt(2 * rho)).epsilon(model.delta) * (1 - 1e-9)
    if exact == 0:
        raise InvalidInput(
            f"delta={model.delta:g} is too large for so small an epsilon: delta alone would pay "
            "for each fit. Choose it well below 1/n,",
            "for example delta=1e-6.",
            cli="for example --delta 1e-6.",
        )
    largest = ZeroConcentratedDP(rho).epsilon(model.delta) * (1 - 1e-9)
    for epsilon in (largest, *(exact * SMALLER**k for k in range(ATTEMPTS))):
        model.set_params(epsilon=epsilon)
        plan = model.planned(problem)
        if plan.cost.rho is None or plan.cost.slack:
            break
        if plan.cost.rho <= rho:
            return plan
    raise UnsupportedAccounting(
        "The cost of a search or of cross-validation is known for fits that are zCDP, such as "
        f"those on full batches. {type(model).__name__} has none with this algorithm. Choose",
        "another, such as algorithm='auto'.",
        cli="another, such as --algorithm auto.",
    )


def declared_labels(estimator: PrivateLinearModel) -> Sequence[Any] | None:
    """The declared classes of a classifier; None for numbers."""
    if not hasattr(estimator, "classes"):
        return None
    if estimator.classes is None:
        raise InvalidInput(
            "Searches and cross-validations do not find labels: declare them, for example",
            f"{type(estimator).__name__}(classes=[0, 1]).",
            cli="--classes no,yes.",
        )
    return sorted_labels(estimator.classes)


def fitted_loss(model: PrivateLinearModel, outputs: int) -> AnyLoss:
    """What a trial minimises, but for the weights of labels."""
    if isinstance(model, PrivateRegressor):
        return model.objective()
    return LogisticLoss() if outputs == 1 else MultinomialLoss(classes=outputs)


def _score(estimator: PrivateLinearModel, labels: Sequence[Any] | None) -> Loss:
    """What a held-out row is charged to a candidate."""
    if labels is not None:
        return WrongLabel(outputs=outputs_of(len(labels)))
    loss: Any = estimator.objective() if isinstance(estimator, PrivateRegressor) else None
    if isinstance(loss, GeneralLoss) or not (
        isinstance(loss, AmountLoss) or getattr(loss, "targets", "") == "real"
    ):
        raise InvalidInput(
            "PrivateSearchCV scores numbers and counts by a loss of their margin, and labels: use "
            "a loss such as HuberLoss(threshold=2.0) or PoissonLoss(), or DPLogisticRegression."
        )
    return loss  # type: ignore[no-any-return]


def _margin_range(model: PrivateLinearModel) -> Doubles:
    """(2,) to which predictions clip the margin of a number, a count, or two labels."""
    if not isinstance(model, PrivateRegressor):
        return np.asarray(model.margin_range_)
    if model.link == "log":
        with np.errstate(divide="ignore"):
            return np.log(model.target_range_)
    return np.asarray(model.target_range_)


def _clamped(loss: Loss, summary: Summary, rows: int) -> Score:
    """The loss in units of the target, clamped at its value at an error of `CLAMP` released scales.

    The loss of counts has no smallest value, so it is that beyond a constant of a released size.
    """
    unit = float(summary.scales[-1])
    unit = unit if unit < UNUSED else 1.0
    if isinstance(loss, AmountLoss):
        size = max(float(summary.centres[-1]), unit)
        base = np.zeros((rows, 1))
        base[-1] = math.log(size)
        most = (CLAMP * unit) ** 2 / (2 * size**loss.power)
        return Score(loss, max(CLAMP, most) if loss.power == 1 else most, base)
    loss = loss.at(unit) if isinstance(loss, RelativeHuberLoss) else loss
    errors = np.array([[CLAMP * unit], [-CLAMP * unit]])
    bound = float(np.max(loss.values(errors, np.zeros(2))))
    return Score(loss, bound if 0 < bound < math.inf else 1.0)
