"""How a CSV is written: declared, and so public."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privtail.errors import InvalidInput


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
