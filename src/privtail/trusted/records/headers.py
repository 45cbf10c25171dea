"""How a CSV is written, and its first line: both are public.

Formal guarantee
----------------
Nothing here sees a cell below the header. What `text_numbers` makes of a cell depends on that cell
and on the `Dialect`, which is declared.
"""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput

COMMENTS = ("#", "%")
"""How a first line usually begins that is a comment, and no names of columns."""

HEADER_BYTES = 1 << 20
_UNPACKED = {
    ".gz": "gunzip -c", ".bz2": "bunzip2 -c", ".xz": "unxz -c", ".zst": "zstd -dc",
    ".zip": "unzip -p",
}  # fmt: skip
"""Ending -> the command that writes what such a file holds."""
_SEPARATORS = ",;\t"
_RARER = "|\x1f\x1e\x01"
"""Separators that are named, not taken, where a first line has none of the others."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a CSV is written; ``decimal`` and ``thousands`` are those of any text read as numbers.

    Attributes
    ----------
    decimal : the mark before decimals. thousands : the mark between groups of digits, None if
        there is none. Digits before it are at most three, and three follow the last.
    separator : the character between cells; None for that of ``,``, ``;`` and tab which is the
        most frequent in the header.
    encoding : a name that Python knows, such as ``utf-16`` or ``latin-1``.
    comment : lines that begin with it are skipped above the header. Below it every line is a row,
        and such a line is a row without values.

    Raises
    ------
    InvalidInput
        If one of them cannot be used, or two are the same.
    """

    decimal: str = "."
    thousands: str | None = None
    separator: str | None = None
    encoding: str = "utf-8"
    comment: str | None = None

    def __post_init__(self) -> None:
        for name, value in (("decimal", self.decimal), ("thousands", self.thousands)):
            if value is not None and (not _single(value) or value.isalnum() or value in "+-\r\n"):
                raise InvalidInput(f"{name} must be one mark such as ',', got {value!r}.")
        if self.decimal == self.thousands:
            raise InvalidInput(f"decimal and thousands are both {self.decimal!r}.")
        value = self.separator
        if value is not None and (
            not _single(value) or not value.isascii() or value.isalnum() or value in '"\r\n\0'
        ):
            raise InvalidInput(f"separator must be one ASCII mark such as ';', got {value!r}.")
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError, ValueError):
            raise InvalidInput(
                f"encoding {self.encoding!r} is not known. Well-known ones: utf-8, utf-16, "
                "latin-1, cp1252."
            ) from None
        if self.comment is not None and not (_text(self.comment) and self.comment):
            raise InvalidInput(f"comment must be text such as '#', got {self.comment!r}.")

    @property
    def plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _single(value: Any) -> bool:
    return _text(value) and len(value) == 1


PLAIN = Dialect()


@dataclass(frozen=True)
class Header:
    """The names of a CSV, how many lines stand above them, and its dialect, separator included."""

    names: tuple[str, ...]
    above: int
    dialect: Dialect


def read_header(path: Path, start: bytes, dialect: Dialect) -> Header:
    """The header in the first `HEADER_BYTES` of a file.

    Raises
    ------
    InvalidInput
        If this is no CSV, or its names cannot be read: the error says what it is, and the mend.
    """
    _require_text(path, start, dialect)
    try:
        # The last character may be cut in two.
        whole = len(start) < HEADER_BYTES
        text = start.decode(dialect.encoding, "strict" if whole else "ignore").lstrip("\ufeff")
    except UnicodeError:
        raise undecoded(path, dialect) from None
    lines = list(io.StringIO(text))
    skipped = tuple(filter(None, ("\n", "\r", dialect.comment)))
    above = next((i for i, line in enumerate(lines) if not line.startswith(skipped)), len(lines))
    text = "".join(lines[above:])
    separator = dialect.separator or _separator(path, lines[above] if text else "")
    try:
        names = tuple(next(csv.reader(io.StringIO(text), delimiter=separator), ()))
    except csv.Error:
        raise InvalidInput(
            f"The first line of {path} cannot be read: a quote is not closed, or lines end as on "
            "an old Mac. Write the file again, with lines that end in \\n."
        ) from None
    if not names:
        raise InvalidInput(f"{path} is empty.")
    if "" in names:
        raise InvalidInput(
            f"Column {names.index('') + 1} of {path} has no name. Name it in the first line "
            "(pandas writes its index so: to_csv(..., index=False) leaves it out)."
        )
    return Header(names, above, replace(dialect, separator=separator))


def undecoded(path: Path, dialect: Dialect) -> InvalidInput:
    """The refusal of bytes that are not of the declared encoding."""
    what = f"{path} is not {dialect.encoding.upper()} text."
    return InvalidInput(
        f"{what} Name its encoding, for example",
        "encoding='latin-1' or encoding='cp1252'.",
        cli="--encoding latin-1 or --encoding cp1252.",
    )


def _require_text(path: Path, start: bytes, dialect: Dialect) -> None:
    """Refuse, by what it is, a file that is not one of text in the declared encoding."""
    unpack = _UNPACKED.get(path.suffix.lower())
    if unpack is not None:
        inner = path.with_suffix("")
        known = inner.suffix.lower() in (".csv", ".tsv", ".txt", ".parquet", ".arrow")
        plain = inner if known else path.with_suffix(".csv")
        raise InvalidInput(
            f"{path} is compressed. Decompress it first: {unpack} {shlex.quote(str(path))} > "
            f"{shlex.quote(str(plain))}"
        )
    named = path.suffix.lower() in (".csv", ".tsv", ".txt")
    wide = _wide(start)
    if named and wide and dialect.encoding == "utf-8":
        raise InvalidInput(
            f"{path} is {wide.upper()} text. Say so:",
            f"encoding={wide!r}.",
            cli=f"--encoding {wide}",
        )
    if not named or (b"\0" in start and dialect.encoding == "utf-8"):
        raise InvalidInput(
            f"{path} is not a table that privtail can read: it needs a Parquet or Arrow file, or "
            "CSV whose name ends in .csv, .tsv or .txt."
        )


def _wide(start: bytes) -> str | None:
    """The encoding of two bytes a character that a file begins in."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    pairs = min(len(start), 64) // 2
    for name, zeros in (
        ("utf-16-le", start[1 : 2 * pairs : 2]),
        ("utf-16-be", start[: 2 * pairs : 2]),
    ):
        if pairs > 1 and zeros.count(0) > 0.9 * pairs:
            return name
    return None


def _separator(path: Path, line: str) -> str:
    """The separator of a first line, by how often it occurs."""
    if line.lower().startswith("sep=") and len(line.rstrip("\r\n")) <= 5:
        raise InvalidInput(
            f"The first line of {path} is a word to Excel, {line.strip()!r}. Skip it:",
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
