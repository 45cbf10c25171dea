"""Files that are one table: whether their formats, and the types of their columns, are alike."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from privtail.errors import InvalidInput
from privtail.schema.types import is_text

_WHOLE = frozenset(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"))
_NUMBERS = _WHOLE | {"uint64", "halffloat", "float", "double"}


def refuse_mixed(
    name: object, paths: Sequence[Any], kinds: Sequence[str], empty: Sequence[bool]
) -> None:
    """Refuse the first file whose format is not that of most files.

    Parameters
    ----------
    name : of the table: where it is a folder, a pattern is named that matches the usual files.
    paths, kinds, empty : the files, the format of each, and whether it holds nothing.

    Raises
    ------
    InvalidInput
        If formats differ.
    """
    usual = Counter(kinds).most_common(1)[0][0]
    odd = next((i for i, kind in enumerate(kinds) if kind != usual), None)
    if odd is None:
        return
    path, other = paths[odd], paths[kinds.index(usual)]
    what = "is empty, so it is no" if empty[odd] else "is no"
    mend = "Name files of one format."
    if isinstance(name, Path) and name.is_dir() and other.suffix:
        mend = f"Move it, or name the others by a pattern: '{name / '**' / '*'}{other.suffix}'."
    raise InvalidInput(f"{path} {what} {usual} file, but {other} is. {mend}")


class Types(dict[str, Any]):
    """Types by column. To ask for that of a column which is not alike in all files is refused.

    A column that some files hold without values (type null) is of the type that the others give
    it. One of several types of numbers is of int64 if that holds all of them, else of doubles.

    Parameters
    ----------
    paths : the files.
    types : column -> type, for each file.
    names : the columns of any of them.

    Attributes
    ----------
    casts : for each file, the columns that are read in another type than it holds, and that type.
    rounded : the columns of several types of numbers that are read as doubles.
    """

    def __init__(
        self, paths: Sequence[Any], types: Sequence[Mapping[str, Any]], names: Sequence[str]
    ) -> None:
        super().__init__()
        self.casts: list[dict[str, Any]] = [{} for _ in paths]
        self.rounded: set[str] = set()
        self._refusals: dict[str, InvalidInput] = {}
        for name in names:
            self._compare(name, paths, [one.get(name) for one in types])

    def __missing__(self, name: str) -> NoReturn:
        raise self._refusals[name]

    def _compare(self, name: str, paths: Sequence[Any], types: Sequence[Any]) -> None:
        """Find the type of a column in all files, or the error that refuses it."""
        import pyarrow as pa

        kinds = [_alike(found) for found in types]
        held = [kind for kind in kinds if kind != "null"] or kinds
        if len(set(held)) == 1 or set(held) <= _NUMBERS:
            common = types[kinds.index(held[0])]
            if len(set(held)) > 1:
                common = pa.int64()
                if not set(held) <= _WHOLE:
                    common = pa.float64()
                    self.rounded.add(name)
            self[name] = common
            for kind, casts in zip(kinds, self.casts, strict=True):
                if kind != _alike(common):
                    casts[name] = _value_type(common)
            return
        usual = Counter(held).most_common(1)[0][0]
        place = kinds.index(usual)
        odd = next(i for i, kind in enumerate(kinds) if kind not in (usual, "null"))
        path, other = paths[odd], paths[place]
        if types[odd] is None:
            what = f"{path} has no column {name!r}, but {other} has one."
        elif types[place] is None:
            what = f"{path} has a column {name!r}, but {other} has none."
        else:
            what = (
                f"Column {name!r} of {path} holds values of type {kinds[odd]}, and that of {other} "
                f"holds values of type {usual}. A column needs one type in all files."
            )
        self._refusals[name] = InvalidInput(
            f"{what} Write that file again, or leave the column out:",
            f'drop=["{name}"].',
            cli=f"--drop {shlex.quote(name)}",
        )


def _value_type(found: Any) -> Any:
    return found.value_type if str(found).startswith("dictionary") else found


def _alike(found: Any) -> str:
    """What types of one column have in common, whatever wrote the files."""
    if found is None:
        return ""
    found = _value_type(found)
    return "text" if is_text(found) else str(found)
