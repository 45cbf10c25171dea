"""The first line of a CSV: what is between its names, and what is wrong with them.

Nothing here is given more of a file than that line, its name, and what kind of file it is.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from pathlib import PurePath

from privtail.errors import InvalidInput
from privtail.schema.dialect import Dialect

COMMENTS = ("#", "%")
"""How a first line usually begins that is a comment, and no names of columns."""

_UNPACKED = {".xz": "unxz -c", ".zip": "unzip -p"}
"""Ending -> the command that writes what such a file holds."""
_TEXT = re.compile(r".*\.(csv|tsv|txt)(\.gz|\.bz2|\.zst)?", re.IGNORECASE)
"""Names of CSV files, compressed ones too."""
_SEPARATORS = ",;\t"
_RARER = "|\x1f\x1e\x01"
"""Separators that are named, not taken, where a first line has none of the others."""


@dataclass(frozen=True)
class Header:
    """The names of a CSV, how many lines stand above them, and its dialect, separator included."""

    names: tuple[str, ...]
    above: int
    dialect: Dialect


def named(
    path: object, names: tuple[str, ...], above: int, dialect: Dialect, separator: str
) -> Header:
    """The header of these names.

    Raises
    ------
    InvalidInput
        If there are none, or one is empty.
    """
    if not names:
        raise InvalidInput(f"{path} is empty. Write the names of the columns in the first line.")
    if "" in names:
        raise InvalidInput(
            f"Column {names.index('') + 1} of {path} has no name. Name it in the first line "
            "(pandas writes its index so: to_csv(..., index=False) leaves it out)."
        )
    return Header(names, above, replace(dialect, separator=separator))


def unread(path: object) -> InvalidInput:
    """The refusal of a first line that is none of a CSV."""
    return InvalidInput(
        f"The first line of {path} cannot be read: a quote is not closed, or lines end as on "
        "an old Mac. Write the file again, with lines that end in \\n."
    )


def undecoded(path: object, dialect: Dialect) -> InvalidInput:
    """The refusal of bytes that are not of the declared encoding."""
    what = f"{path} is not {dialect.encoding.upper()} text."
    return InvalidInput(
        f"{what} Name its encoding, for example",
        "encoding='latin-1' or encoding='cp1252'.",
        cli="--encoding latin-1 or --encoding cp1252.",
    )


def irregular(path: object) -> InvalidInput:
    """The refusal of a CSV with rows of different lengths."""
    return InvalidInput(
        f"{path} is not a regular CSV file: a row has more or fewer cells than the header, or more "
        "than 64 MB, or a quote is not closed. If some lines are comments, say how they begin:",
        "comment='#'.",
        cli="--comment '#'",
    )


def _wide(first: bytes) -> str | None:
    """The encoding of two bytes a character, by the bytes of the first one."""
    if first in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return {1: "utf-16-le", 0: "utf-16-be"}.get(first.find(0)) if first.count(0) == 1 else None


def require_text(path: object, first: bytes, binary: bool, dialect: Dialect) -> None:
    """Refuse, by what it is, a file that is not one of text in the declared encoding.

    ``first`` are its first two bytes; ``binary`` says whether it holds zeros.
    """
    file = PurePath(str(path))
    unpack = _UNPACKED.get(file.suffix.lower())
    if unpack is not None:
        inner = file.with_suffix("")
        known = inner.suffix.lower() in (".csv", ".tsv", ".txt", ".parquet", ".arrow")
        plain = inner if known else file.with_suffix(".csv")
        raise InvalidInput(
            f"{path} is compressed. Decompress it first: {unpack} {shlex.quote(str(path))} > "
            f"{shlex.quote(str(plain))}"
        )
    wide = _wide(first)
    named = _TEXT.fullmatch(file.name) is not None
    if named and wide and dialect.encoding == "utf-8":
        raise InvalidInput(
            f"{path} is {wide.upper()} text. Say so:",
            f"encoding={wide!r}.",
            cli=f"--encoding {wide}",
        )
    if not named or (binary and dialect.encoding == "utf-8"):
        raise InvalidInput(
            f"{path} is not a table that privtail can read: it needs a Parquet or Arrow file, or "
            "CSV whose name ends in .csv, .tsv or .txt, or in one of these and .gz, .bz2 or .zst."
        )


def separator_of(path: object, line: str) -> str:
    """The separator of a first line, by how often it occurs."""
    if line.lower().startswith("sep=") and len(line.rstrip("\r\n")) <= 5:
        raise InvalidInput(
            f"The first line of {path} is meant for Excel, {line.strip()!r}. Skip it:",
            "comment='sep='.",
            cli="--comment sep=",
        )
    found = max(_SEPARATORS, key=line.count)
    rarer = max(_RARER, key=line.count)
    if found not in line and rarer in line:
        typed = repr(rarer) if rarer.isprintable() else f"$'\\x{ord(rarer):02x}'"
        mark = repr(line[0])
        remark = f" Or if it is a comment: {{}}{mark}" if line.startswith(COMMENTS) else ""
        raise InvalidInput(
            f"The first line of {path} has {rarer!r} between its names, it seems. Say so:",
            f"separator={rarer!r}.{remark.format('comment=')}",
            cli=f"--separator {typed}{remark.format('--comment ')}",
        )
    return found
