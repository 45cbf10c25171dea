"""How files are written: declared, and so public."""

from __future__ import annotations

import codecs
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from privtail.errors import InvalidInput, told
from privtail.schema.declared import plain

_ACROSS_LINES = (
    "hz", "idna", "iso2022", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7",
)  # fmt: skip
"""How the names of encodings begin in which a cell may end lines, or change how others are read."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How files are written; ``decimal`` and ``thousands`` are those of any text read as numbers.

    Attributes
    ----------
    decimal : the mark before decimals. thousands : the mark between groups of digits, None if
        there is none. Digits before it are at most three, and three follow the last.
    separator : the character between cells; None for that of ``,``, ``;`` and tab which is the
        most frequent in the header.
    encoding : a name that Python knows, such as ``utf-16`` or ``latin-1``, in which every line is
        read by itself.
    comment : lines that begin with it are skipped above the header. Below it every line is a row,
        and such a line is a row without values.
    partition_columns : columns that the names of folders hold, as in ``year=2024/``.

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
    partition_columns: Collection[str] = ()

    def __post_init__(self) -> None:
        for name in ("decimal", "thousands", "separator", "encoding", "comment"):
            value = getattr(self, name)  # plain text: every block of a file is read alike
            object.__setattr__(self, name, str.__str__(value) if _text(value) else value)
        for name, value in (("decimal", self.decimal), ("thousands", self.thousands)):
            if value is not None and (not _single(value) or value.isalnum() or value in "+-\r\n"):
                raise InvalidInput(f"{name} must be one mark such as ',', got {told(value)}.")
        if self.decimal == self.thousands:
            raise InvalidInput(f"decimal and thousands must differ, and both are {self.decimal!r}.")
        value = self.separator
        if value is not None and (
            not _single(value) or not value.isascii() or value.isalnum() or value in '"\r\n\0'
        ):
            raise InvalidInput(f"separator must be one ASCII mark such as ';', got {told(value)}.")
        try:
            "".encode(self.encoding)
        except (LookupError, TypeError, ValueError):
            raise InvalidInput(
                f"encoding {told(self.encoding)} is not known. Well-known ones: utf-8, utf-16, "
                "latin-1, cp1252."
            ) from None
        if codecs.lookup(self.encoding).name.startswith(_ACROSS_LINES):
            raise InvalidInput(
                f"In encoding {self.encoding!r} one cell could change how other rows are read. "
                "Write the file again in UTF-8."
            )
        if self.comment is not None and not (_text(self.comment) and self.comment):
            raise InvalidInput(f"comment must be text such as '#', got {told(self.comment)}.")
        if isinstance(self.partition_columns, str):
            raise InvalidInput(
                f"partition_columns must be a list: partition_columns=[{self.partition_columns!r}]."
            )
        names = dict.fromkeys(map(plain, self.partition_columns))
        object.__setattr__(self, "partition_columns", tuple(names))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a statement says of partition columns."""
        names = ", ".join(self.partition_columns)
        return (
            f"The names of folders are public. They are columns of the table: {names}.",
        ) * bool(names)

    @property
    def plain(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and self.thousands is None


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _single(value: Any) -> bool:
    return _text(value) and len(value) == 1


PLAIN = Dialect()


def refuse_dialect(path: object, dialect: Dialect) -> None:
    """Refuse what is declared of a CSV, of a file that is none."""
    for name in ("separator", "encoding", "comment"):
        if getattr(dialect, name) != getattr(PLAIN, name):
            raise InvalidInput(f"{path} is no CSV file, and {name} is for CSV alone. Leave it out.")
