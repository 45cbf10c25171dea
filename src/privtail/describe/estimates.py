"""What was found, with its noise: counts and quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.coefficients import normal_quantile
from privtail.errors import InvalidInput, told
from privtail.spelling import printable, with_interval
from privtail.statement import Statement, unkept
from privtail.views import MOST, Row, framed, intervals, numbers

Doubles = NDArray[np.float64]
BEYOND = "Rows of a person beyond max_rows, and rows of no person, are in no count."


def beyond(statement: Statement) -> tuple[str, ...]:
    """What counts of persons leave out; nothing where rows are protected."""
    return (BEYOND,) * (statement.max_rows is not None)


def public_numbers(given: Any, name: str) -> Doubles:
    """A copy of public numbers; refused where they are none."""
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be numbers, got {told(given)}.") from None


def within(value: Any, half_width: Any, low: float, high: float) -> Doubles:
    """The value in [low, high], and two ends of its interval: (3, ...).

    Where noise puts a value beyond an end, its interval is that of the end.
    """
    inside = np.clip(value, low, high)
    ends = np.maximum(inside - half_width, low), np.minimum(inside + half_width, high)
    return np.stack([inside, *ends])


def count_interval(counts: Any, std: float, confidence: float, rows: int) -> Doubles:
    """Ends (..., 2) of intervals for counts among ``rows`` rows, by the law of the noise."""
    _, low, high = within(counts, normal_quantile(confidence) * std, 0, rows)
    return np.stack([low, high], axis=-1)


@dataclass(frozen=True)
class CountEstimate:
    """Released counts.

    Attributes
    ----------
    value : float or ndarray of shape (groups,)
        The count, or one for each group.
    noise_std : float
        Standard deviation of the noise in each; may be published.
    groups : tuple of tuple
        The categories of each group; empty where nothing was grouped.
    privacy_ : Statement
        What was spent.
    warnings_ : tuple of str
        What was warned of.

    Examples
    --------
    >>> import pandas as pd
    >>> from privtail import private_count
    >>> frame = pd.DataFrame({"region": ["north", "south"] * 500})
    >>> estimate = private_count(frame, by="region", categories=["north", "south"], epsilon=1.0)
    >>> estimate.groups
    (('north',), ('south',))
    """

    value: Any
    noise_std: float
    groups: tuple[tuple[Any, ...], ...]
    privacy_: Statement
    warnings_: tuple[str, ...] = ()

    def conf_int(self, confidence: float = 0.95) -> Doubles:
        """Ends (..., 2) of an interval for the count of these rows, by the law of the noise.

        Parameters
        ----------
        confidence : float, default=0.95
            How often an interval should hold, in (0, 1).

        Returns
        -------
        ndarray of shape (..., 2)
            The lower and the upper ends.

        Raises
        ------
        InvalidInput
            If ``confidence`` is not in (0, 1).
        """
        return count_interval(self.value, self.noise_std, confidence, self.privacy_.n)

    def to_dict(self) -> dict[Any, float]:
        """Group -> count; a group of one category is named by it."""
        if not self.groups:
            return {"rows": float(self.value)}
        names = [group[0] if len(group) == 1 else group for group in self.groups]
        return dict(zip(names, map(float, self.value), strict=True))

    def __float__(self) -> float:
        return float(self.value)

    def _rows(self) -> list[Row]:
        counts = zip(self.to_dict().items(), self.conf_int().reshape(-1, 2), strict=True)
        return [
            Row(", ".join(map(str, name)) if isinstance(name, tuple) else str(name), count, *ends)
            for (name, count), ends in counts
        ]

    def _repr_html_(self) -> str:
        rows, several = self._rows(), 1 < len(self.groups) <= MOST
        said = f"Intervals are of 95 %; the noise has standard deviation {self.noise_std:.3g}."
        picture = intervals(rows, "Rows in each group", zero=True) if several else ""
        return framed(picture) + numbers(
            rows, (said, *beyond(self.privacy_), *self.warnings_, self.privacy_.headline)
        )

    def __repr__(self) -> str:
        lines = [
            f"{row.name} = {row.value:z,.0f} [{row.low:z,.0f}, {row.high:z,.0f}]"
            for row in self._rows()
        ]
        noise = f"[...] is a 95 % interval; the noise has standard deviation {self.noise_std:.3g}"
        return printable("\n".join([*lines, noise, *beyond(self.privacy_), *unkept(self.privacy_)]))


@dataclass(frozen=True)
class QuantileEstimate:
    """Released quantiles.

    Attributes
    ----------
    levels : tuple of float
        Levels of the quantiles.
    columns : tuple of str
        Names of the columns.
    value : float or ndarray of shape (levels,) or (columns, levels)
        A number for one level of a vector; (levels,) of one column given as a vector.
    low, high : float or ndarray, like ``value``
        Ends of the intervals, for noise and sampling; infinite where noise may hide too much.
    reliable : bool or ndarray, like ``value``
        Whether both ends are finite.
    confidence : float
        Confidence of the intervals.
    count, count_std : float or ndarray of shape (columns,)
        How many cells of each column hold a number, and the standard deviation of its noise.
    privacy_ : Statement
        What was spent.
    warnings_ : tuple of str
        What was warned of.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_quantile
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=2_000)
    >>> estimate = private_quantile(x, [0.25, 0.75], epsilon=1.0)
    >>> estimate.value.shape
    (2,)
    """

    levels: tuple[float, ...]
    columns: tuple[str, ...]
    value: Any
    low: Any
    high: Any
    reliable: Any
    confidence: float
    count: Any
    count_std: Any
    privacy_: Statement
    warnings_: tuple[str, ...] = ()

    def conf_int(self) -> Doubles:
        """Ends (..., 2) of the intervals."""
        return np.stack([np.asarray(self.low), np.asarray(self.high)], axis=-1)

    def to_dict(self) -> dict[str, dict[float, dict[str, float]]]:
        """Column -> level -> value, low and high."""
        shape = len(self.columns), len(self.levels)
        tables = (np.reshape(x, shape) for x in (self.value, self.low, self.high))
        numbers = np.stack(list(tables), axis=-1)
        return {
            name: {
                level: dict(zip(("value", "low", "high"), map(float, facts), strict=True))
                for level, facts in zip(self.levels, rows, strict=True)
            }
            for name, rows in zip(self.columns, numbers, strict=True)
        }

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype)

    def _repr_html_(self) -> str:
        rows = [
            Row.of(f"{name} {level:g}", *facts.values())
            for name, levels in self.to_dict().items()
            for level, facts in levels.items()
        ]
        drawn = len(self.columns) == 1 and len(rows) <= MOST
        picture = intervals(rows, "Quantiles", zero=False) if drawn else ""
        said = f"Intervals of {100 * self.confidence:g} % allow for noise and sampling."
        return framed(picture) + numbers(rows, (said, *self.warnings_, self.privacy_.headline))

    def __repr__(self) -> str:
        lines = [
            f"{name} {level:g}: "
            + with_interval(facts["value"], facts["low"], facts["high"], 6, " in")
            for name, levels in self.to_dict().items()
            for level, facts in levels.items()
        ]
        return printable("\n".join([*lines, *unkept(self.privacy_)]))
