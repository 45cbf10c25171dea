"""Options that every plan of an evaluation shares, and the model as the core takes it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privtail.errors import BudgetExceeded, InvalidInput
from privtail.linear_model.fitting import PrivateLinearModel
from privtail.linear_model.search import PrivateSearchCV
from privtail.model import Model
from privtail.trusted.budget import Budget, Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.judged import AnyModel, Judged, LinearModel, OutsideModel
from privtail.trusted.ledger import Ledger, as_ledger


@dataclass(frozen=True, kw_only=True)
class Promised:
    """What is promised for an evaluation as a whole, and where noise comes from."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    noise: Literal["exact", "simulated"]
    random_state: int | None
    ledger: Ledger | str | os.PathLike[str] | None
    groups: Any
    max_rows: int | None

    def require_left(self) -> None:
        """Refuse before the first of several plans what the ledger cannot pay for as a whole.

        Raises
        ------
        BudgetExceeded
            If less than epsilon and delta is left.
        """
        ledger = as_ledger(self.ledger)
        if not isinstance(ledger, Ledger):
            return
        epsilon, delta = ledger.remaining
        if self.epsilon > epsilon * (1 + 1e-9) or self.delta > delta * (1 + 1e-9):
            raise BudgetExceeded(
                f"This costs epsilon = {self.epsilon:g} and delta = {self.delta:g}, but the ledger "
                f"has {epsilon:.4g} and {delta:.4g} left. Nothing was charged: ask for less, or "
                "use another ledger."
            )

    def curator(self, judged: Judged, label: str, part: float = 1.0) -> Curator:
        """Of these rows, for this part of epsilon and delta."""
        return judged.curator(
            budget=Budget(part * self.epsilon, part * self.delta, self.neighbours),
            ledger=as_ledger(self.ledger),
            noise=self.noise,
            random_state=self.random_state,
            groups=self.groups,
            max_rows=self.max_rows,
            label=label,
        )


def as_model(model: Any, y: Any, trusted_rowwise: bool) -> tuple[AnyModel, tuple[Any, ...] | None]:
    """A model as the core takes it, and its labels; None of a model of numbers.

    Raises
    ------
    InvalidInput
        If it is not fitted, or has no predictions of the kind that is needed.
    """
    if isinstance(model, PrivateSearchCV):
        model = getattr(model, "best_estimator_", model)
    if isinstance(model, Model):
        return _of_model(model), model.classes
    if isinstance(model, PrivateLinearModel) and hasattr(model, "coef_"):
        return _of_estimator(model), _classes(model)
    if isinstance(y, str):
        raise InvalidInput(
            "A model that is not privtail's would be given the target, too: pass X without that "
            f"column, and y=X[{y!r}]."
        )
    classes = _classes(model)
    name = "predict" if classes is None else "predict_proba"
    predict = getattr(model, name, None)
    if not callable(predict):
        raise InvalidInput(
            f"{type(model).__name__} has no {name}. A model of numbers needs predict, one of "
            "labels predict_proba and classes_; fit it before it is evaluated."
        )
    return OutsideModel(predict, trusted_rowwise), classes


def _classes(model: Any) -> tuple[Any, ...] | None:
    classes = getattr(model, "classes_", None)
    return None if classes is None else tuple(np.asarray(classes).tolist())


def _of_model(model: Model) -> LinearModel:
    return LinearModel(
        model.coef, model.intercept, model.feature_range, model.margin_range, model.target_range,
        model.link, [column.name for column in model.columns], model.categories,
    )  # fmt: skip


def _of_estimator(model: Any) -> LinearModel:
    endless, names = np.array([-np.inf, np.inf]), getattr(model, "feature_names_in_", None)
    return LinearModel(
        np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), model.feature_range_,
        getattr(model, "margin_range_", endless), getattr(model, "target_range_", endless),
        model.link, None if names is None else [str(name) for name in names], model.categories_,
    )  # fmt: skip
