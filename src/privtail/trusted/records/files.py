"""Parquet, CSV and Arrow files: names and types are public, cells go to the core.

Formal guarantee
----------------
A column becomes doubles or text by its declared role and the type of the file, never by its cells,
so a null or an odd cell changes no dtype: what is not a number becomes NaN, which drops its row;
bytes that are no UTF-8 become U+FFFD. A CSV has no types: all of it is read as text. Its labels are
text unless numbers are declared (an empty cell is a missing label where none are), and all other
columns are numbers, which `text_numbers` reads cell by cell. So no cell decides what another one is
worth. The first rows of the file decide one thing, whether a column is refused because too many
of its cells are no numbers; like every refusal of a malformed file, that is outside the promise. No
error quotes a cell.
"""

from __future__ import annotations

import json
import math
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput, NotReleased
from privtail.spelling import meant
from privtail.trusted.events import Event, Plan
from privtail.trusted.records.arrow import (
    Distinct,
    arrow_doubles,
    arrow_ids,
    decoded,
    distinct,
    is_label,
    is_number,
    is_plain,
    is_text,
    numbers,
    odd_share,
    text_numbers,
)
from privtail.trusted.records.formats import Arrow, Csv, Format, Parquet, sweeps
from privtail.trusted.records.headers import (
    COMMENTS,
    HEADER_BYTES,
    PLAIN,
    Dialect,
    read_header,
    undecoded,
)
from privtail.trusted.records.tables import require_categories

Label = str | int | float | bool
Declared = Mapping[str, Sequence[Label] | None]
Declarations = Mapping[str, Sequence[Label]]

_ODD, _ODD_IF_NUMERIC = 0.1, 0.5
"""Text is refused as numbers if more of its cells in the first rows are none."""


