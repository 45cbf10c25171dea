"""Tables of Parquet, CSV and Arrow files: names and types are public, cells go to the core.

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

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.columns import Columns
from privtail.schema.declared import (
    Declarations,
    Label,
    are_numbers,
    are_truths,
    plain,
    require_categories,
)
from privtail.schema.dialect import PLAIN, Dialect
from privtail.schema.types import is_plain
from privtail.storage.listing import listed
from privtail.storage.queries import ASSUMPTION, is_query, run
from privtail.trusted.files.cells import (
    distinct,
    numbers,
    odd_share,
    one_line_end,
    text_numbers,
)
from privtail.trusted.files.folders import Files, Runs
from privtail.trusted.files.source import Place, changed
from privtail.trusted.private_rows import PrivateFile
from privtail.trusted.records.arrow import Distinct, arrow_ids, joined

_ODD, _ODD_IF_NUMERIC = 0.1, 0.5
"""A column of text is refused as numbers if more of its cells in the first rows hold no number."""


class TableFile(PrivateFile):
    """A table of one or many Parquet, CSV or Arrow files, read in blocks and never whole.

    A curator, an estimator or `private_mean` takes it in place of a data frame, with the name of
    the target column as ``y``. Every question about the records is one pass over the file.

    Parameters
    ----------
    path : a file, a folder, a pattern, a list or a query, as `privtail.open_table` takes them.
    categories : column -> its declared categories; one-hot encoded. Those of a CSV, which has no
        types, are compared as numbers if all are, else as text; those of other files are of the
        type of their column, or are refused.
    numeric : columns that hold numbers by declaration: what is none in them drops its row. In a
        CSV, a column without categories is read so too, but refused if more than a tenth of its
        cells in the first 2,000 rows are no numbers; a declared one if more
        than half are.
    drop : columns to leave out.
    scratch : a folder for a private copy, decoded once, for many passes over a file that is slow
        to decode. The copy has no name in the folder, and ends with this object.
    dialect : how a CSV, and text that is read as numbers, is written.

    Attributes
    ----------
    path, paths : what errors call the table, and its files, sorted by path.
    names : the column names, in order.
    exposure : the column that says on how much the target was counted; None for none.
    schema : the types of the columns, and the refusals that follow from them.
    index : the columns that were an index of pandas, as the file says. They are no features unless
        they are declared numeric, or their categories are.
    categories : column -> its declared categories, as the type of the column writes them.

    Raises
    ------
    InvalidInput
        If this is no table, its names are missing or not distinct, or a declared one is missing.
        A column that is not of one type in all files is refused when its type is first asked for.
    """

    def __init__(
        self,
        path: Any,
        *,
        categories: Declarations | None = None,
        numeric: Collection[str] = (),
        drop: Collection[str] = (),
        scratch: str | Path | None = None,
        dialect: Dialect = PLAIN,
    ) -> None:
        self.scratch = None if scratch is None else Path(scratch)
        if type(dialect) is not Dialect:
            raise InvalidInput("A dialect must be a Dialect, and no class derived from it.")
        dialect = replace(dialect)  # which rows are read as one block, other rows decide
        self.dialect, self.assumptions = dialect, dialect.assumptions
        if is_query(path):  # run here, once
            self.path: Place | str = run(path, self.scratch)
            self.paths: tuple[Any, ...] = (self.path,)
            self.assumptions += (ASSUMPTION,)
        else:
            self.path, self.paths = listed(path)
        require_categories(categories)
        for option, given in (("numeric", numeric), ("drop", drop)):
            if isinstance(given, str):
                raise InvalidInput(f"{option} must be a list of columns: {option}=[{given!r}].")
        declared = {plain(name): listed for name, listed in (categories or {}).items()}
        self.numeric, self._drop = frozenset(numeric), frozenset(drop)
        self._format = Files(self.path, self.paths, dialect, self._drop)
        self.names, self.index = self._format.names, self._format.index
        self.schema = Columns(
            self.path, self.names, self._format.types, self._format.untyped, self.numeric
        )
        self.require(declared, "declared as categories")
        self.require(numeric, "declared as numeric")
        self.require(drop, "to be dropped")
        self.categories = {name: self.typed(name, listed) for name, listed in declared.items()}
        self._copies: dict[Any, Any] = {}
        self._shares: dict[str, float] = {}
        self._part: NDArray[np.bool_] | None = None
        self.exposure: str | None = None

    def declaring(self, categories: Declarations) -> TableFile:
        """The same file with more categories."""
        require_categories(categories)
        own = {plain(name): listed for name, listed in categories.items()}
        new = {n: c for n, c in own.items() if self.categories.get(n) is not c}
        if not new:
            return self
        self.require(new, "declared as categories")
        other = self._alike()
        other.categories = self.categories | {name: self.typed(name, c) for name, c in new.items()}
        return other

    def without(self, name: str) -> TableFile:
        """The same file without the column that says whose a row is."""
        self.require([name], "of persons")
        other = self._alike()
        other._drop = self._drop | {name}
        return other

    def exposed(self, name: str) -> TableFile:
        """The same file, of which a column is the exposure of the target, and no feature."""
        self.require([name], "of exposures")
        self.require_numeric(name)
        other = self._alike()
        other.exposure = str.__str__(name)
        return other

    def part(self, ids: NDArray[np.int64]) -> TableFile:
        """The rows of these (distinct) positions, in their order, as a file of their own."""
        some = self._alike()
        some._part = np.zeros(self._format.n, np.bool_)
        some._part[ids if self._part is None else np.flatnonzero(self._part)[ids]] = True
        return some

    def copied_to(self, folder: Path) -> TableFile:
        """The same table, decoded once into a private copy in ``folder``."""
        other = self._alike()
        other.scratch = folder
        return other

    def _alike(self) -> TableFile:
        """The same opened files, for another use of them."""
        other = object.__new__(TableFile)
        other.__dict__ |= {**self.__dict__, "_copies": {}}
        return other

    def copy(self, key: Any, make: Callable[[Path], Any]) -> Any:
        """The scratch copy of this use of the file, made once."""
        self.require_unchanged()
        if key not in self._copies and self.scratch is not None:
            self._copies[key] = make(self.scratch)
        return self._copies[key]

    def require(self, names: Iterable[str], what: str) -> None:
        """Refuse, by name, what the file has no column for.

        Raises
        ------
        InvalidInput
            ``what`` says what the names were wanted for.
        """
        self.schema.require(names, what)

    def ids(self, name: str) -> NDArray[Any]:
        """Cells to compare, never to compute with: different ones stay different, None if missing.

        A cell of a CSV with the end of a line is nobody's: PyArrow may lose a part of it.

        Raises
        ------
        InvalidInput
            If the column holds neither numbers, nor text, nor Booleans, or types of numbers by file
            that only doubles hold together: two ids could be one double.
        """
        name = str.__str__(name)  # every block is read alike
        if name in self._format.types.rounded:
            raise self.schema.rounded_ids(name)
        if not (self._format.untyped or is_plain(self.schema.type(name))):
            raise self._unusable(name)
        self.require_rows()
        labels = (name,) if self._format.untyped else ()
        pieces = [batch[name] for run in self._format.runs([name], labels) for batch in run]
        if not pieces:
            raise changed(self.path)
        with self._format.refusing():
            if not self._format.untyped:
                return arrow_ids(joined(pieces))
            found = [self.labels(name, piece, ()) for piece in pieces]
            known = (
                [None if isinstance(v, str) and "\n" in v else v for v in one.values]
                for one in found
            )
            return np.concatenate([
                np.array(values, object)[one.positions]
                for values, one in zip(known, found, strict=True)
            ])  # fmt: skip

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

    def require_unchanged(self) -> None:
        """Refuse a file that was written to after it was opened."""
        self._format.require_unchanged()

    def require_rows(self) -> None:
        """Refuse a file that is damaged or has no rows."""
        if self._format.n == 0:
            raise InvalidInput(f"{self.path} has no rows; it needs at least one.")

    def kept(self) -> tuple[str, ...]:
        """The columns that were not dropped; an index of pandas is kept if it is declared."""
        declared = {*self.categories, *self.numeric}
        left_out = {*self._drop, *(name for name in self.index if name not in declared)}
        return tuple(name for name in self.names if name not in left_out)

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
            raise self.schema.declared_target(str(target))
        left = tuple(name for name in self.kept() if name not in (target, self.exposure))
        undeclared = [name for name in left if name not in self.categories]
        text = self.texts(undeclared, self.numeric)
        if text:
            raise self.schema.text_refusal(text)
        if any(str(self.schema.type(name)) == "null" for name in undeclared):
            self.require_rows()
        for name in undeclared:
            if not self.schema.is_usable(name):
                raise self._unusable(name)
        if not left:
            raise InvalidInput(
                f"{self.path} needs a column that is neither the target nor dropped."
            )
        return left

    # ---------------------------------------------------------------- cells, for the core

    def runs(self, names: Sequence[str], labels: Collection[str]) -> Runs:
        """One pass: Arrow batches of these columns; text of ``labels`` may come as dictionaries.

        Run by run, with the id of its first row; several runs may be read at once.

        Raises
        ------
        InvalidInput
            If a file is damaged, or was written to since it was opened.
        """
        self.require_unchanged()
        self.require_rows()
        return self._format.counted_runs(names, labels, self._part)

    def batches(self, names: Sequence[str], labels: Collection[str]) -> Iterator[Any]:
        """One pass, one run after the other."""
        return itertools.chain.from_iterable(run for _, run in self.runs(names, labels))

    def numbers(self, column: Any) -> NDArray[np.float64]:
        """Cells of a batch as doubles; NaN for what is not a number."""
        return numbers(column, self.dialect)

    def labels(self, name: str, column: Any, declared: Sequence[Label]) -> Distinct:
        """Cells of a batch as labels; what that means for text depends on what is declared."""
        import pyarrow as pa

        found = distinct(column)
        if not self.schema.is_text(name):
            return found
        values: list[Any] = found.values
        if self._format.untyped:
            values = [None if value is None else one_line_end(value) for value in values]
        if self._format.untyped and declared and are_numbers(declared):
            values = text_numbers(pa.array(values, pa.large_string()), self.dialect).tolist()
        elif declared and are_truths(declared):
            values = [None if value is None else value.lower() for value in values]
        elif self._format.untyped and not declared:
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
        if self._format.untyped:
            declared = [one_line_end(v) if isinstance(v, str) else v for v in declared]
        return self.schema.typed(name, declared)

    def require_numeric(self, name: str, *, mend: str = "", cli: str = "") -> None:
        """Refuse a column that is not one of numbers; ``mend`` and ``cli`` say what else to do."""
        if self.texts([name], self.numeric):
            raise self.schema.text_for_numbers(name, mend, cli)
        if not self.schema.is_usable(name):
            raise self._unusable(name, needed=True)

    def require_readable(self, names: Sequence[str]) -> None:
        """Refuse columns that are to be numbers, if their type, or most of their text, is not."""
        text = [name for name in names if self.schema.is_text(name)]
        shares = self._odd_shares(text)
        odd = [name for name in text if shares[name] > _ODD_IF_NUMERIC]
        if odd:
            raise self.schema.odd_text(odd[0])
        for name in names:
            known = self.schema.is_usable(name)
            if not known and str(self.schema.type(name)) != "null":
                raise self._unusable(name, needed=True)

    @property
    def untyped(self) -> bool:
        """Whether it is a CSV, whose columns have no types."""
        return self._format.untyped

    @property
    def from_text(self) -> bool:
        """Whether some numbers are read from text, by the format and what is declared."""
        return self._format.untyped or any(map(self.schema.is_text, self.numeric))

    # ---------------------------------------------------------------- types

    def texts(self, names: Sequence[str], numeric: Collection[str]) -> list[str]:
        """The columns of text among these, but for those that are declared ``numeric``.

        Raises
        ------
        InvalidInput
            If one that is declared numeric cannot be read.
        """
        text = [name for name in names if self.schema.is_text(name)]
        undeclared = [name for name in text if name not in numeric]
        if undeclared and not self._format.untyped:
            return undeclared
        self.require_readable([name for name in text if name in numeric])
        shares = self._odd_shares(undeclared)
        return [name for name in undeclared if shares[name] > _ODD]

    def _odd_shares(self, names: Sequence[str]) -> dict[str, float]:
        """The share of cells in the first rows that are no numbers, for columns of text."""
        new = [name for name in names if name not in self._shares]
        if new:
            first = self._format.beginnings(new)
            with self._format.refusing():
                for name in new if first else ():
                    cells = joined([batch[name] for batch in first])
                    self._shares[name] = odd_share(cells, self.dialect)
        return {name: self._shares.get(name, 0.0) for name in names}

    def _unusable(self, name: str, *, needed: bool = False) -> InvalidInput:
        kind = self.schema.type(name)
        if str(kind) == "null" and self._format.n == 0:
            return InvalidInput(f"{self.path} has no rows; it needs at least one.")
        return self.schema.unusable(name, kind, needed=needed)

    def __repr__(self) -> str:
        return f"TableFile({str(self.path)!r}, columns={len(self.names)})"
