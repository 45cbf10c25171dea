"""The columns of a table file: their names and types, and the refusals that follow from these."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from privtail.errors import InvalidInput
from privtail.schema.declared import (
    Label,
    are_numbers,
    given_as_numbers,
    is_numeral,
    typed_labels,
    typed_times,
)
from privtail.schema.headers import COMMENTS
from privtail.schema.types import in_unknown_zone, is_day_or_time, is_label, is_number, is_text
from privtail.spelling import meant

MARKS = 'For numbers like 1.234,5: decimal=",", thousands="."; like 1,234.5: thousands=",".'
MARKS_CLI = "For numbers like 1.234,5: --decimal , --thousands . ; like 1,234.5: --thousands ,"
SIGNS = "Take signs such as % and $ out of the file."


def refuse_repeated(path: object, names: Sequence[str]) -> None:
    """Refuse two columns of one name in one file."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and any(is_numeral(name) for name in names):
        raise InvalidInput(
            f"Names in the first line of {path} repeat, and some are numbers. Is it a row of data? "
            "Add a first line with the names of the columns."
        )
    if twice:
        raise InvalidInput(
            f"{path} has more than one column {twice[0]!r}. Give every column its own name."
        )


def index_of(schema: Any) -> tuple[str, ...]:
    """The columns that were an index of pandas, which says so in the schema."""
    try:
        named = schema.pandas_metadata["index_columns"]
        return tuple(name for name in named if name in schema.names)
    except (KeyError, TypeError, ValueError):
        return ()


