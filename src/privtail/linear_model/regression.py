"""Private least squares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin

from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.scaled_descent import ScaledDescent
from privtail.domains import Unconstrained
from privtail.linear_model.fitting import PrivateLinearModel, decision
from privtail.losses import SquaredLoss
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Plan
from privtail.trusted.ledger import Ledger
from privtail.trusted.problem import Problem


class DPLinearRegression(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Linear regression by private least squares; no bounds on the data are needed.

    Parameters
    ----------
    epsilon, delta : the privacy budget of one ``fit``; ``epsilon=inf`` is not private and says so.
    neighbours : ``"replace_one"`` or ``"zero_out"``.
    algorithm : ``"auto"`` (`ScaledDescent`), a name of `privtail.algorithms.NAMES` (the published
        algorithm on privately standardized features), or an object such as
        `CatoniDescent(steps=..., step_size=..., scale=..., smoothing=...)` in your units.
    fit_intercept : add an intercept, which is never penalised.
    categories : column -> declared categories, for data frames; one-hot encoded in the core.
    invalid : ``"zero"`` (rows with a non-finite number count as zero) or ``"raise"``.
    noise : ``"exact"`` or ``"simulated"`` (fast, seeded, not private).
    random_state : seed of public choices, and of simulated noise.
    ledger : a shared `Ledger` that this fit is charged to.
    verbose : accepted for symmetry; nothing is printed.

    Attributes
    ----------
    coef_ : (d,) slopes. intercept_ : float. n_iter_ : int. n_features_in_ : int.
    privacy_ : the `Statement` of what was spent, on what, under which assumptions.

    Raises
    ------
    InvalidInput, BudgetExceeded, UnsupportedAccounting

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).standard_t(2.5, size=(20_000, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + 4.0
    >>> model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1, 2, 3]).max() < 0.2)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        neighbours: Neighbours = "replace_one",
        algorithm: Any = "auto",
        fit_intercept: bool = True,
        categories: Mapping[str, Sequence[Any]] | None = None,
        invalid: Literal["zero", "raise"] = "zero",
        noise: Literal["exact", "simulated"] = "exact",
        random_state: int | None = None,
        ledger: Ledger | None = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.algorithm = algorithm
        self.fit_intercept = fit_intercept
        self.categories = categories
        self.invalid = invalid
        self.noise = noise
        self.random_state = random_state
        self.ledger = ledger
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Fit on X (n, d) and y (n,); charges the ledger once."""
        curator = self._curate(X, y, outputs=1, classes=None, categories=self.categories)
        result = self._release(curator, self._chosen(), SquaredLoss(), Unconstrained())
        d = curator.problem.d
        self.coef_ = result.w[:d, 0]
        self.intercept_ = float(result.w[d, 0]) if self.fit_intercept else 0.0
        return self

    def _chosen(self) -> Algorithm:
        default = ScaledDescent(level=0.9, pace=2.0, most_noise=1.0)
        return self._algorithm(default, curvature=1.0, scale_target=True)

    def _plans(self, problem: Problem) -> Callable[[float], Plan]:
        return lambda m: self._chosen().plan(m, problem)

    def predict(self, X: Any) -> Any:
        """Predictions (rows,) for X (rows, d)."""
        features = self._encoded(X)
        return decision(features, self.coef_[None, :], np.array([self.intercept_]))[:, 0]
