"""Files of privtail in JSON, read with one set of refusals."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput

_LEDGER = b'{"format": "privtail-ledger"'


def json_of(path: Path, needed: str) -> tuple[Any, bytes]:
    """What a file holds, and its bytes.

    Parameters
    ----------
    path : only a regular file is read: a pipe or a device may never end.
    needed : what the file should be, for the refusal.

    Raises
    ------
    InvalidInput
        If the file cannot be read, or is no JSON: NaN and infinities are none.
    """
    try:
        data = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}. Give a file that you may read."
        ) from None
    if data is None:
        raise InvalidInput(f"There is no file {path}. Check the path.")
    if data.startswith(_LEDGER):
        raise InvalidInput(
            f"{path} is a ledger, not {needed}. To see what was spent:",
            f"print(privtail.Ledger({str(path)!r})).",
            cli=f"privtail budget {shlex.quote(str(path))}",
        )
    try:
        return json.loads(data, parse_constant=_no_number), data
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON. It must be {needed}.") from None


def _no_number(name: str) -> float:
    raise ValueError(name)
