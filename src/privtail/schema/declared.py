"""Labels that somebody declared, as the type of their column writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privtail.errors import InvalidInput
from privtail.schema.kinds import require_no_times

Label = str | int | float | bool
Declared = Mapping[str, Sequence[Label] | None]
Declarations = Mapping[str, Sequence[Label]]


def typed_labels(
    name: str, declared: Sequence[Label], numeric: bool
) -> tuple[Label, ...]:  # fmt: skip
    """Declared labels as the type of their column writes them: numbers, or text.

    Raises
    ------
    InvalidInput
        If text is declared for a column of numbers, or two labels become the same.
    """
    if not numeric:
        require_no_times(declared, f"Column {name!r}")
    if numeric:
        if not are_numbers(declared):
            wrong = next(value for value in declared if not is_numeral(str(value)))
            raise InvalidInput(
                f"Column {name!r} holds numbers, but {wrong!r} is declared for it, which is not a "
                "number. Declare numbers."
            )
        labels: tuple[Label, ...] = tuple(whole(float(value)) for value in declared)
    else:
        text = tuple(str.__str__(str(value)) for value in declared)
        labels = tuple(one.lower() for one in text) if are_truths(text) else text
    if len(set(labels)) != len(labels):
        raise InvalidInput(f"A label of column {name!r} is declared twice. Declare each once.")
    return labels


def typed_times(what: str, declared: Sequence[Label], arrow: Any) -> tuple[Label, ...]:
    """Declared days or times as an Arrow type writes them, such as to the microsecond.

    Raises
    ------
    InvalidInput
        If one is no such time: no row could match it. ``what`` names the column there.
    """
    import pyarrow as pa

    try:
        times = pa.array([str(value) for value in declared]).cast(arrow)
    except pa.ArrowInvalid:
        wanted = "moment" if getattr(arrow, "tz", None) else "clock"
        raise like_times(what, arrow, wanted, day=pa.types.is_date(arrow)) from None
    labels = tuple(times.cast(pa.string()).to_pylist())
    if len(set(labels)) != len(labels):
        raise InvalidInput(f"A label of {what} is declared twice. Declare each once.")
    return labels


def like_times(what: str, kind: Any, wanted: str, *, day: bool = True) -> InvalidInput:
    """The refusal of what is declared for times of another kind; ``what`` names their column."""
    like = "2020-01-31" if day else "2020-01-31 14:00:00"
    like = {"moment": "2020-01-31 14:00:00+00:00", "clock": like}.get(wanted, "")
    mend = f'Write for example "{like}".' if like else "Declare objects of datetime.timedelta."
    return InvalidInput(
        f"{what[:1].upper()}{what[1:]} holds {kind}, and what is declared for it is not of this "
        f"kind: no row would match. {mend}"
    )


def plain(label: Any) -> Any:
    """A label, or a name, of a plain class: one of its own could be another each time."""
    kinds = (bool, bool), (str, str.__str__), (int, int.__index__), (float, float.__float__)
    read = next((read for kind, read in kinds if isinstance(label, kind)), None)
    return str.__str__(str(label)) if read is None else read(label)


def whole(label: Label) -> Label:
    """1 instead of 1.0."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def are_numbers(declared: Sequence[Label]) -> bool:
    """Whether all labels are numbers as they are usually written, so not '007'."""
    return all(not isinstance(value, bool) and is_numeral(str(value)) for value in declared)


def given_as_numbers(declared: Sequence[Label]) -> bool:
    """Whether labels are declared, and none is text, or true or false."""
    return len(declared) > 0 and all(
        not isinstance(value, str | bool | np.bool_) for value in declared
    )


def numbers_of(text: Sequence[str]) -> tuple[Label, ...]:
    """Labels that somebody typed: numbers if all are, as they are usually written; else text."""
    return tuple(whole(float(value)) if are_numbers(text) else value for value in text)


def is_numeral(text: str) -> bool:
    """Whether this is a finite number as it is usually written."""
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and text in (repr(number), f"{number:.0f}", f"{number:g}")


def are_truths(declared: Sequence[Label]) -> bool:
    """Whether all labels are true or false, in any letters."""
    return {str(value).lower() for value in declared} <= {"true", "false"}


def require_categories(categories: Any) -> None:
    """Refuse what is no mapping of columns to lists."""
    lists = categories.values() if isinstance(categories, Mapping) else [categories or ()]
    odd = any(isinstance(c, str) or not isinstance(c, Sequence | np.ndarray) for c in lists)
    if odd or not (categories is None or isinstance(categories, Mapping)):
        raise InvalidInput(
            "categories must map a column to its list of values, for example "
            'categories={"city": ["Rome", "Oslo"]}.'
        )
    if categories is not None and any(len(listed) == 0 for listed in categories.values()):
        raise InvalidInput("categories needs at least one value for every column that it names.")
