"""Slopes with standard errors, tests and intervals, as one table."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privtail.errors import InvalidInput
from privtail.model import Column

if TYPE_CHECKING:
    from privtail.linear_model.fitting import PrivateLinearModel

Doubles = NDArray[np.float64]

NO_SAMPLING = (
    "The sampling error of these slopes is not known: it is for models without a penalty, of "
    "numbers by squares or a Huber loss, of counts and of two labels, with privacy and by the "
    'default algorithm. conf_int(kind="noise") has the noise alone, where it is known.'
)


@dataclass(frozen=True, eq=False, repr=False)
class CoefficientTable:
    """Slopes of a fitted model, one row each.

    Attributes
    ----------
    names : of the features; with several labels ``label: feature``.
    coef : slopes. std_err : their standard errors, with noise and sampling in them.
    z, p_value : of the test that a slope of the population is zero, two-sided.
    low, high : ends of the intervals. level : of the intervals.
    intercept : of each output.
    headline : what was promised.
    note : why standard errors are not known; empty where they are.
    """

    names: tuple[str, ...]
    coef: Doubles
    std_err: Doubles
    z: Doubles
    p_value: Doubles
    low: Doubles
    high: Doubles
    level: float
    intercept: Doubles
    headline: str
    note: str

    @property
    def _columns(self) -> dict[str, Doubles]:
        half = (1 - self.level) / 2
        return {
            "coef": self.coef,
            "std err": self.std_err,
            "z": self.z,
            "P>|z|": self.p_value,
            f"{half:.3g}": self.low,
            f"{1 - half:.3g}": self.high,
        }

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Numbers of every feature, by its name; NaN where one is not known."""
        columns = {
            "coef": self.coef, "std_err": self.std_err, "z": self.z, "p_value": self.p_value,
            "low": self.low, "high": self.high,
        }  # fmt: skip
        return {
            name: {key: float(values[i]) for key, values in columns.items()}
            for i, name in enumerate(self.names)
        }

    def to_frame(self) -> Any:
        """The same as a data frame of pandas.

        Raises
        ------
        InvalidInput
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("to_frame needs pandas: pip install pandas.") from None
        return pd.DataFrame.from_dict(self.to_dict(), orient="index")

    def __str__(self) -> str:
        width = max((len(name) for name in self.names), default=0)
        width = max(width, len("intercept"))
        lines = [" " * width + "".join(f"{key:>12}" for key in self._columns)]
        for i, name in enumerate(self.names):
            cells = (_shown(values[i]) for values in self._columns.values())
            lines.append(f"{name:<{width}}" + "".join(f"{cell:>12}" for cell in cells))
        lines.append(f"{'intercept':<{width}}{', '.join(map(_shown, self.intercept)):>12}")
        lines += [self.note] * bool(self.note)
        return "\n".join([*lines, self.headline])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th scope='col'>{html.escape(key)}</th>" for key in self._columns)
        rows = "".join(
            f"<tr><th scope='row'>{html.escape(name)}</th>"
            + "".join(f"<td>{_shown(values[i])}</td>" for values in self._columns.values())
            + "</tr>"
            for i, name in enumerate(self.names)
        )
        ends = ", ".join(map(_shown, self.intercept))
        rows += f"<tr><th scope='row'>intercept</th><td>{ends}</td></tr>"
        below = "".join(
            f"<p>{html.escape(text)}</p>" for text in (self.note, self.headline) if text
        )
        return f"<table><tr><th></th>{head}</tr>{rows}</table>{below}"


def coefficient_table(model: PrivateLinearModel, level: float) -> CoefficientTable:
    """The table of a fitted model."""
    if not 0 < level < 1:
        raise InvalidInput(f"level must lie in (0, 1), for example 0.95; got {level!r}.")
    coef, note = np.atleast_2d(model.coef_), ""
    std = np.full(coef.shape, math.nan)
    try:
        ends = model.conf_int(level).reshape(*coef.shape, 2)
        std = np.broadcast_to(np.hypot(model.coef_noise_std_, model.coef_sampling_std_), coef.shape)
    except InvalidInput as error:
        ends, note = np.full((*coef.shape, 2), math.nan), str(error)
    with np.errstate(all="ignore"):
        z = np.where(np.isinf(std), 0.0, coef / std)
    return CoefficientTable(
        names=_names(model, coef),
        coef=coef.ravel(),
        std_err=std.ravel(),
        z=z.ravel(),
        p_value=2 * ndtr(-np.abs(z.ravel())),
        low=ends[..., 0].ravel(),
        high=ends[..., 1].ravel(),
        level=level,
        intercept=np.atleast_1d(model.intercept_),
        headline=model.privacy_.headline,
        note=note,
    )


def _names(model: Any, coef: Doubles) -> tuple[str, ...]:
    """Of the features, as a saved model names them; numbered where X had no names."""
    known = getattr(model, "feature_names_in_", None)
    if known is None:
        features = [f"x{i}" for i in range(coef.shape[1])]
    else:
        declared = {name: tuple(labels) for name, labels in model.categories_.items()}
        columns = (Column(str(name), declared.get(str(name))) for name in known)
        features = [feature for column in columns for feature in column.features]
    if len(coef) == 1:
        return tuple(features)
    return tuple(f"{label}: {name}" for label in model.classes_ for name in features)


def _shown(x: float) -> str:
    return "" if math.isnan(x) else f"{x:.4g}"
