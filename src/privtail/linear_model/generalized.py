"""Private generalized linear models: counts, and any loss with any penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from privtail.default import ScaledDescent
from privtail.domains import L2, Domain, Unconstrained
from privtail.errors import InvalidInput
from privtail.linear_model.fitting import PrivateRegressor, require_number
from privtail.losses import AnyLoss, PoissonLoss, Targets, loss_by_name
from privtail.model import GENERALIZED, Link


@dataclass(eq=False, repr=False)
class DPPoissonRegressor(PrivateRegressor):
    """Private Poisson regression of counts, E[y] = exp(Xw + b), as `PoissonRegressor`.

    Minimises the mean of exp(m) - y m (half the deviance, but for a constant) + alpha/2 |w|^2.

    Parameters
    ----------
    alpha : strength of the penalty, in your units; not of the intercept. By default there is none,
        where scikit-learn has 1: it would silence columns that vary little in their units.

    Everything else is as in `DPLinearRegression`; ``score`` is D^2. The mean of the counts is
    bought first, and no prediction exceeds ``target_range_[1]``: what the highest count allows that
    the same histogram shows.
    """

    kind: ClassVar[str] = "poisson"
    link: ClassVar[Link] = "log"

    alpha: float = 0.0

    _target_kind = "count"

    def _loss(self) -> AnyLoss:
        return PoissonLoss()

    def _domain(self, n: int) -> Domain:
        require_number("alpha", self.alpha, 0)
        return L2(alpha=self.alpha)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@dataclass(eq=False, repr=False)
class DPGeneralizedLinearEstimator(PrivateRegressor):
    """Any loss, any penalty or constraint, any algorithm, on a numeric target.

    Parameters
    ----------
    loss : a name of `privtail.losses.LOSSES` that needs no parameter, or a loss such as
        `HuberLoss(threshold=2.0)` or `CustomLoss(value=..., derivative=...)`.
    domain : a penalty or a set of `privtail.domains`, in your units; None for none. The intercept
        is never in it.

    Everything else is as in `DPLinearRegression`. ``predict`` returns margins, for counts their
    exponentials; for labels use `DPLogisticRegression`.
    """

    kind: ClassVar[str] = GENERALIZED

    loss: Any = "squared"
    domain: Any = None

    @property
    def link(self) -> Link:  # type: ignore[override]
        """What a prediction is."""
        return "log" if self._loss().targets == "count" else "identity"

    def _loss(self) -> AnyLoss:
        loss: Any = loss_by_name(self.loss) if isinstance(self.loss, str) else self.loss
        if not (hasattr(loss, "targets") and hasattr(loss, "values")):
            raise InvalidInput(
                'loss must be a name such as "squared", or a loss of privtail.losses, got '
                f"{type(loss).__name__}."
            )
        return loss  # type: ignore[no-any-return]

    def _domain(self, n: int) -> Domain:
        domain: Any = Unconstrained() if self.domain is None else self.domain
        if not (hasattr(domain, "prox") and hasattr(domain, "scaled")):
            raise InvalidInput(
                "domain must be one of privtail.domains, for example L1(alpha=0.1), or None."
            )
        return domain  # type: ignore[no-any-return]

    def _default(self) -> ScaledDescent:
        return replace(super()._default(), selects=self.domain is None)

    @property
    def _target_kind(self) -> Targets:  # type: ignore[override]
        return self._loss().targets
