"""Parquet and CSV files that fit in memory: names are public, cells go to the core.

Formal guarantee
----------------
A column becomes doubles or text by its declared role and the type of the file, never by its cells,
so a null or an odd cell changes no dtype: what is not a number becomes NaN, which drops its row;
bytes that are no UTF-8 become U+FFFD. A CSV has no types: its labels are text unless numbers are
declared (an empty cell is a missing label where none are), so that no cell decides how the others
are written; an undeclared column of features takes the type that PyArrow infers, and its refusal if
that is not numeric is, like every refusal of a malformed file, outside the promise. No error quotes
a cell.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, NotReleased
from privtail.trusted.records.arrow import arrow_doubles, decoded, is_number, is_text

Label = str | int | float | bool
Declared = Mapping[str, Sequence[Label] | None]

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_HEADER_BYTES = 1 << 20


class TableFile:
    """A Parquet or CSV file: its column names, and its columns for the core.

    Parameters
    ----------
    path : a Parquet file, or CSV with a header (``,``, ``;`` or tab, UTF-8).

    Attributes
    ----------
    names : the column names, in order.

    Raises
    ------
    InvalidInput
        If this is no table, or its names are missing or not distinct.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._delimiter = ""
        if self._start(4) == b"PAR1":
            self.names = tuple(_parquet(self.path).schema_arrow.names)
        else:
            self._delimiter, self.names = self._header()
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice and any(_is_numeral(name) for name in self.names):
            raise InvalidInput(
                f"Names in the first line of {self.path} repeat, and some are numbers. Is it a row "
                "of data? Add a first line with the names of the columns."
            )
        if twice:
            raise InvalidInput(
                f"{self.path} has more than one column {twice[0]!r}. Give every column its own "
                "name."
            )

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
        near = get_close_matches(missing[0].lower(), [name.lower() for name in self.names], 1, 0.6)
        meant = [name for name in self.names if name.lower() in near]
        if meant:
            hint = f"Is {meant[0]!r} meant?"
        elif any(_is_numeral(name) for name in self.names):
            hint = "Does its first line hold the names of the columns?"
        else:
            hint = f"Its columns: {', '.join(self.names)}."
        raise InvalidInput(
            f"{self.path} has no column {', '.join(map(repr, missing))} ({what}). {hint}"
        )

    def columns(
        self, numbers: Sequence[str], labels: Declared | None = None, parsed: Collection[str] = ()
    ) -> dict[str, NDArray[Any]]:
        """Read columns, in the order of the file.

        Parameters
        ----------
        numbers : columns to read as doubles; booleans become 0 and 1.
        labels : column -> declared labels, or None where they are not known. Text and booleans
            become str (or None), numbers doubles; undeclared labels of a CSV are always str.
        parsed : those of ``numbers`` that are declared numeric: text in them is read as numbers,
            and a cell that is none becomes NaN.

        Raises
        ------
        InvalidInput
            If a column has a type that its role cannot use.
        """
        import pyarrow as pa

        labels = labels or {}
        wanted = [name for name in self.names if name in labels or name in set(numbers)]
        try:
            if self._delimiter:
                table = self._read_csv(wanted, labels, parsed)
            else:
                table = _parquet(self.path).read(columns=wanted)
        except pa.ArrowInvalid as error:
            raise self._malformed(str(error)) from None
        except (pa.ArrowException, OSError):
            raise self._malformed("") from None
        if table.num_rows == 0:
            raise InvalidInput(f"{self.path} has no rows.")
        return {
            name: self._labels(name, table[name], labels[name])
            if name in labels
            else self._numbers(name, table[name], name in parsed)
            for name in wanted
        }

    # ---------------------------------------------------------------- columns

    def _numbers(self, name: str, column: Any, parsed: bool) -> NDArray[np.float64]:
        import pyarrow.types as kind

        column = decoded(column)
        if is_text(column.type):
            if not parsed:
                raise InvalidInput(
                    f"Column {name!r} of {self.path} holds text. Declare its categories "
                    f"(--categories {name}=a,b,c), or leave it out (--drop {name})."
                )
            return _parsed(column)
        if not (is_number(column.type) or kind.is_boolean(column.type)):
            raise self._unusable(name, column.type)
        return arrow_doubles(column)

    def _labels(
        self, name: str, column: Any, declared: Sequence[Label] | None
    ) -> NDArray[Any]:  # fmt: skip
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.types as kind

        column = decoded(column)
        if kind.is_boolean(column.type):
            column = column.cast(pa.string())
        if is_number(column.type):
            return self._numbers(name, column, parsed=True)
        if not is_text(column.type):
            raise self._unusable(name, column.type)
        if self._delimiter and declared is not None and _are_numbers(declared):
            return _parsed(column)
        if declared is not None and _are_truths(declared):
            column = pc.utf8_lower(column)
        if self._delimiter and declared is None:
            column = pc.if_else(pc.equal(column, ""), None, column)
        return np.asarray(column.to_numpy(), dtype=object)

    def _unusable(self, name: str, kind: Any) -> InvalidInput:
        what = "no values" if str(kind) == "null" else f"values of type {kind}"
        return InvalidInput(
            f"Column {name!r} of {self.path} holds {what}, not numbers or text. Turn it into one "
            f"of these, or leave it out (--drop {name})."
        )

    # ---------------------------------------------------------------- files

    def _start(self, size: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                return file.read(size)
        except FileNotFoundError:
            raise InvalidInput(f"There is no file {self.path}.") from None
        except IsADirectoryError:
            raise InvalidInput(f"{self.path} is a folder. Name a Parquet or CSV file.") from None
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be read: {error.strerror}.") from None

    def _header(self) -> tuple[str, tuple[str, ...]]:
        """Delimiter and names of a CSV, from its first line."""
        start = self._start(_HEADER_BYTES)
        if self.path.suffix.lower() not in (".csv", ".tsv", ".txt") or b"\0" in start:
            raise InvalidInput(
                f"{self.path} is not a table that privtail can read: it needs a Parquet file, or "
                "CSV whose name ends in .csv, .tsv or .txt."
            )
        try:
            # The last character may be cut in two.
            text = start.decode("utf-8-sig", "ignore" if len(start) == _HEADER_BYTES else "strict")
        except UnicodeDecodeError:
            raise self._malformed("UTF8") from None
        line = text.lstrip("\r\n").split("\n", 1)[0]
        delimiter = max(",;\t", key=line.count)
        names = tuple(next(csv.reader(io.StringIO(text.lstrip("\r\n")), delimiter=delimiter), ()))
        if not names:
            raise InvalidInput(f"{self.path} is empty.")
        if "" in names:
            raise InvalidInput(
                f"Column {names.index('') + 1} of {self.path} has no name. Name it in the first "
                "line (pandas writes its index so: to_csv(..., index=False) leaves it out)."
            )
        return delimiter, names

    def _read_csv(self, wanted: list[str], labels: Declared, parsed: Collection[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(
            self.path,
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys([*labels, *parsed], pa.string()),
            ),
        )

    def _malformed(self, reason: str) -> InvalidInput:
        if "UTF8" in reason:
            return InvalidInput(
                f"{self.path} is not UTF-8 text. Convert it, for example: iconv -f latin1 -t utf8 "
                f"'{self.path}' > utf8.csv"
            )
        if self._delimiter:
            return InvalidInput(
                f"{self.path} is not a regular CSV file: a row has more or fewer cells than the "
                "header, or a quote is not closed."
            )
        return InvalidInput(f"{self.path} is a damaged Parquet file.")

    def __repr__(self) -> str:
        return f"TableFile({str(self.path)!r}, columns={len(self.names)})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private records cannot be pickled.")


def typed_labels(
    name: str, declared: Sequence[Label], column: NDArray[Any]
) -> tuple[Label, ...]:  # fmt: skip
    """Declared labels as the type of their column writes them: numbers, or text.

    Raises
    ------
    InvalidInput
        If text is declared for a column of numbers, or two labels become the same.
    """
    if column.dtype.kind == "f":
        if not _are_numbers(declared):
            wrong = next(value for value in declared if not _is_numeral(str(value)))
            raise InvalidInput(
                f"Column {name!r} holds numbers, and {wrong!r} is declared for it, which is none."
            )
        labels: tuple[Label, ...] = tuple(whole(float(value)) for value in declared)
    elif _are_truths(declared):
        labels = tuple(str(value).lower() for value in declared)
    else:
        labels = tuple(str(value) for value in declared)
    if len(set(labels)) != len(labels):
        raise InvalidInput(f"A label of column {name!r} is declared twice.")
    return labels


def whole(label: Label) -> Label:
    """1 instead of 1.0."""
    return int(label) if isinstance(label, float) and label.is_integer() else label


def _parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError):
        raise InvalidInput(f"{path} is a damaged Parquet file.") from None


def _parsed(column: Any) -> NDArray[np.float64]:
    """Text as doubles; NaN for what is not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column)
    numeral = pc.match_substring_regex(trimmed, _NUMBER)
    return _doubles(pc.if_else(numeral, trimmed, None).cast(pa.float64()))


def _doubles(column: Any) -> NDArray[np.float64]:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _are_numbers(declared: Sequence[Label]) -> bool:
    """Whether all labels are numbers as they are usually written, so not '007'."""
    return all(not isinstance(value, bool) and _is_numeral(str(value)) for value in declared)


def _is_numeral(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and text in (repr(number), f"{number:.0f}", f"{number:g}")


def _are_truths(declared: Sequence[Label]) -> bool:
    return {str(value).lower() for value in declared} <= {"true", "false"}
