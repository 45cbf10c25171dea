"""What has a budget of its own: parameters, a curator, and a fit that succeeds as a whole."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted, validate_data

from privtail.compilation import QUIET, steady
from privtail.dask_collections import announced, is_spread
from privtail.errors import AccuracyWarning, InvalidInput, told, warn
from privtail.ledgers import as_ledger, telling_charge
from privtail.linear_model.documented import documented
from privtail.linear_model.remarks import target_among_features
from privtail.schema.containers import named_column, repeated
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import Budget, Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.ledger import Ledger
from privtail.trusted.refusals import as_known, as_plain_numbers
from privtail.trusted.tables import (
    column_names,
    is_column,
    is_file,
    require_categories,
    require_read,
    require_typed,
    without_persons,
)

Fitted = TypeVar("Fitted", bound="PrivateEstimator")


def as_a_whole(fit: Callable[..., Fitted]) -> Callable[..., Fitted]:
    """Decorate ``fit``: it changes its estimator when all is done, and else not at all.

    It runs on a copy that has the parameters and nothing that was fitted. So a refused or failed
    fit leaves the model that was there, and a new model has nothing of the old one. Lists and
    dictionaries are copied, too: whoever changes them later changes no model. What the fit has to
    warn of (``warnings_``) comes last: whoever makes errors of warnings keeps what was paid
    for.
    """

    @functools.wraps(fit)
    def whole(self: Fitted, *args: Any, **kwargs: Any) -> Fitted:
        fitted = type(self)._fitted  # noqa: SLF001  of this very class
        fresh = _own(self)
        for name in fitted(fresh):
            delattr(fresh, name)
        with telling_charge(getattr(self, "ledger", None)):
            steady(fit)(fresh, *args, **kwargs)
        for name in fitted(self).keys() - fitted(fresh).keys():
            with contextlib.suppress(AttributeError):  # another thread may fit it, too
                delattr(self, name)
        self.__setstate__(fitted(fresh))  # all at once
        for text in getattr(fresh, "warnings_", ()):
            warn(text, AccuracyWarning)
        return self

    return whole


def _own(value: Any) -> Any:
    """A copy of an estimator, and of the plain containers among its parameters."""
    if isinstance(value, PrivateEstimator):
        fresh = copy.copy(value)
        for name, given in value.get_params(deep=False).items():
            if (own := _own(given)) is not given:
                setattr(fresh, name, own)
        return fresh
    if type(value) is dict:
        return {key: _own(one) for key, one in value.items()}
    if type(value) is list:
        return list(map(_own, value))
    return value.copy() if type(value) is np.ndarray else value


def unfitted(model: Any) -> bool:
    """Whether an estimator of scikit-learn has nothing that a fit leaves, by its own rule."""
    if not isinstance(model, BaseEstimator):
        return False
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Abstract: what has a budget of its own, and hands its rows to a curator.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one ``fit``, above 0. ``math.inf`` fits without privacy; the statement
        says so.
    delta : float, default=1e-6
        Additive term of the guarantee, in [0, 1). Keep it well below 1 / n.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    invalid : {"zero", "raise"}, default="zero"
        What happens to rows with a non-finite number or an undeclared label. ``"zero"`` lets them
        count as zero. ``"raise"`` refuses the table, as scikit-learn does; the refusal is outside
        the guarantee.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private: for experiments on public data.
    random_state : int or None, default=None
        Seed of public choices, and of simulated noise. It never seeds exact noise.
    ledger : Ledger, path or None, default=None
        Shared `Ledger`, or the path of an existing one, that every fit is charged to.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``fit(X, y, groups)``. Groups are persons,
        and no column to group by. More rows of a person need more noise. Gradients divide by all n
        rows, so most rows should count.

    Attributes
    ----------
    privacy_ : Statement
        What was spent, on what, under which assumptions.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the columns, if X had any.
    categories_ : dict
        The declared categories by column.

    Raises
    ------
    InvalidInput
        If a parameter or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.
    UnsupportedAccounting
        If no theorem gives the cost of these releases for these neighbours.
    """

    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    neighbours: Neighbours = "replace_one"
    invalid: Literal["zero", "raise"] = "zero"
    noise: Literal["exact", "simulated"] = "exact"
    random_state: int | None = None
    ledger: Ledger | Allowance | str | os.PathLike[str] | None = None
    max_rows: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Add to the docstring what is inherited."""
        super().__init_subclass__(**kwargs)
        cls.__doc__ = documented(cls)

    def _fitted(self) -> dict[str, Any]:
        """What scikit-learn's convention calls fitted: attributes that end with an underscore."""
        names = (name for name in dir(self) if name.endswith("_") and not name.startswith("_"))
        return {name: getattr(self, name) for name in names if not hasattr(type(self), name)}

    def _budget(self) -> Budget:
        return Budget(self.epsilon, self.delta, self.neighbours)

    def _refuse(self, unknown: Mapping[str, Any]) -> None:
        """Arguments of ``fit`` that are not for us, and parameters that mean nothing."""
        if unknown.get("sample_weight") is not None:
            raise InvalidInput(
                "sample_weight is refused: a weight decides how far one row may move the model, so "
                "weights that depend on rows would break the promise. Use class_weight. For "
                "a row that must not count, make its target missing."
            )
        if unknown.get("exposure") is not None:
            raise InvalidInput(
                f"{type(self).__name__} takes no exposure. Models of counts and amounts do: "
                "DPPoissonRegressor, DPGammaRegressor, DPTweedieRegressor."
            )
        for name in unknown.keys() - {"sample_weight"}:
            known = name in self.get_params(deep=False)
            mend = f" It belongs to the estimator: {type(self).__name__}({name}=...)." * known
            mend += " Models with a log link take exposure=numpy.exp(offset)." * (name == "offset")
            raise TypeError(f"fit() got an unexpected argument {name!r}.{mend}")
        self._require_parameters()

    def _require_parameters(self) -> None:
        """Refuse parameters that mean nothing, before anything else happens."""
        if self.invalid not in ("zero", "raise"):
            raise InvalidInput(f'invalid must be "zero" or "raise", got {told(self.invalid)}.')
        seed: Any = self.random_state
        if seed is not None:
            whole = isinstance(seed, Integral) and not isinstance(seed, bool)
            if not (whole and seed >= 0):
                raise InvalidInput(
                    f"random_state must be None or a whole number such as 0, got {told(seed)}: a "
                    "generator would change with every fit."
                )

    def _require_target(self, y: Any) -> None:
        if y is None:
            raise InvalidInput(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "fit(X, y)."
            )
        if self.invalid != "raise":
            require_read(y)
        if is_spread(y):
            announced(y)
        if getattr(y, "ndim", 1) == 2 and y.shape[1] == 1 and not hasattr(type(y), "tocsr"):
            warn(
                "A column-vector y was passed when a 1d array was expected: use y.ravel().",
                DataConversionWarning,
            )

    def _remembered(
        self, X: Any, y: Any, categories: Mapping[str, Sequence[Any]] | None = None
    ) -> Any:
        """Renew what is known of the columns from what is public of X."""
        require_typed(X)
        require_categories(categories)
        self.categories_ = dict(categories or {})
        # The class is asked: of a data frame a column may be called dtype.
        if hasattr(type(X), "dtype") and getattr(X.dtype, "kind", "") == "c":
            raise InvalidInput("Complex data not supported: X and y must hold real numbers.")
        frame = is_spread(X) and column_names(X) is not None
        if isinstance(X, Mapping) or is_file(X) or is_arrow(X) or frame:
            if is_file(X):
                X = X.declaring(self.categories_)
                self.categories_ = dict(X.categories)
            names = names_of(X, y)
            self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        else:
            columns = column_names(X) or ()
            if len(set(columns)) != len(columns):
                raise repeated(columns)
            validate_data(self, X, skip_check_array=True)
        if getattr(self, "n_features_in_", None) == 0:
            raise InvalidInput(
                f"Found array with 0 feature(s) (shape={(0 if frame else len(X), 0)}) while a "
                "minimum of 1 is required."
            )
        return X

    def _entrusted(
        self, X: Any, y: Any = None, groups: Any = None,
        categories: Mapping[str, Sequence[Any]] | None = None, **options: Any,
    ) -> Curator:  # fmt: skip
        """Hand the records to a curator; from here nobody else holds them."""
        X, groups = without_persons(X, groups)
        X, options["exposure"] = exposed(X, y, options.get("exposure"))
        if self.invalid == "raise":
            X = as_plain_numbers(X)
            y = as_plain_numbers(y) if options.get("classes") is None else as_known(y)
        X = self._remembered(X, y, categories)
        curator = Curator(
            X,
            y,
            budget=self._budget(),
            ledger=as_ledger(self.ledger),
            noise=self.noise,
            random_state=self.random_state,
            categories=None if categories is None else self.categories_,
            groups=groups,
            max_rows=self.max_rows,
            label=type(self).__name__,
            assumptions=_OUTSIDE if self.invalid == "raise" else (),
            **options,
        )
        for text in target_among_features(getattr(self, "feature_names_in_", ()), y):
            warn(text, AccuracyWarning)
        if self.invalid == "raise":
            curator.refuse_non_finite()
        return curator

    # ---------------------------------------------------------------- shown

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown:
            shown["text/html"] += self._statement_html()
        return shown

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_
        return lambda: diagram() + self._statement_html()

    def _statement_html(self) -> str:
        return self.privacy_._repr_html_() if hasattr(self, "privacy_") else ""


