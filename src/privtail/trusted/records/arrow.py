"""Columns of Arrow, in memory or from a file, deciding by their type and never by a cell.

Formal guarantee
----------------
Bytes that are no UTF-8 become U+FFFD, record by record; nothing here raises because of a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.schema.containers import no_labels
from privtail.schema.dialect import PLAIN, Dialect
from privtail.schema.types import (
    in_unknown_zone,
    is_bytes,
    is_label,
    is_number,
    is_plain,
    is_text,
)
from privtail.trusted.private_rows import PrivateRows

_MISSING = (
    "", "-", "--", ".", "?", "#N/A", "#NA", "N/A", "NA", "NULL", "NaN", "None", "n/a", "na", "nan",
    "null",
)  # fmt: skip
"""Marks of a missing number: they say nothing about how the others are written."""


class Distinct(PrivateRows):
    """A column of labels as its distinct values and, for each row, the position of its value.

    Parameters
    ----------
    values : list of labels; None for a missing one. A value may stand there twice.
    positions : (n,) integers.
    """

    def __init__(self, values: Iterable[Any], positions: NDArray[np.integer[Any]]) -> None:
        self.values, self.positions = list(values), positions

    def __len__(self) -> int:
        return len(self.positions)


def decoded(column: Any) -> Any:
    """Chunked; text as valid UTF-8 in one of the two plain types; dictionaries as their values.

    But for dictionaries of what is no label, which Arrow cannot turn into these.
    """
    import pyarrow as pa
    import pyarrow.types as kind

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if kind.is_dictionary(column.type) and is_label(column.type):
        column = column.cast(column.type.value_type)
    if not is_text(column.type):
        return column
    if str(column.type) == "string_view":
        column = column.cast(pa.large_string())
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        cells = column.cast(pa.large_binary()).to_pylist()
        text = [None if cell is None else cell.decode(errors="replace") for cell in cells]
        return pa.chunked_array([pa.array(text, pa.large_string())])
    return column


def joined(pieces: Sequence[Any]) -> Any:
    """Pieces of one column as a chunked array, whichever type of text or dictionary each has."""
    import pyarrow as pa
    import pyarrow.types as kind

    if len({str(piece.type) for piece in pieces}) > 1:
        plain = (p.dictionary_decode() if kind.is_dictionary(p.type) else p for p in pieces)
        pieces = [p.cast(pa.large_string()) if is_text(p.type) else p for p in plain]
    return pa.chunked_array(pieces)


def arrow_doubles(column: Any) -> NDArray[Any]:
    """Numbers and booleans as doubles, NaN where null; anything else as it is, for a refusal."""
    import pyarrow as pa
    import pyarrow.types as kind

    column = decoded(column)
    if kind.is_boolean(column.type):
        column = column.cast(pa.int8())
    if not is_number(column.type):
        return np.empty(len(column), dtype=object)
    # int64 beyond 2^53 rounds; a safe cast would fail there, and so depend on the cells.
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def arrow_objects(column: Any) -> NDArray[Any]:
    """Text, numbers, bytes and booleans as Python objects, None where null; others as text."""
    import pyarrow as pa

    column = decoded(column)
    if not is_label(column.type):
        zone = ", a time zone that this machine does not know" * in_unknown_zone(column.type)
        raise no_labels(column.type, zone)
    if not (is_plain(column.type) or is_bytes(column.type)):
        column = column.cast(pa.string())
    return np.fromiter(column.to_pylist(), dtype=object, count=len(column))


def arrow_ids(column: Any) -> NDArray[Any]:
    """As `arrow_objects`, but text as its bytes and times as numbers: different cells stay so."""
    import pyarrow as pa
    import pyarrow.types as kind

    if kind.is_dictionary(column.type) and is_label(column.type):
        column = column.cast(column.type.value_type)
    if kind.is_temporal(column.type) and not kind.is_interval(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return arrow_objects(column.cast(pa.large_binary()) if is_text(column.type) else column)


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

    Of all cells: of those that are not missing, one record would decide in a column with few.
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
        column = column.dictionary_decode()
    if kind.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    if not kind.is_dictionary(column.type):
        view = str(column.type) == "string_view"
        column = (column.cast(pa.large_string()) if view else column).dictionary_encode()
    values = arrow_objects(column.dictionary)
    # The place of a missing cell may be beyond the type of a full dictionary's indices.
    positions = column.indices.cast(pa.int64()).fill_null(len(values))
    return Distinct([*values, None], positions.to_numpy())


def one_line_end(text: str) -> str:
    r"""Text whose lines end in ``\n``.

    PyArrow loses the ``\n`` of a ``\r\n`` in quotes where its blocks meet, which depends on how
    long other records are.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n")
