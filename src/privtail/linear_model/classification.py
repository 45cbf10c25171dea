"""Private logistic regression, binary and multinomial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.scaled_descent import ScaledDescent
from privtail.domains import L2, Domain, Unconstrained, require
from privtail.errors import InvalidInput
from privtail.linear_model.fitting import PrivateLinearModel, decision
from privtail.losses import LogisticLoss, Loss, MultinomialLoss
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Plan
from privtail.trusted.ledger import Ledger
from privtail.trusted.problem import Problem


class DPLogisticRegression(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """Logistic regression under differential privacy; no bounds on the data are needed.

    Parameters
    ----------
    C : inverse strength of the ridge penalty, as in scikit-learn: the objective is
        |coef|^2/2 + C sum of losses. ``inf`` for none.
    classes : declared labels, in order. None buys them with a tenth of the budget; then a label
        needs about 20/epsilon x log(1/delta) records to be found.
    epsilon, delta, neighbours, algorithm, fit_intercept, categories, invalid, noise, random_state,
    ledger, verbose : as in `DPLinearRegression`.

    Attributes
    ----------
    coef_ : (1, d), or (K, d) for K > 2 classes. intercept_ : (1,) or (K,). classes_ : (K,).
    n_iter_, n_features_in_ : int. privacy_ : the `Statement`.

    Raises
    ------
    InvalidInput, BudgetExceeded, UnsupportedAccounting
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: Neighbours = "replace_one",
        algorithm: Any = "auto",
        fit_intercept: bool = True,
        classes: Sequence[Any] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        invalid: Literal["zero", "raise"] = "zero",
        noise: Literal["exact", "simulated"] = "exact",
        random_state: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.categories = categories
        self.invalid = invalid
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X (n, d) and labels y (n,); charges the ledger once."""
        if not self.C > 0:
            raise InvalidInput(f"C must be positive, got {self.C!r}.")
        if isinstance(self.classes, str):
            raise InvalidInput(f"classes must be a list of labels, got the text {self.classes!r}.")
        declared = None if self.classes is None else list(self.classes)
        if declared is not None:
            self._require_two(declared, bought=False)
        outputs = 1 if declared is None or len(declared) == 2 else len(declared)
        curator = self._curate(
            X, y, outputs=outputs, classes=declared or (), categories=self.categories
        )
        algorithm = self._chosen()
        n, d = curator.problem.n, curator.problem.d
        domain: Domain = L2(alpha=1 / (self.C * n)) if np.isfinite(self.C) else Unconstrained()
        require(domain, *algorithm.needs, needed_by=type(algorithm).__name__)
        if declared is None:
            found, multiplier = self._buy_labels(curator, algorithm)
            declared = found
            self._require_two(declared, bought=True)
            curator.declare(declared)
            curator.reshape(1 if len(declared) == 2 else len(declared))
        else:
            multiplier = curator.calibrate(lambda m: algorithm.plan(m, curator.problem))
        loss: Loss = (
            LogisticLoss() if len(declared) == 2 else MultinomialLoss(classes=len(declared))
        )
        result = self._keep(curator, algorithm, loss, domain, multiplier)
        self.classes_ = _as_classes(declared)
        self.coef_ = np.ascontiguousarray(result.w[:d].T)
        self.intercept_ = result.w[d].copy() if self.fit_intercept else np.zeros(len(self.coef_))
        return self

    def _chosen(self) -> Algorithm:
        default = ScaledDescent(level=0.1, pace=6.0, decay=0.25, most_noise=1.0, scale_target=False)
        return self._algorithm(default, curvature=0.5, scale_target=False)

    def _plans(self, problem: Problem) -> Callable[[float], Plan]:
        if self.classes is None:
            return self._label_plans(self._chosen(), problem)
        outputs = 1 if len(self.classes) == 2 else len(self.classes)
        problem = replace(problem, outputs=outputs)
        return lambda m: self._chosen().plan(m, problem)

    @staticmethod
    def _require_two(classes: Sequence[Any], *, bought: bool) -> None:
        if len(classes) >= 2:
            return
        if bought:
            raise InvalidInput(
                f"The released label histogram holds {len(classes)} classes; a classifier needs "
                "two. A label needs about 20/epsilon x log(1/delta) records to be found. The "
                "budget is spent. Declare the labels: classes=[...]."
            )
        raise InvalidInput("A classifier needs at least two classes.")

    def decision_function(self, X: Any) -> Any:
        """Scores: (rows,) for two classes, else (rows, K)."""
        scores = decision(self._encoded(X), self.coef_, self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities (rows, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            p = expit(scores)
            return np.column_stack([1 - p, p])
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> Any:
        """Most probable class (rows,)."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]


def _as_classes(labels: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array that keeps the type of each: text and numbers together are objects."""
    kinds = {isinstance(label, str) for label in labels}
    return np.array(labels, dtype=object if len(kinds) > 1 else None)
