"""Cells of files: text as numbers in the marks of a dialect, and labels by their distinct values.

Formal guarantee
----------------
What a cell becomes is a function of that cell and of the public dialect: nothing here raises
because of a cell, and none decides how another one is read. `odd_share` alone looks at many cells
together; what it finds can only refuse a file, which is outside the promise.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.schema.dialect import PLAIN, Dialect
from privtail.schema.types import is_text
from privtail.trusted.records.arrow import (
    Distinct,
    arrow_doubles,
    arrow_objects,
    decoded,
    undictionaried,
)

_MISSING = (
    "", "-", "--", ".", "?", "#N/A", "#NA", "N/A", "NA", "NULL", "NaN", "None", "n/a", "na", "nan",
    "null",
)  # fmt: skip
"""Marks of a missing number: they say nothing about how the others are written."""


def numbers(column: Any, dialect: Dialect = PLAIN) -> NDArray[np.float64]:
    """A plain array of numbers, booleans or text as doubles; NaN for what is not a number."""
    import pyarrow as pa

    if column.type == pa.float64():
        return np.asarray(column.to_numpy(zero_copy_only=False))
    column = decoded(column)
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return text_numbers(column, dialect) if is_text(column.type) else arrow_doubles(column)


def text_numbers(column: Any, dialect: Dialect = PLAIN) -> NDArray[np.float64]:
    """Text as doubles, each cell by itself; NaN for what is no finite number.

    A number is written in digits, with a sign, decimals and an exponent if it has them, in the
    marks of the dialect: ``-12.5e3``. Spaces around it do not count. ``true`` is 1 and ``false``
    is 0, in any letters.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = _cast(column) if dialect.plain else None
    if found is None:
        column = column.cast(pa.large_string())  # a shorter type has no room for one very long cell
        cells = pc.utf8_trim_whitespace(column)
        numeral = _mask(pc.match_substring_regex(cells, _numeral(dialect)))
        numerals = cells.filter(pa.array(numeral))
        if dialect.thousands is not None:
            numerals = pc.replace_substring(numerals, dialect.thousands, "")
        numerals = pc.replace_substring(numerals, dialect.decimal, ".")
        truths = pc.index_in(pc.utf8_lower(cells), pa.array(["false", "true"])).cast(pa.float64())
        found = np.array(truths.to_numpy(zero_copy_only=False), dtype=np.float64)
        found[numeral] = numerals.cast(pa.float64()).to_numpy(zero_copy_only=False)
    finite = np.isfinite(found)
    return found if finite.all() else np.where(finite, found, np.nan)


def _numeral(dialect: Dialect) -> str:
    """The pattern of a number, as RE2 reads it."""
    whole, point = r"\d+", re.escape(dialect.decimal)
    if dialect.thousands is not None:
        mark = re.escape(dialect.thousands)
        whole = rf"(\d+|\d{{1,3}}({mark}\d{{2,3}})*{mark}\d{{3}})"
    return rf"^[+-]?({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?$"


def odd_share(column: Any, dialect: Dialect) -> float:
    """The share of all cells of text that are neither missing nor numbers.

    Missing cells count, too: without them, one record would decide in a column with few others.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.fill_null(decoded(column), "")
    marks = pc.is_in(pc.utf8_trim_whitespace(cells), pa.array(_MISSING))
    given = ~np.asarray(marks.to_numpy(zero_copy_only=False), dtype=np.bool_)
    odd = given & np.isnan(text_numbers(cells, dialect))
    return float(np.mean(odd)) if len(odd) else 0.0


def _cast(column: Any) -> NDArray[np.float64] | None:
    """Text as Arrow takes it for doubles; None if a cell is neither empty nor such a number.

    Arrow takes the numerals of the plain dialect, and words for NaN and infinity.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    with suppress(pa.ArrowInvalid):
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    given = _mask(pc.not_equal(column, ""))
    with suppress(pa.ArrowInvalid):
        cells = column.filter(pa.array(given)).cast(pa.float64())
        found = np.full(len(column), np.nan)
        found[given] = cells.to_numpy(zero_copy_only=False)
        return found
    return None


def _mask(truths: Any) -> NDArray[np.bool_]:
    """Truths of Arrow; false where null."""
    return np.asarray(truths.fill_null(False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def distinct(column: Any) -> Distinct:
    """A plain array of labels by its distinct values, each as `arrow_objects` has it."""
    import pyarrow as pa
    import pyarrow.types as kind

    if kind.is_dictionary(column.type) and (
        len(column.dictionary) > len(column) or kind.is_decimal(column.type.value_type)
    ):
        column = undictionaried(column)
    if kind.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    if not kind.is_dictionary(column.type):
        view = str(column.type) == "string_view"
        column = (column.cast(pa.large_string()) if view else column).dictionary_encode()
    values = arrow_objects(column.dictionary)
    # The place of a missing cell may be beyond the type of a full dictionary's indices.
    positions = column.indices.cast(pa.int64(), safe=False).fill_null(len(values)).to_numpy()
    held = (positions >= 0) & (positions < len(values))  # in a damaged file some are not
    return Distinct([*values, None], np.where(held, positions, len(values)))


def one_line_end(text: str) -> str:
    r"""Text whose lines end in ``\n``.

    PyArrow loses the ``\n`` of a ``\r\n`` in quotes where its blocks meet, which depends on how
    long other records are.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n")
