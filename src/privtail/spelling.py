"""Names that were misspelt, one and many, numbers not known, and letters that cannot be shown."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

_NAMES = str.maketrans(
    {
        "ε": "eps", "δ": "delta", "μ": "mu", "ρ": "rho", "σ": "sigma", "±": "+-", "×": "x",
        "−": "-", "²": "^2", "½": "1/2", "≤": "<=", "≥": ">=", "…": "...", "→": "->", "∞": "inf",
        "─": "-",
    }
)  # fmt: skip


def meant(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like a misspelt one, in letters of any case; None if none is."""
    names = list(known)
    near = get_close_matches(name.lower(), [one.lower() for one in names], 1, 0.6)
    return next((one for one in names if one.lower() in near), None)


def guess(name: str, known: Iterable[str]) -> str:
    """`` Is 'x' meant?`` with the known name that is most like a misspelt one; or nothing."""
    near = meant(name, known)
    return "" if near is None else f" Is {near!r} meant?"


def counted(count: int, one: str, many: str = "") -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def some_of(text: str, count: int, total: int, one: str, many: str = "") -> str:
    """``text`` of so many of all: ``{some}`` becomes ``1 of 3 means``, and ``{are}`` its verb.

    Where there is one in all, ``{some}`` becomes ``the mean``.
    """
    some = f"the {one}" if total == 1 else f"{count:,} of {counted(total, one, many)}"
    said = text.format(some=some, are="is" if count == 1 else "are")
    return said[0].upper() + said[1:]


def digits(least: int, *numbers: float | None) -> int:
    """Significant digits, ``least`` or more, that show numbers to a hundredth of their distance."""
    known = [x for x in numbers if x is not None and math.isfinite(x)]
    wide = max(known, default=0.0) - min(known, default=0.0)
    if not 0 < wide < math.inf:
        return least
    return min(max(least, 3 + math.ceil(math.log10(max(map(abs, known)) / wide))), 17)


def with_interval(value: float, low: float, high: float, least: int, link: str = "") -> str:
    """``value [low, high]``, with ``digits``; ``link`` stands before the interval."""
    many = digits(least, low, high)
    return f"{value:.{many}g}{link} [{low:.{many}g}, {high:.{many}g}]"


def finite_or_none(x: float) -> float | None:
    """A number for JSON, which has no NaN and no infinity: None where it is not known."""
    return float(x) if math.isfinite(x) else None


def printable(text: str, stream: Any = None) -> str:
    """``text`` as ``stream`` (standard output) can write it: ``eps`` in Latin-1, and so on."""
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_NAMES).encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.translate(_NAMES)
    return text


def first_of(names: Sequence[str], most: int = 10) -> str:
    """The first of many names, and how many more there are."""
    more = len(names) - most
    return ", ".join([*names[:most], *([f"{more} more"] if more > 0 else [])])


def said_of_left_out(left_out: Sequence[str]) -> tuple[str, ...]:
    """The sentence about columns that an answer leaves out; nothing where there are none."""
    if not left_out:
        return ()
    names = ", ".join(map(str, left_out))
    return (f"These columns are left out because they hold no numbers: {names}.",)
