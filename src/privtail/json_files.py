"""Files of privtail in JSON, read with one set of refusals."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput

_LEDGER = b'{"format": "privtail-ledger"'


class Repeated(ValueError):
    """A name that an object of JSON gives twice: readers may take either value."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        shown = name if len(name) <= 40 else f"{name[:40]}..."
        self.sentence = f"One object in it gives {shown!r} twice."


def strictly(data: bytes | str) -> Any:
    """What JSON says, if it says one thing to every reader.

    Raises
    ------
    Repeated
        If a name is given twice.
    ValueError
        If it is no JSON, or holds NaN, an infinity, or a number beyond all doubles such as 1e400.
    RecursionError
        If it is nested too deeply.
    """
    return json.loads(
        data, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_object
    )


def json_of(path: Path, needed: str) -> tuple[Any, bytes]:
    """What a file holds, and its bytes.

    Parameters
    ----------
    path : only a regular file is read: a pipe or a device may never end.
    needed : what the file should be, for the refusal.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or is refused by `strictly`.
    """
    try:
        data = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}. Give a file that you may read."
        ) from None
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Give the name of a file.")
    if data is None:
        raise InvalidInput(f"There is no file {path}. Check the path.")
    if data.startswith(_LEDGER):
        raise InvalidInput(
            f"{path} is a ledger, not {needed}. To see what was spent:",
            f"print(privtail.Ledger({str(path)!r})).",
            cli=f"privtail budget {shlex.quote(str(path))}",
        )
    try:
        return strictly(data), data
    except Repeated as error:
        raise InvalidInput(
            f"{path} was edited or damaged. {error.sentence} Take the file as privtail wrote it."
        ) from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON. It must be {needed}.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Repeated(name)
        found[name] = value
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def _no_number(name: str) -> float:
    raise ValueError(name)
