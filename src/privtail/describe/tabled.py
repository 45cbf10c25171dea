"""Data as these questions take them: columns with names, and the groups that categories make."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privtail.errors import InvalidInput
from privtail.promised import Promised
from privtail.table_files import opened
from privtail.trusted.curator import Curator
from privtail.trusted.tables import (
    column_names,
    holds_numbers,
    is_column,
    is_file,
    named,
    require_categories,
    require_read,
)

Groups = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, eq=False)
class Tabled:
    """A container of records, the public names of its columns, and where features stand.

    Attributes
    ----------
    names : the columns of numbers. columns : the feature of each.
    by : for each column to group by, the features that indicate its categories.
    groups : the categories of every group, in the order in which the core counts them.
    vector : whether the data are one column without a name.
    left_out : columns that hold no numbers.
    """

    data: Any
    categories: dict[str, tuple[Any, ...]]
    names: tuple[str, ...]
    columns: tuple[int, ...]
    by: tuple[tuple[int, ...], ...] = ()
    groups: Groups = ((),)
    vector: bool = False
    left_out: tuple[str, ...] = ()

    def curator(self, promised: Promised, label: str, *, intercept: bool = False) -> Curator:
        """Holds the table, and is paid from this budget."""
        categories = None if is_file(self.data) else self.categories or None
        options = promised.options(label)
        found = Curator(self.data, categories=categories, intercept=intercept, **options)
        promised.warn(found.problem.n)
        return found


def tabled(
    data: Any,
    *,
    by: str | Sequence[str] | None = None,
    categories: Any = None,
    only_groups: bool = False,
    leave_out: bool = False,
) -> Tabled:
    """Data with names; ``by`` are one or two columns with declared ``categories``.

    ``only_groups``: nothing but these columns. ``leave_out``: columns that hold no numbers are left
    out, also those with declared categories; else the core refuses those without.
    """
    listed: Any = () if by is None else by if isinstance(by, list | tuple) else (by,)
    asked: tuple[str, ...] = tuple(listed)
    if not all(isinstance(name, str) for name in asked):
        raise InvalidInput('Group by one or two columns, by their names: by="region".')
    data = opened(data)
    require_read(data)
    declared = _declared(asked, categories, data.categories if is_file(data) else {})
    if is_column(data):
        if asked or declared:
            raise InvalidInput(
                "One column has no other to group by: pass a data frame or a file. "
                'To count by this column itself, pass frame[["region"]].'
            )
        name = name_of(data)
        return Tabled({name: data}, {}, (name,), (0,), vector=True)
    data = _by_text(data)
    names = data.kept() if is_file(data) else column_names(data)
    if names is None:
        return _without_names(data, grouped=bool(asked or declared))
    missing = [name for name in (*asked, *declared) if name not in names]
    if missing:
        raise InvalidInput(f"The data have no column {missing[0]!r}; they have {', '.join(names)}.")
    left = _without_numbers(data, names, declared) if leave_out else ()
    kept = [n for n in names if n not in left and (not only_groups or n in asked)]
    if not kept:
        raise InvalidInput(
            "No column holds numbers. Pass at least one of numbers, or count rows by a column:",
            'private_count(frame, by="region", categories=["north", "south"], epsilon=1).',
            cli="privtail count DATA --by region=north,south --epsilon 1",
        )
    categories = {name: declared[name] for name in kept if name in declared}
    if is_file(data):
        data = data.declaring(categories)
        for name in names:
            data = data if name in kept else data.without(name)
    else:
        data = {name: data[name] for name in kept}
    starts, width = {}, 0
    for name in kept:
        starts[name] = width
        width += len(categories.get(name, (name,)))
    own = tuple(name for name in kept if name not in categories)
    return Tabled(
        data, categories, own, tuple(starts[name] for name in own),
        tuple(tuple(range(starts[n], starts[n] + len(categories[n]))) for n in asked),
        tuple(itertools.product(*(categories[name] for name in asked))),
        left_out=left,
    )  # fmt: skip


def require_by(by: Any, categories: Any) -> None:
    """Refuse categories of no column to group by: a call would answer of all rows, and be paid."""
    if by is None and categories is not None:
        named = next(iter(categories), None) if isinstance(categories, Mapping) else None
        column = named if isinstance(named, str) else "region"
        raise InvalidInput(
            "categories= goes with by=, which names the columns to group by. "
            f'For each group: by="{column}". For all rows leave categories= out.'
        )


def _by_text(data: Any) -> Any:
    """The columns of a table in memory by names that are text; other data as they are."""
    names = None if is_file(data) else column_names(data)
    return data if names is None else named(data, names)


def name_of(column: Any) -> str:
    """What a column calls itself, where its class has names; else ``x``."""
    name = column.name if hasattr(type(column), "name") else None
    return name if isinstance(name, str) and name else "x"


def require_shape(data: Any) -> None:
    """Refuse what is no table, no column and no array, such as None or an ``array.array``."""
    if len(getattr(data, "shape", ())) < 2:
        raise InvalidInput(
            "A table or a column of numbers is needed, not an object of type "
            f"{type(data).__name__}: pass a data frame, an array, or list(x)."
        )


def _without_names(data: Any, *, grouped: bool) -> Tabled:
    if grouped:
        raise InvalidInput(
            "An array has no names, and categories belong to a named column: pass a data frame."
        )
    require_shape(data)
    width = data.shape[1]
    return Tabled(data, {}, tuple(f"x{j}" for j in range(width)), tuple(range(width)))


def _without_numbers(
    data: Any, names: Sequence[str], declared: Mapping[str, Any]
) -> tuple[str, ...]:
    """Those of these columns that hold no numbers, by their type, or have declared categories.

    A CSV has no types, and only its cells could say which columns are left out of an answer: so
    text in one is refused, as by a fit.
    """
    undeclared = [name for name in names if name not in declared]
    if not is_file(data):
        numeric = holds_numbers({name: data[name] for name in undeclared})
        return tuple(name for name in names if not numeric.get(name))
    text = data.texts(undeclared, data.numeric)
    if text and data.untyped:
        listed = ", ".join(map(repr, text))
        others = [str(name) for name in undeclared if name not in text] or ["cost"]
        named = " ".join(f"--column {shlex.quote(name)}" for name in others[:20])
        named += " ..." * (len(others) > 20)
        raise InvalidInput(
            f"{data.path} has text in {listed}, and a CSV has no types by which columns could be "
            "left out.",
            f"Leave them out yourself: open_table(path, drop=[{listed}]).",
            cli=f"Name those of numbers: {named}",
        )
    return tuple(n for n in names if n in text or n in declared or not data.schema.is_usable(n))


def _declared(
    by: tuple[str, ...], categories: Any, known: Mapping[str, Sequence[Any]]
) -> dict[str, tuple[Any, ...]]:
    """Column -> its categories; a plain list is of the one column to group by.

    Those that a table has ``known`` since it was opened stay, unless others are given.
    """
    if len(by) > 2:
        raise InvalidInput('Group by one or two columns, by their names: by="region".')
    if len(set(by)) < len(by):
        raise InvalidInput("by= names one column twice. Name it once.")
    if categories is not None and not isinstance(categories, Mapping):
        if len(by) != 1 or not _is_listed(categories):
            raise InvalidInput(
                'categories must map a column to its values: categories={"region": ["north"]}.'
            )
        categories = {by[0]: categories}
    given = categories or {}
    if not all(map(_is_listed, given.values())):
        require_categories(given)  # says what it must be
    declared = {name: tuple(values) for name, values in {**known, **given}.items()}
    unknown = [name for name in by if not declared.get(name)]
    if unknown:
        raise InvalidInput(
            f"Declare the categories of {unknown[0]!r}, because which ones occur is private: "
            f'categories={{"{unknown[0]}": ["a", "b"]}}.'
        )
    return declared


def _is_listed(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str)
