"""A model as the core takes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from privtail.errors import InvalidInput, real
from privtail.linear_model.estimator import unfitted
from privtail.linear_model.fitting import PrivateLinearModel
from privtail.linear_model.regressor import PrivateRegressor
from privtail.linear_model.search import PrivateSearchCV
from privtail.model import Model
from privtail.spelling import counted
from privtail.trusted.row_errors import AnyModel, LinearModel, OutsideModel
from privtail.trusted.tables import column_names, repeated


def as_model(
    model: Any, X: Any, y: Any, trusted_rowwise: bool
) -> tuple[AnyModel, tuple[Any, ...] | None]:
    """A model as the core takes it, and its labels; None of a model of numbers.

    A model of another library gets the columns of a data frame that it was fitted to, in its order.

    Raises
    ------
    InvalidInput
        If it is not fitted, or has no predictions of the kind that is needed, or was fitted to
        other columns.
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
    return OutsideModel(_of_own_columns(model, X, predict), trusted_rowwise), classes


def _of_own_columns(model: Any, X: Any, predict: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Predictions from the columns that a model of scikit-learn was fitted to, by their names."""
    known, names = getattr(model, "feature_names_in_", None), column_names(X)
    width: int | None = getattr(model, "n_features_in_", None)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if names is None and width is not None and len(shape) == 2 and shape[1] != width:
        raise InvalidInput(f"The model takes {counted(width, 'feature')}, but X has {shape[1]}.")
    if known is None or names is None or isinstance(X, Mapping) or list(known) == list(names):
        return predict
    missing = [str(name) for name in known if name not in names]
    if missing:
        raise InvalidInput(
            f"The data have no column {', '.join(map(repr, missing))}, which the model was fitted "
            "on. Columns are found by name: rename what was renamed."
        )
    if len(set(names)) < len(names):
        raise repeated(names)
    own = list(map(str, known))
    return lambda rows: predict(rows[own] if hasattr(rows, "loc") else rows.select(own))


def require_exposure(models: Sequence[Any], exposure: Any) -> None:
    """Refuse models of rates without an exposure, and an exposure beside other models of privtail.

    Raises
    ------
    InvalidInput
        A model of another library may predict either.
    """
    found = [getattr(model, "best_estimator_", model) for model in models]
    own = [model for model in found if isinstance(model, PrivateLinearModel | Model)]
    called = [getattr(model, "exposure_", getattr(model, "exposure", None)) for model in own]
    rates = [name for name in called if name is not None]
    if rates and len(rates) < len(own):
        raise InvalidInput(
            "One of the models predicts rates, and the other does not. Fit both with an exposure, "
            "or neither."
        )
    if rates and exposure is None:
        raise InvalidInput(
            f"Models of rates need exposure=, one number for each of these rows. In the fit it was "
            f"called {rates[0]!r}."
        )
    if own and not rates and exposure is not None:
        raise InvalidInput(
            "The model was fitted without an exposure, so it does not predict rates. Leave "
            "exposure= out, or fit it with one."
        )


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
    found = getattr(model, "quantile", None)  # of some libraries it is a method
    return real("quantile", found) if isinstance(found, Real) else None


def _classes(model: Any) -> tuple[Any, ...] | None:
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    listed = np.asarray(classes).tolist()
    if not isinstance(listed, list) or len(listed) < 2:
        raise InvalidInput(
            f"The classes_ of {type(model).__name__} must be a list of at least two labels. Fit it "
            "to rows of several labels: one that predicts the same for all has nothing to compare."
        )
    return tuple(listed)


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
