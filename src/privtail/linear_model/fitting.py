"""What all estimators share: from parameters to a calibrated, released and documented fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from privtail.algorithms.names import named
from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.result import Result
from privtail.domains import Domain, Slopes, require
from privtail.errors import InvalidInput
from privtail.losses import AnyLoss
from privtail.statement import Statement, state
from privtail.trusted.accountants import calibrate
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone
from privtail.trusted.tables import feature_blocks

LABEL_SHARE = 0.1
"""Part of epsilon and of delta that buys undeclared labels."""

MOST_CLASSES = 64
"""Room in the plan for labels that are still to buy."""


CUSHION = 1 - 2.0**-40
"""Plans for up to 64 classes have this much less noise than any release, roundings included."""


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Abstract: a linear model fitted by a private algorithm."""

    epsilon: float
    delta: float
    neighbours: Any
    algorithm: Any
    fit_intercept: bool
    invalid: str
    noise: Any
    random_state: int | None
    ledger: Ledger | None
    privacy_: Statement

    def plan(self, n: int, d: int, indicators: int = 0) -> Plan:
        """What ``fit`` will release on n rows and d (encoded) features; reads no data.

        ``indicators`` of the d features encode declared categories. With labels still to buy, the
        plan has room for 64 classes.

        Raises
        ------
        InvalidInput, BudgetExceeded, UnsupportedAccounting
        """
        problem = Problem(
            n=n, d=d, intercept=self.fit_intercept, indicators=tuple(range(indicators))
        )
        make = self._plans(problem)
        return make(calibrate(make, Budget(self.epsilon, self.delta, self.neighbours)))

    @abstractmethod
    def _plans(self, problem: Problem) -> Callable[[float], Plan]:
        """From a noise multiplier to the plan of a fit."""

    def _curate(
        self, X: Any, y: Any, *, outputs: int, classes: Sequence[Any] | None,
        categories: Mapping[str, Sequence[Any]] | None, assumptions: Sequence[str] = (),
    ) -> Curator:  # fmt: skip
        """Hand the records to a curator; from here nobody else holds them."""
        if self.invalid not in ("zero", "raise"):
            raise InvalidInput(f'invalid must be "zero" or "raise", got {self.invalid!r}.')
        if y is None:
            raise InvalidInput(f"{type(self).__name__} needs a target: fit(X, y).")
        if not isinstance(X, Mapping):
            validate_data(self, X, skip_check_array=True)
        outside = list(assumptions)
        if self.invalid == "raise":
            outside.append(
                "invalid='raise': the refusal of non-finite rows is outside the guarantee."
            )
        curator = Curator(
            X,
            y,
            budget=Budget(self.epsilon, self.delta, self.neighbours),
            ledger=self.ledger,
            noise=self.noise,
            random_state=self.random_state,
            intercept=self.fit_intercept,
            outputs=outputs,
            classes=classes,
            categories=categories,
            label=type(self).__name__,
            assumptions=outside,
        )
        if self.invalid == "raise":
            curator.refuse_non_finite()
        return curator

    def _algorithm(self, default: Algorithm, *, curvature: float, scale_target: bool) -> Algorithm:
        """The algorithm that the user named or built; ``"auto"`` is ``default``."""
        asked = self.algorithm
        if isinstance(asked, str):
            if asked == "auto":
                return default
            budget = Budget(self.epsilon, self.delta, self.neighbours)
            return named(asked, budget, curvature, scale_target=scale_target)
        if not (hasattr(asked, "plan") and hasattr(asked, "run")):
            raise InvalidInput("algorithm needs plan(multiplier, problem) and run(...).")
        return asked  # type: ignore[no-any-return]

    def _encoded(self, X: Any) -> Any:
        """Features to predict with: as they are, or with declared categories encoded."""
        check_is_fitted(self)
        if not (self.categories or isinstance(X, Mapping)):
            if getattr(X, "ndim", 2) != 2:
                raise InvalidInput(
                    "predict needs two dimensions (rows, features): x.reshape(1, -1) for one row."
                )
            return validate_data(self, X, reset=False, accept_sparse="csr")
        if not (isinstance(X, Mapping) or hasattr(X, "columns")):
            raise InvalidInput("This model was fitted on named columns; pass a data frame.")
        if not isinstance(X, Mapping):
            validate_data(self, X, reset=False, skip_check_array=True)
        columns = X if isinstance(X, Mapping) else {str(name): X[name] for name in X.columns}
        return np.vstack(list(feature_blocks(columns, self.categories or {})))

    def _release(
        self, curator: Curator, algorithm: Algorithm, loss: AnyLoss, domain: Domain
    ) -> Result:
        """Calibrate, run, and keep the statement."""
        require(domain, *algorithm.needs, needed_by=type(algorithm).__name__)
        multiplier = curator.calibrate(lambda m: algorithm.plan(m, curator.problem))
        return self._keep(curator, algorithm, loss, domain, multiplier)

    def _keep(
        self, curator: Curator, algorithm: Algorithm, loss: AnyLoss, domain: Domain,
        multiplier: float,
    ) -> Result:  # fmt: skip
        if curator.problem.intercept:
            domain = Slopes(domain=domain)
        result = algorithm.run(curator, loss, domain, multiplier)
        self.n_iter_ = result.steps
        if not hasattr(self, "n_features_in_"):
            self.n_features_in_ = curator.problem.d
        self.privacy_ = state(curator)
        return result

    def _label_plans(self, algorithm: Algorithm, problem: Problem) -> Callable[[float], Plan]:
        """Labels from a share of the budget, then the fit, planned for up to 64 classes."""
        first = Round(events=(self._label_mechanism().event(),))
        widest = replace(problem, outputs=MOST_CLASSES)
        return lambda m: compose((first,), algorithm.plan(CUSHION * m, widest))

    def _label_mechanism(self) -> StabilityHistogram:
        return StabilityHistogram(LABEL_SHARE * self.epsilon, LABEL_SHARE * self.delta)

    def _buy_labels(self, curator: Curator, algorithm: Algorithm) -> tuple[list[Any], float]:
        """Release the labels; the multiplier is that of the whole fit."""
        mechanism = self._label_mechanism()
        multiplier = curator.calibrate(self._label_plans(algorithm, curator.problem))
        found = next(curator.rounds(Everyone(), 1)).labels(mechanism.epsilon, mechanism.delta)
        return found[:MOST_CLASSES], multiplier


def decision(X: Any, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> Any:
    """Scores (rows, K) = X coef^T + intercept, dense or sparse."""
    return np.asarray(X @ coef.T) + intercept
