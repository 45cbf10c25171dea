"""Columns that the names of folders hold, as Hive writes them: ``year=2024/part-0.parquet``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from privtail.errors import InvalidInput

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_values(paths: Sequence[object], name: str) -> list[Any]:
    """The value of a column for each file: whole numbers or numbers if all are, else text.

    Raises
    ------
    InvalidInput
        If a file is in no folder that names the column.
    """
    found: list[str | None] = []
    for path in paths:
        pairs = [part.partition("=") for part in PurePath(str(path)).parts[:-1]]
        named = [unquote(value) for key, mark, value in pairs if mark and unquote(key) == name]
        if not named:
            raise InvalidInput(
                f"{path} is in no folder '{name}=...', but {name!r} is declared as a partition "
                "column. Names of such folders are its values. Leave it out of partition_columns."
            )
        found.append(None if named[-1] == _NULL else named[-1])
    for kind in (_whole, float):
        try:
            return [None if text is None else kind(text) for text in found]
        except ValueError:
            continue
    return found


def _whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return number
