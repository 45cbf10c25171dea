"""A model as the core takes it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from privtail.errors import InvalidInput
from privtail.linear_model.estimator import unfitted
from privtail.linear_model.fitting import PrivateLinearModel
from privtail.linear_model.regressor import PrivateRegressor
from privtail.linear_model.search import PrivateSearchCV
from privtail.model import Model
from privtail.trusted.row_errors import AnyModel, LinearModel, OutsideModel


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
        return of_estimator(model), _classes(model)
    if isinstance(y, str):
        raise InvalidInput(
            "A model that is not privtail's would be given the target, too: pass X without that "
            f"column, and y=X[{y!r}]."
        )
    if isinstance(model, str | os.PathLike):
        raise InvalidInput(
            f"A model is needed, got a path. Pass privtail.load({os.fspath(model)!r})."
        )
    if isinstance(model, type) or unfitted(model):
        kind = model if isinstance(model, type) else type(model)
        raise InvalidInput(f"{kind.__name__} is not fitted. Fit it before it is evaluated.")
    classes = _classes(model)
    name = "predict" if classes is None else "predict_proba"
    predict = getattr(model, name, None)
    if not callable(predict):
        raise InvalidInput(
            f"{type(model).__name__} has no {name}. A model of numbers needs predict, one of "
            "labels predict_proba and classes_; fit it before it is evaluated."
        )
    return OutsideModel(predict, trusted_rowwise), classes


def rated(model: Any) -> str | None:
    """What the exposure of the model's fit was called; None where there was none."""
    found: str | None = getattr(model, "exposure_", getattr(model, "exposure", None))
    return found


def variance_power(model: Any) -> float | None:
    """Power of the mean in the variance, of a model of privtail of amounts; None for others."""
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, Model):
        return model.power
    return model.variance_power if isinstance(model, PrivateRegressor) else None


def modelled_quantile(model: Any) -> float | None:
    """Which quantile a model of privtail, or another with such a parameter, predicts; else None."""
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, PrivateRegressor):
        return model.modelled_quantile
    found: float | None = getattr(model, "quantile", None)
    return found


def _classes(model: Any) -> tuple[Any, ...] | None:
    classes = getattr(model, "classes_", None)
    return None if classes is None else tuple(np.asarray(classes).tolist())


def _of_model(model: Model) -> LinearModel:
    return LinearModel(
        model.coef, model.intercept, model.feature_range, model.margin_range, model.target_range,
        model.link, [column.name for column in model.columns], model.categories,
        model.encoding, model.fill,
    )  # fmt: skip


def of_estimator(model: Any) -> LinearModel:
    """A fitted estimator of privtail as the core takes it."""
    endless, names = np.array([-np.inf, np.inf]), getattr(model, "feature_names_in_", None)
    return LinearModel(
        np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), model.feature_range_,
        getattr(model, "margin_range_", endless), getattr(model, "target_range_", endless),
        model.link, None if names is None else [str(name) for name in names], model.categories_,
        model.encoding_, model.fill_,
    )  # fmt: skip