@dataclass(frozen=True)
class Columns:
    """What is public of the columns of a file.

    Attributes
    ----------
    names, types : in order; the types as Arrow has them.
    untyped : whether all is text because the file is a CSV.
    numeric : the columns that hold numbers by declaration.
    """

    path: object
    names: tuple[str, ...]
    types: Mapping[str, Any]
    untyped: bool
    numeric: Collection[str]

    def require(self, names: Iterable[str], what: str) -> None:
        """Refuse, by name, what the file has no column for.

        Raises
        ------
        InvalidInput
            ``what`` says what the names were wanted for.
        """
        missing = [name for name in names if name not in self.names]
        if not missing:
            return
        near, cli = meant(missing[0], self.names), ""
        several = missing[0].split(",")
        if len(several) > 1 and set(several) <= set(self.names):
            hint, cli = "Name each column by itself.", "Repeat the option for each of the columns."
        elif near is not None:
            hint = f"Is {near!r} meant?"
        elif self.untyped and self.names[0].startswith(COMMENTS):
            mark = self.names[0][0]
            hint = "Is its first line a comment? Say how such lines begin:"
            hint, cli = f"{hint} comment={mark!r}.", f"{hint} --comment {shlex.quote(mark)}"
        elif any(is_numeral(name) for name in self.names):
            hint = "Does its first line hold the names of the columns?"
        else:
            hint = f"Its columns: {', '.join(self.names)}."
        columns = "columns" if len(missing) > 1 else "column"
        raise InvalidInput(
            f"{self.path} has no {columns} {', '.join(map(repr, missing))} ({what}).",
            hint,
            cli=cli,
        )

    def type(self, name: str) -> Any:
        """The type of its values, as Arrow has it."""
        one = self.types[name]
        return getattr(one, "value_type", one) if str(one).startswith("dictionary") else one

    def is_text(self, name: str) -> bool:
        """Whether a column holds text."""
        return is_text(self.type(name))

    def is_number(self, name: str) -> bool:
        """Whether a column holds numbers."""
        return is_number(self.type(name))

    def is_truth(self, name: str) -> bool:
        """Whether a column holds Booleans."""
        return str(self.type(name)) == "bool"

    def is_usable(self, name: str) -> bool:
        """Whether a column holds text, numbers or Booleans."""
        return self.is_text(name) or self.is_number(name) or self.is_truth(name)

    def kind(self, name: str) -> Literal["number", "label"] | None:
        """What the type of a column says that it holds; None for whole numbers and for a CSV."""
        if self.untyped:
            return "number" if name in self.numeric else None
        if self.is_text(name) or self.is_truth(name):
            return "label"
        return "number" if str(self.type(name)) in ("float", "double", "halffloat") else None

    def typed(self, name: str, declared: Sequence[Label]) -> tuple[Label, ...]:
        """Declared labels as the column holds them: numbers, text or Booleans.

        Raises
        ------
        InvalidInput
            If its cells are no labels, such as lists; no row could match them, for the column is of
            another type; or two labels become the same. Later a fit would fail after the charge.
        """
        if not is_label(self.types[name]):
            raise self.unusable(name, self.type(name))
        if self.is_truth(name):
            truths = {"true": True, "false": False}
            found = tuple(truths.get(str(value).lower(), value) for value in declared)
            odd = [value for value in found if value not in (True, False)]
            if odd:
                raise InvalidInput(
                    f"Column {name!r} holds true and false, and {odd[0]!r} is declared for it. "
                    "Declare true and false."
                )
            return tuple(map(bool, found))
        if self.is_text(name) and not self.untyped and given_as_numbers(declared):
            text = [str(value) for value in declared]
            raise InvalidInput(
                f"Column {name!r} holds text, and numbers are declared for it: no row would match. "
                "Turn it into numbers, or declare its text:",
                f"{text}.",
                cli=f"{json.dumps(text)} in a file of --schema.",
            )
        if is_day_or_time(self.type(name)):
            return typed_times(f"column {name!r}", declared, self.type(name))
        numeric = are_numbers(declared) if self.untyped else self.is_number(name)
        return typed_labels(name, declared, numeric)

    def element(self, name: str) -> np.dtype[Any]:
        """The public type of a column of labels, as NumPy would hold it."""
        if not (self.is_truth(name) or self.is_number(name)):
            return np.dtype(object)
        if "decimal" in str(self.type(name)):
            return np.dtype(object)
        element: np.dtype[Any] = np.dtype(self.type(name).to_pandas_dtype())
        return element

    def width(self, name: str) -> np.dtype[Any]:
        """The narrower of float32 and float64 that holds every number of the column's type."""
        exact = {"halffloat", "float", "int8", "int16", "uint8", "uint16", "bool"}
        return np.dtype(np.float32 if str(self.type(name)) in exact else np.float64)

    def declared_target(self, name: str) -> InvalidInput:
        """The refusal of categories for the target."""
        return InvalidInput(
            f"Column {name!r} is the target: declare its labels as classes, not categories.",
            cli=f"Type --classes a,b instead of --categories {shlex.quote(name)}=a,b",
        )

    def rounded_ids(self, name: str) -> InvalidInput:
        """The refusal of ids of persons whose types differ by file."""
        return InvalidInput(
            f"Files of {self.path} hold column {name!r} in several types of numbers. As doubles, "
            "two ids could become one, and two persons one person. Write the column in one type "
            "for all files, such as Int64 of pandas, which can miss cells, or as text."
        )

    def text_for_numbers(self, name: str, mend: str, cli: str) -> InvalidInput:
        """The refusal of a column of text that is to be one of numbers."""
        marks = "If marks stand for missing numbers:"
        return InvalidInput(
            f"Column {name!r} of {self.path} holds text, and numbers are needed. {SIGNS}",
            f'{mend} {marks} numeric=["{name}"]. {MARKS}'.strip(),
            cli=f"{cli} {marks} --numeric {shlex.quote(name)}. {MARKS_CLI}".strip(),
        )

    def odd_text(self, name: str) -> InvalidInput:
        """The refusal of a declared column of numbers that seems to hold none."""
        return InvalidInput(
            f"Column {name!r} of {self.path} is declared as numbers, but most of its first cells "
            f"are not numbers. {SIGNS}",
            MARKS,
            cli=MARKS_CLI,
        )

    def text_refusal(self, names: Sequence[str]) -> InvalidInput:
        """The refusal of text where numbers are needed."""
        one, several = names[0], len(names) > 1
        start = f"Columns {', '.join(map(repr, names))}" if several else f"Column {one!r}"
        drops = "a row with a cell that is no number does not count"
        typed = shlex.quote(one)
        return InvalidInput(
            f"{start} of {self.path} {'hold' if several else 'holds'} text.",
            f'Open it by open_table with categories={{"{one}": ["a", "b"]}}, or numeric=["{one}"] '
            f'({drops}), or drop=["{one}"]. {MARKS}',
            cli=f"{'Of each, declare the' if several else 'Declare its'} categories (--categories "
            f"{typed}=a,b,c), or that it is numeric (--numeric {typed}: {drops}), or leave it out "
            f"(--drop {typed}). {MARKS_CLI}",
        )

    def unusable(self, name: str, kind: Any, *, needed: bool = False) -> InvalidInput:
        """The refusal of a column of a type that cannot be used."""
        what = "no values" if str(kind) == "null" else f"values of type {kind}"
        if in_unknown_zone(kind):
            what += ", a time zone that this machine does not know"
        mend = "Turn it into numbers"
        if str(kind).startswith(("date", "timestamp")):
            mend += ", for example the days since a date that you choose"
        elif str(kind).startswith(("time", "duration")):
            mend += ", for example of seconds"
        if needed:
            return InvalidInput(f"Column {name!r} of {self.path} holds {what}. {mend}.")
        if mend == "Turn it into numbers":
            mend = "Turn it into one of these"
        return InvalidInput(
            f"Column {name!r} of {self.path} holds {what}, not numbers or text. {mend}, or leave "
            "it out:",
            f'drop=["{name}"].',
            cli=f"--drop {shlex.quote(name)}",
        )
