"""Fields of a model's JSON: what is written of each, and read and checked again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.losses import require_power
from privtail.schema.declared import Label
from privtail.schema.encoding import Design

Doubles = NDArray[np.float64]

MEND = "Take the file as privtail wrote it."


@dataclass(frozen=True)
class Column:
    """A column that a model reads: a number, or one of declared categories."""

    name: str
    categories: tuple[Label, ...] | None = None


def endless(count: int) -> Doubles:
    """Ranges (count, 2) without ends."""
    return np.tile([-np.inf, np.inf], (count, 1))


# --- writing --------------------------------------------------------------------------------------


def nullable(ranges: Doubles) -> Any:
    """Ends as JSON has them: null where there is none."""
    found = ranges.astype(object)
    found[~np.isfinite(ranges)] = None
    return found.tolist()


def deviations_to_json(std: Doubles, shape: tuple[int, ...]) -> Any:
    """Null where one is not known; "inf" where it is infinite, which JSON has no number for."""
    rows = np.broadcast_to(std, shape).tolist()
    return [[None if math.isnan(x) else "inf" if x == math.inf else x for x in row] for row in rows]


# --- reading --------------------------------------------------------------------------------------


def typed(content: Mapping[str, Any], name: str, kind: type) -> Any:
    """The field of this name, of this type.

    Raises
    ------
    InvalidInput
        If it is missing or of another type; the functions below raise it alike.
    """
    if not isinstance(content.get(name), kind):
        raise InvalidInput(f"The field {name!r} is missing or has a wrong type. {MEND}")
    return content[name]


def quantile(content: Mapping[str, Any]) -> float | None:
    """Which quantile is predicted, or None."""
    found = content.get("quantile")
    if found is not None and not (isinstance(found, float) and 0 < found < 1):
        raise InvalidInput("The field 'quantile' must be a number between 0 and 1.")
    return found


def power(content: Mapping[str, Any]) -> float | None:
    """The power of the mean in the variance, or None."""
    found = content.get("power")
    if found is not None and (isinstance(found, bool) or not isinstance(found, int | float)):
        raise InvalidInput("The field 'power' must be a number.")
    if found is not None:
        require_power(found)
    return found


def column(content: Any) -> Column:
    """A column, and its categories if it has any."""
    if not isinstance(content, Mapping):
        raise InvalidInput(f"The field 'columns' is missing or has a wrong type. {MEND}")
    categories = content.get("categories")
    name = typed(content, "name", str)
    return Column(name, None if categories is None else labels(name, categories))


def labels(name: str, content: Any) -> tuple[Label, ...]:
    """Distinct labels or categories."""
    plain = isinstance(content, list) and all(isinstance(v, str | int | float) for v in content)
    if not plain or not content or len(set(content)) != len(content):
        raise InvalidInput(f"The labels of {name!r} must be a list of distinct values.")
    return tuple(content)


def numbers(content: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Doubles:
    """Finite numbers of this shape."""
    found = _array(typed(content, name, list))
    if found.shape != shape or not np.isfinite(found).all():
        raise InvalidInput(f"The field {name!r} must hold finite numbers of shape {shape}.")
    return found


def deviations(name: str, content: Mapping[str, Any], shape: tuple[int, int]) -> Doubles:
    """What `deviations_to_json` wrote."""
    std = _array(typed(content, name, list))
    if std.shape != shape or (std < 0).any():
        raise InvalidInput(f"The field {name!r} must hold numbers from 0 of shape {shape}.")
    return std


def fill(content: Any, design: Design) -> Doubles:
    """What missing numbers count as, for the features that are filled in; NaN for the others."""
    count, places = len(design.names), list(design.optional)
    found = np.full(count, math.nan)
    if not places:
        return found
    given = _array(content)
    if given.shape != found.shape or not np.isfinite(given[places]).all():
        raise InvalidInput(f"The field 'fill' must hold {count} numbers or nulls.")
    found[places] = given[places]
    return found


def ranges(name: str, content: Any, count: int) -> Doubles:
    """What `nullable` wrote: pairs of ends."""
    given, found = _array(content), endless(count)
    if given.shape == found.shape:
        found = np.where(np.isnan(given), found, given)
    if given.shape != found.shape or not (found[:, 0] <= found[:, 1]).all():
        raise InvalidInput(f"The field {name!r} must hold {count} pairs of a low and a high end.")
    return found


def margin_range(content: Any, outputs: int) -> Doubles:
    """One pair of ends for all margins, or one for each."""
    if np.ndim(_array(content)) == 2:
        return ranges("margin_range", content, outputs)
    one: Doubles = ranges("margin_range", [content], 1)[0]
    return one


def _array(content: Any) -> Doubles:
    """Numbers, where null becomes NaN; an empty array where there are none."""
    try:
        return np.array(content, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return np.empty(0)