def checked(check: Callable[[Any], Any], X: Any) -> Any:
    """X as a ``check`` of scikit-learn gives it, of a kind, a shape and names that it takes.

    Its refusals show cells. So a first check sees no row, and another refusal says nothing of X.
    """
    X = as_plain_numbers(X)
    if getattr(X, "ndim", 2) != 2 or not hasattr(X, "__getitem__") or is_column(X):
        raise InvalidInput(
            "Rows need two dimensions (rows, features). Reshape your data: x.reshape(1, -1) for "
            "one row, frame.iloc[[0]] for one of a data frame."
        )
    rows = X.tocsr() if hasattr(X, "tocsr") else getattr(X, "iloc", X)  # by position in pandas 2
    check(rows[:0])
    try:
        with QUIET:
            return check(X)
    except (OverflowError, TypeError, ValueError):
        raise InvalidInput(
            "Input X contains what is no number; or NaN or infinity, which invalid='raise' refuses."
        ) from None


_OUTSIDE = ("invalid='raise': the refusal of non-finite rows is outside the guarantee.",)


def is_arrow(X: Any) -> bool:
    """Whether X is an Arrow table, or has names as one has."""
    return hasattr(type(X), "column_names")


def exposed(X: Any, y: Any, exposure: Any) -> tuple[Any, Any]:
    """A file that knows its column of exposures, and None; or X itself, and the exposures.

    Raises
    ------
    InvalidInput
        If the exposure is a name and X no file, or the target is a name and the exposure is not.
    """
    if exposure is None:
        return X, None
    file = is_file(X)
    if isinstance(exposure, str) and not file:
        raise named_column("exposure", exposure)
    if file and isinstance(exposure, str) != isinstance(y, str):
        raise InvalidInput("Of a file, y and exposure are both names of columns, or both arrays.")
    if exposure == y if isinstance(exposure, str) else False:
        raise InvalidInput(f"Column {exposure!r} is the target; name another column as exposure.")
    return (X.exposed(exposure), None) if isinstance(exposure, str) else (X, exposure)


def names_of(X: Any, target: Any = None) -> list[str]:
    """The columns of X, without the target of a file."""
    if is_file(X):
        return list(X.features(target if isinstance(target, str) else None))
    return [str(name) for name in column_names(X) or ()]
