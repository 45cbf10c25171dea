"""What is public about a table: its target, classes and categories, declared by its owner."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput
from privtail.trusted.tables import Label, TableFile

_FORM = (
    '{"target": "y", "classes": ["a", "b"], "numeric": ["age"], "categories": '
    '{"job": ["x", "y"]}, "drop": ["id"]}'
)


@dataclass(frozen=True)
class Schema:
    """Declared facts about the columns of a table, never taken from its rows.

    Attributes
    ----------
    target : what to predict.
    classes : labels of the target, if they are declared.
    numeric : columns of numbers; None where it is left to the file.
    categories : column -> its categories.
    drop : columns to leave out.
    """

    target: str | None = None
    classes: tuple[Label, ...] | None = None
    numeric: tuple[str, ...] | None = None
    categories: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)
    drop: tuple[str, ...] = ()

    @classmethod
    def declared(
        cls,
        path: Path | None,
        *,
        target: str | None = None,
        classes: str | None = None,
        categories: Sequence[str] = (),
        drop: Sequence[str] = (),
    ) -> Schema:
        """The facts of a schema file, and what the command line adds to or puts above them.

        Raises
        ------
        InvalidInput
            If the file or a declaration cannot be understood.
        """
        file = cls() if path is None else cls._read(path)
        named = dict(_named(text) for text in categories)
        return cls(
            target=target or file.target,
            classes=file.classes if classes is None else _split(classes, "--classes"),
            numeric=file.numeric,
            categories={**file.categories, **named},
            drop=(*file.drop, *drop),
        )

    @classmethod
    def _read(cls, path: Path) -> Schema:
        try:
            content = json.loads(path.read_bytes())
        except OSError as error:
            raise InvalidInput(f"The schema {path} cannot be read: {error.strerror}.") from None
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise InvalidInput(f"The schema {path} is not a JSON object. Its form: {_FORM}")
        unknown = set(content) - {"target", "classes", "numeric", "categories", "drop"}
        target, categories = content.get("target"), content.get("categories", {})
        if unknown or not isinstance(target, str | None) or not isinstance(categories, dict):
            wrong = min(unknown) if unknown else "target" if categories == {} else "categories"
            raise InvalidInput(f"The schema {path} is wrong in {wrong!r}. Its form: {_FORM}")
        return cls(
            target=target,
            classes=_list(path, content, "classes", str | int | float),
            numeric=_list(path, content, "numeric", str),
            categories={
                name: _list(path, categories, name, str | int | float) or () for name in categories
            },
            drop=_list(path, content, "drop", str) or (),
        )

    def features(self, table: TableFile) -> list[str]:
        """The columns of ``table`` to learn from, in the order of the file.

        Raises
        ------
        InvalidInput
            If a declared column is missing, a column is not declared though ``numeric`` says which
            are numbers, or none is left.
        """
        if self.target is None:
            raise InvalidInput("Say what to predict: --target COLUMN.")
        table.require([self.target], "the target")
        table.require(self.drop, "to be dropped")
        table.require(self.categories, "declared as categories")
        table.require(self.numeric or (), "declared as numeric")
        if self.target in self.categories:
            raise InvalidInput(
                f"Column {self.target!r} is the target: declare its labels by --classes a,b."
            )
        features = [name for name in table.names if name not in {*self.drop, self.target}]
        for name in features:
            if self.numeric is not None and name not in {*self.numeric, *self.categories}:
                raise InvalidInput(
                    f"Column {name!r} of {table.path} is not in the schema. Put it under "
                    f'"numeric" or "categories", or leave it out (--drop {name}).'
                )
        if not features:
            raise InvalidInput(f"{table.path} has no column left to learn from.")
        return features


def _list(path: Path, content: dict[str, Any], name: str, kind: Any) -> tuple[Any, ...] | None:
    values = content.get(name)
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise InvalidInput(f"In the schema {path}, {name!r} must be a list. Its form: {_FORM}")
    return tuple(values)


def _named(text: str) -> tuple[str, tuple[Label, ...]]:
    name, equals, values = text.partition("=")
    if not equals or not name:
        raise InvalidInput(
            f"--categories {text!r} is not understood. Type: --categories column=a,b,c"
        )
    return name, _split(values, f"--categories {name}=")


def _split(text: str, option: str) -> tuple[Label, ...]:
    """Values between commas; quotes protect a comma."""
    values = tuple(value.strip() for value in next(csv.reader([text], skipinitialspace=True), []))
    if not values or "" in values:
        raise InvalidInput(f"{option} needs values between commas, like a,b,c.")
    return values
