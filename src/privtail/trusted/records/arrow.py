"""Columns of Arrow, in memory or from a file, deciding by their type and never by a cell.

Formal guarantee
----------------
Bytes that are no UTF-8 become U+FFFD, record by record; nothing here raises because of a cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.schema.containers import no_labels
from privtail.schema.types import (
    in_unknown_zone,
    is_bytes,
    is_label,
    is_number,
    is_plain,
    is_text,
)
from privtail.trusted.private_rows import PrivateRows


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


def undictionaried(cells: Any) -> Any:
    """An array of a dictionary as its values, in a type with room for all of their text.

    An index that points to no value is a missing cell: Arrow would name it in an error.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places, values = cells.indices.cast(pa.int64(), safe=False), cells.dictionary
    held = pc.and_(pc.greater_equal(places, 0), pc.less(places, len(values)))
    return values.cast(_wide(values.type)).take(pc.if_else(held, places, None))


def _wide(arrow: Any) -> Any:
    import pyarrow as pa

    wide = {"string": pa.large_string(), "binary": pa.large_binary()}
    return wide.get(str(arrow).removesuffix("_view"), arrow)


def _undictionaried(column: Any) -> Any:
    import pyarrow as pa

    if not (pa.types.is_dictionary(column.type) and is_label(column.type)):
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.chunked_array(map(undictionaried, chunks), _wide(column.type.value_type))


def decoded(column: Any) -> Any:
    """Chunked; text as valid UTF-8 in one of the two plain types; dictionaries as their values.

    But for dictionaries of what is no label, which Arrow cannot turn into these.
    """
    import pyarrow as pa

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    column = _undictionaried(column)
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
        plain = (undictionaried(p) if kind.is_dictionary(p.type) else p for p in pieces)
        pieces = [p.cast(_wide(p.type)) for p in plain]
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

    column = _undictionaried(column)
    if kind.is_temporal(column.type) and not kind.is_interval(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return arrow_objects(column.cast(pa.large_binary()) if is_text(column.type) else column)