class TableFile:
    """A Parquet, CSV or Arrow file, read in blocks and never whole.

    A curator, an estimator or `private_mean` takes it in place of a data frame, with the name of
    the target column as ``y``. Every question about the records is one pass over the file.

    Parameters
    ----------
    path : a Parquet or Arrow file, or CSV with a header (``,``, ``;`` or tab, UTF-8).
    categories : column -> its declared categories; one-hot encoded. Those of a CSV, which has no
        types, are compared as numbers if all are, else as text; those of other files are of the
        type of their column, or are refused.
    numeric : columns that hold numbers by declaration: what is none in them drops its row. In a
        CSV, a column without categories is read so too, but refused if more than a tenth of its
        cells in the first rows (at most a megabyte of them) are no numbers; a declared one if more
        than half are.
    drop : columns to leave out.
    scratch : a folder for a private copy, decoded once, for many passes over a file that is slow
        to decode. The copy has no name in the folder, and ends with this object.
    dialect : how a CSV, and text that is read as numbers, is written.

    Attributes
    ----------
    names : the column names, in order.
    index : the columns that were an index of pandas, as the file says. They are no features unless
        they are declared numeric, or their categories are.
    categories : column -> its declared categories, as the type of the column writes them.

    Raises
    ------
    InvalidInput
        If this is no table, its names are missing or not distinct, or a declared one is missing.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        categories: Declarations | None = None,
        numeric: Collection[str] = (),
        drop: Collection[str] = (),
        scratch: str | Path | None = None,
        dialect: Dialect = PLAIN,
    ) -> None:
        self.path = Path(path)
        self.dialect, self._untyped = dialect, False
        start = self._start(8)
        self._written = self._stat()
        require_categories(categories)
        for option, given in (("numeric", numeric), ("drop", drop)):
            if isinstance(given, str):
                raise InvalidInput(f"{option} must be a list of columns: {option}=[{given!r}].")
        declared = dict(categories or {})
        self._numeric, self._drop = frozenset(numeric), frozenset(drop)
        self._format = self._opened(start)
        self.names, self.index = self._format.names, self._format.index
        self._refuse_repeated(self.names)
        self.require(declared, "declared as categories")
        self.require(numeric, "declared as numeric")
        self.require(drop, "to be dropped")
        self.categories = {name: self.typed(name, listed) for name, listed in declared.items()}
        self.scratch = None if scratch is None else Path(scratch)
        self._copies: dict[Any, Any] = {}
        self._shares: dict[str, float] = {}
        self._part: NDArray[np.bool_] | None = None

    def declaring(self, categories: Declarations) -> TableFile:
        """The same file with more categories."""
        if all(self.categories.get(name) is listed for name, listed in categories.items()):
            return self
        return self._with({**self.categories, **categories}, self._drop)

    def without(self, name: str) -> TableFile:
        """The same file without the column that says whose a row is."""
        self.require([name], "of persons")
        return self._with(self.categories, self._drop | {name})

    def part(self, ids: NDArray[np.int64]) -> TableFile:
        """The rows of these (distinct) positions, in their order, as a file of their own."""
        some = self._with(self.categories, self._drop)
        some._format, some._written = self._format, self._written
        some._part = np.zeros(self.n, np.bool_)
        some._part[ids] = True
        return some

    def _with(self, categories: Declarations, drop: Collection[str]) -> TableFile:
        other = TableFile(
            self.path,
            categories=categories,
            numeric=self._numeric,
            drop=drop,
            scratch=self.scratch,
            dialect=self.dialect,
        )
        other._part = self._part
        return other

    def copy(self, key: Any, make: Callable[[Path], Any]) -> Any:
        """The scratch copy of this use of the file, made once."""
        self._refuse_changed(self._stat() != self._written)
        if key not in self._copies and self.scratch is not None:
            self._copies[key] = make(self.scratch)
        return self._copies[key]

    def _opened(self, start: bytes) -> Format:
        import pyarrow as pa

        try:
            if start[:4] == b"PAR1":
                self._refuse_dialect()
                return Parquet(self.path)
            if start[:6] == b"ARROW1" or start[:4] == b"\xff\xff\xff\xff":
                self._refuse_dialect()
                return Arrow(self.path)
        except (pa.ArrowException, OSError):
            raise self._malformed("") from None
        header = read_header(self.path, self._start(HEADER_BYTES), self.dialect)
        self._untyped = True
        return Csv(self.path, header, self._drop)

    def _refuse_dialect(self) -> None:
        """Refuse what is declared of a CSV, and is not of this file."""
        for name in ("separator", "encoding", "comment"):
            if getattr(self.dialect, name) != getattr(PLAIN, name):
                raise InvalidInput(f"{self.path} is no CSV: leave out its {name}.")

    def _refuse_repeated(self, names: Sequence[str]) -> None:
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice and any(_is_numeral(name) for name in names):
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
        near, cli = meant(missing[0], self.names), ""
        if near is not None:
            hint = f"Is {near!r} meant?"
        elif self._untyped and self.names[0].startswith(COMMENTS):
            mark = self.names[0][0]
            hint = "Is its first line a comment? Say how such lines begin:"
            hint, cli = f"{hint} comment={mark!r}.", f"{hint} --comment {shlex.quote(mark)}"
        elif any(_is_numeral(name) for name in self.names):
            hint = "Does its first line hold the names of the columns?"
        else:
            hint = f"Its columns: {', '.join(self.names)}."
        raise InvalidInput(
            f"{self.path} has no column {', '.join(map(repr, missing))} ({what}).",
            hint,
            cli=cli,
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
        with self._refusing():
            batches = list(self._format.batches(wanted, ()))
        if not batches:
            raise InvalidInput(f"{self.path} has no rows.")
        table = pa.Table.from_batches(batches)
        if self._untyped:
            text = self._texts([name for name in numbers if name not in labels], parsed)
            if text:
                raise self._text_refusal(text)
        return {
            name: self._labels(name, table[name], labels[name])
            if name in labels
            else self._numbers(name, table[name], name in parsed)
            for name in wanted
        }

    def ids(self, name: str) -> NDArray[Any]:
        """Cells to compare, never to compute with: different ones stay different, None if missing.

        Raises
        ------
        InvalidInput
            If the column holds neither numbers, nor text, nor Booleans.
        """
        import pyarrow as pa

        if self._untyped:
            return self.columns([], {name: None})[name]
        if not is_plain(self._type(name)):
            raise self._unusable(name, self._type(name))
        self.require_rows()
        with self._refusing():
            return arrow_ids(pa.Table.from_batches(self._format.batches([name], ()))[name])

    # ---------------------------------------------------------------- sizes

    @property
    def n(self) -> int:
        """Number of rows; of a CSV, from one pass over it.

        Raises
        ------
        InvalidInput
            If there are none, or the file is damaged.
        """
        self.require_rows()
        return self._format.n if self._part is None else int(np.count_nonzero(self._part))

    def require_rows(self) -> None:
        """Refuse a file that is damaged or has no rows."""
        with self._refusing():
            count = self._format.n
        if count == 0:
            raise InvalidInput(f"{self.path} has no rows.")

    def features(self, target: str | None = None) -> tuple[str, ...]:
        """The columns to learn from, in the order of the file.

        Raises
        ------
        InvalidInput
            If one of them is neither numeric nor has declared categories, or none is left.
        """
        if target is not None:
            self.require([target], "the target")
        if target in self.categories:
            raise InvalidInput(
                f"Column {target!r} is the target: declare its labels as classes, not categories.",
                cli=f"Type --classes a,b instead of --categories {shlex.quote(str(target))}=a,b",
            )
        kept = {*self.categories, *self._numeric}
        left_out = {target, *self._drop, *(name for name in self.index if name not in kept)}
        left = tuple(name for name in self.names if name not in left_out)
        undeclared = [name for name in left if name not in self.categories]
        text = self._texts(undeclared, self._numeric)
        if text:
            raise self._text_refusal(text)
        if any(str(self._type(name)) == "null" for name in undeclared):
            self.require_rows()
        for name in undeclared:
            if not (self._is_text(name) or self._is_number(name) or self._is_truth(name)):
                raise self._unusable(name, self._type(name))
        if not left:
            raise InvalidInput(f"{self.path} has no column left to learn from.")
        return left

    def passes(self, plan: Plan) -> int:
        """How many times a fit of this plan will decode the file, at most: once a release.

        Peeling, which releases a support and its values from one question, needs fewer.
        Trimmed means, functions on parts and separations keep numbers of every row, and decode the
        file once for every `KEPT_BYTES` of them. A CSV has been read once more, to count its rows.
        A scratch copy is decoded once in all.
        """
        if self.scratch is not None:
            return 1
        return sum(r.times * self._sweeps(e) for r in plan for e in r.events)

    def _sweeps(self, event: Event) -> int:
        """How many times one release decodes the file."""
        if event.law == "laplace_lognormal":
            return min(event.coordinates, sweeps(self.n, event.coordinates))
        if event.law == "smooth_gaussian" or event.question == "separations":
            width = sum(len(self.categories.get(name, "1")) for name in self.names)
            return sweeps(self.n, width)
        return 1 + math.isinf(event.unit)

    # ---------------------------------------------------------------- cells, for the core

    def batches(self, names: Sequence[str], labels: Collection[str]) -> Iterator[Any]:
        """One pass: Arrow batches of these columns; text of ``labels`` may come as dictionaries.

        Raises
        ------
        InvalidInput
            If the file is damaged, or was written to since it was opened.
        """
        import pyarrow as pa

        seen = 0
        self._refuse_changed(self._stat() != self._written)
        self.require_rows()
        with self._refusing():
            for batch in self._format.batches(names, labels):
                start, seen = seen, seen + batch.num_rows
                self._refuse_changed(seen > self._format.n)
                if self._part is None:
                    yield batch
                elif self._part[start:seen].any():
                    yield batch.filter(pa.array(self._part[start:seen]))
        self._refuse_changed(seen != self._format.n or self._stat() != self._written)

    def numbers(self, name: str, column: Any) -> NDArray[np.float64]:
        """Cells of a batch as doubles; NaN for what is not a number."""
        return numbers(column, self.dialect)

    def labels(self, name: str, column: Any, declared: Sequence[Label]) -> Distinct:
        """Cells of a batch as labels; what that means for text depends on what is declared."""
        import pyarrow as pa

        found = distinct(column)
        if not self._is_text(name):
            return found
        values: list[Any] = found.values
        if self._untyped:
            values = [None if value is None else _one_line_end(value) for value in values]
        if self._untyped and declared and _are_numbers(declared):
            values = text_numbers(pa.array(values, pa.large_string()), self.dialect).tolist()
        elif declared and _are_truths(declared):
            values = [None if value is None else value.lower() for value in values]
        elif self._untyped and not declared:
            values = [value or None for value in values]
        return Distinct(values, found.positions)

    def typed(self, name: str, declared: Sequence[Label]) -> tuple[Label, ...]:
        """Declared labels as the column holds them: numbers, text or Booleans.

        Raises
        ------
        InvalidInput
            If no row could match them, for the column is of another type, or two labels become the
            same.
        """
        if self._is_truth(name):
            truths = {"true": True, "false": False}
            found = tuple(truths.get(str(value).lower(), value) for value in declared)
            odd = [value for value in found if value not in (True, False)]
            if odd:
                raise InvalidInput(
                    f"Column {name!r} holds true and false, and {odd[0]!r} is declared for it."
                )
            return found
        if self._is_text(name) and not self._untyped and _given_as_numbers(declared):
            text = [str(value) for value in declared]
            raise InvalidInput(
                f"Column {name!r} holds text, and numbers are declared for it: no row would match. "
                "Turn it into numbers, or declare its text:",
                f"{text}.",
                cli=f"{json.dumps(text)} in a file of --schema.",
            )
        if self._untyped:
            declared = [_one_line_end(v) if isinstance(v, str) else v for v in declared]
        numeric = _are_numbers(declared) if self._untyped else self._is_number(name)
        return typed_labels(name, declared, np.empty(0, np.float64 if numeric else object))

    def element(self, name: str) -> np.dtype[Any]:
        """The public type of a column of labels, as NumPy would hold it.

        Raises
        ------
        InvalidInput
            If its cells are no labels, such as lists; now, since a fit would fail after the charge.
        """
        found = self._type(name)
        if not is_label(found):
            raise self._unusable(name, found)
        if not (self._is_truth(name) or self._is_number(name)):
            return np.dtype(object)
        if "decimal" in str(self._type(name)):
            return np.dtype(object)
        element: np.dtype[Any] = np.dtype(self._type(name).to_pandas_dtype())
        return element

    def width(self, name: str) -> np.dtype[Any]:
        """The narrower of float32 and float64 that holds every number of the column's type."""
        exact = {"halffloat", "float", "int8", "int16", "uint8", "uint16", "bool"}
        return np.dtype(np.float32 if str(self._type(name)) in exact else np.float64)

    def require_numeric(self, name: str, *, mend: str = "", cli: str = "") -> None:
        """Refuse a column that is not one of numbers; ``mend`` and ``cli`` say what else to do."""
        if self._texts([name], self._numeric):
            marks = "If marks stand for missing numbers:"
            raise self._text(
                f"Column {name!r} of {self.path} holds text, and numbers are needed.",
                f'{mend} {marks} numeric=["{name}"].'.strip(),
                f"{cli} {marks} --numeric {shlex.quote(name)}.".strip(),
            )
        if not (self._is_text(name) or self._is_number(name) or self._is_truth(name)):
            raise self._unusable(name, self._type(name), needed=True)

    def require_readable(self, names: Sequence[str]) -> None:
        """Refuse columns that are to be numbers, if their type, or most of their text, is not."""
        text = [name for name in names if self._is_text(name)]
        shares = self._odd_shares(text)
        odd = [name for name in text if shares[name] > _ODD_IF_NUMERIC]
        if odd:
            raise self._text(
                f"Column {odd[0]!r} of {self.path} is to be numbers, and most of its first cells "
                "are none.", "", "",
            )  # fmt: skip
        for name in names:
            known = self._is_text(name) or self._is_number(name) or self._is_truth(name)
            if not known and str(self._type(name)) != "null":
                raise self._unusable(name, self._type(name), needed=True)

    def kind(self, name: str) -> Literal["number", "label"] | None:
        """What the type of a column says that it holds; None for whole numbers and for a CSV."""
        if self._untyped:
            return "number" if name in self._numeric else None
        if self._is_text(name) or self._is_truth(name):
            return "label"
        return "number" if str(self._type(name)) in ("float", "double", "halffloat") else None

    @property
    def from_text(self) -> bool:
        """Whether some numbers are read from text, by the format and what is declared."""
        return self._untyped or any(self._is_text(name) for name in self._numeric)

    # ---------------------------------------------------------------- types

    def _type(self, name: str) -> Any:
        with self._refusing():
            one = self._format.types[name]
        return getattr(one, "value_type", one) if str(one).startswith("dictionary") else one

    def _is_text(self, name: str) -> bool:
        return is_text(self._type(name))

    def _is_number(self, name: str) -> bool:
        return is_number(self._type(name))

    def _is_truth(self, name: str) -> bool:
        return str(self._type(name)) == "bool"

    def _texts(self, names: Sequence[str], numeric: Collection[str]) -> list[str]:
        """The columns of text among these, but for those that are declared ``numeric``.

        Raises
        ------
        InvalidInput
            If one that is declared numeric cannot be read.
        """
        text = [name for name in names if self._is_text(name)]
        undeclared = [name for name in text if name not in numeric]
        if undeclared and not self._untyped:
            return undeclared
        self.require_readable([name for name in text if name in numeric])
        shares = self._odd_shares(undeclared)
        return [name for name in undeclared if shares[name] > _ODD]

    def _odd_shares(self, names: Sequence[str]) -> dict[str, float]:
        """Of columns of text, the share of the cells in the first rows that are no numbers."""
        new = [name for name in names if name not in self._shares]
        if new:
            with self._refusing():
                first = next(iter(self._format.batches(new, ())), None)
                for name in new:
                    share = 0.0 if first is None else odd_share(first[name], self.dialect)
                    self._shares[name] = share
        return self._shares

    def _text_refusal(self, names: Sequence[str]) -> InvalidInput:
        one, several = names[0], len(names) > 1
        start = f"Columns {', '.join(map(repr, names))}" if several else f"Column {one!r}"
        drops = "a cell that is no number drops its row"
        typed = shlex.quote(one)
        return self._text(
            f"{start} of {self.path} {'hold' if several else 'holds'} text.",
            f'Declare categories={{"{one}": ["a", "b"]}}, or numeric=["{one}"] ({drops}), or '
            f'drop=["{one}"].',
            f"{'Of each, declare the' if several else 'Declare its'} categories (--categories "
            f"{typed}=a,b,c), or that it is numeric (--numeric {typed}: {drops}), or leave it out "
            f"(--drop {typed}).",
        )

    def _text(self, what: str, mend: str, cli: str) -> InvalidInput:
        """A refusal of text, with advice on numbers that are written in another way."""
        mend += (
            ' Numbers such as 1.234,5: decimal=",", thousands="."; such as 1,234.5: thousands=",".'
        )
        cli += (
            " Numbers such as 1.234,5: --decimal , --thousands . ; such as 1,234.5: --thousands ,"
        )
        return InvalidInput(what, mend.strip(), cli=cli.strip())

    # ---------------------------------------------------------------- columns

    def _numbers(self, name: str, column: Any, parsed: bool) -> NDArray[np.float64]:
        import pyarrow.types as kind

        column = decoded(column)
        if is_text(column.type):
            if not (parsed or self._untyped):
                raise self._text_refusal([name])
            return text_numbers(column, self.dialect)
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
        if self._untyped and declared is not None and _are_numbers(declared):
            return text_numbers(column, self.dialect)
        if declared is not None and _are_truths(declared):
            column = pc.utf8_lower(column)
        if self._untyped and declared is None:
            column = pc.if_else(pc.equal(column, ""), None, column)
        if self._untyped:
            column = pc.replace_substring_regex(column, "\r\n?", "\n")
        return np.asarray(column.to_numpy(), dtype=object)

    def _unusable(self, name: str, kind: Any, *, needed: bool = False) -> InvalidInput:
        if str(kind) == "null" and self._format.n == 0:
            return InvalidInput(f"{self.path} has no rows.")
        what = "no values" if str(kind) == "null" else f"values of type {kind}"
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

    # ---------------------------------------------------------------- files

    def _stat(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except OSError:
            return (-1, -1)
        return found.st_size, found.st_mtime_ns

    def _refuse_changed(self, changed: bool) -> None:
        if changed:
            raise InvalidInput(
                f"{self.path} was written to after it was opened. Open it again, and do not write "
                "to it during a fit."
            )

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Damage as an error that quotes no cell."""
        import pyarrow as pa

        try:
            yield
        except pa.ArrowInvalid as error:
            raise self._malformed(str(error)) from None
        except UnicodeError:
            raise self._malformed("UTF8") from None
        except (pa.ArrowException, OSError):
            raise self._malformed("") from None

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

    def _malformed(self, reason: str) -> InvalidInput:
        if "UTF8" in reason and not reason.startswith("CSV parse error"):  # which quotes a row
            return undecoded(self.path, self.dialect)
        if self._untyped:
            return InvalidInput(
                f"{self.path} is not a regular CSV file: a row has more or fewer cells than the "
                "header, or a quote is not closed. If some lines are comments, say how they begin:",
                "comment='#'.",
                cli="--comment '#'",
            )
        kind = "Arrow" if self._start(4) != b"PAR1" else "Parquet"
        return InvalidInput(f"{self.path} is a damaged {kind} file.")

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


def _are_numbers(declared: Sequence[Label]) -> bool:
    """Whether all labels are numbers as they are usually written, so not '007'."""
    return all(not isinstance(value, bool) and _is_numeral(str(value)) for value in declared)


def _one_line_end(text: str) -> str:
    r"""Text whose lines end in ``\n``.

    PyArrow loses the ``\n`` of a ``\r\n`` in quotes where its blocks meet, which depends on how
    long other records are.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _given_as_numbers(declared: Sequence[Label]) -> bool:
    """Whether labels are declared, and none is text, or true or false."""
    return len(declared) > 0 and all(
        not isinstance(value, str | bool | np.bool_) for value in declared
    )


def numbers_of(text: Sequence[str]) -> tuple[Label, ...]:
    """Labels that somebody typed: numbers if all are, as they are usually written; else text."""
    return tuple(whole(float(value)) if _are_numbers(text) else value for value in text)


def _is_numeral(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and text in (repr(number), f"{number:.0f}", f"{number:g}")


def _are_truths(declared: Sequence[Label]) -> bool:
    return {str(value).lower() for value in declared} <= {"true", "false"}
