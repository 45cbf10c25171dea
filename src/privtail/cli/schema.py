"""What is public about a table: its target, classes and categories, declared by its owner."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from privtail.cli.options import Numeric, Written, file_option
from privtail.errors import InvalidInput
from privtail.json_files import Repeated, strictly
from privtail.spelling import guess

Label = str | int | float | bool
Missing = Literal["drop", "indicator"]

_FORM = (
    '{"target": "y", "classes": ["a", "b"], "numeric": ["age"], "categories": '
    '{"job": ["x", "y"]}, "drop": ["id"]}'
)


_WRITTEN = tuple(option.name for option in fields(Written))
_FORMS = {"partition_columns": list}
_KNOWN = frozenset(
    {"target", "classes", "numeric", "categories", "drop", "missing", "features", "base_levels"}
)
_NAMES = (*sorted(_KNOWN), *_WRITTEN)


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is known of the table; options that ``fit`` and ``plan`` share."""

    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", show_default=False, help="What to predict.")
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            show_default=False,
            help="Labels of the target. Without them a part of the budget finds them.",
        ),
    ] = None
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=A,B,C",
            show_default=False,
            help="Values of a column of text. Other values count as none of them. Can be repeated.",
        ),
    ] = None
    numeric: Numeric = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", show_default=False, help="Leave a column out. Can be repeated."
        ),
    ] = None
    missing: Annotated[
        Missing | None,
        typer.Option(
            show_default="drop",
            help="drop: a row with a missing number is not used. indicator: the number is "
            "replaced by the centre of its column, and one more feature says that it was missing.",
        ),
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            show_default=False,
            help="A function that replaces its column: 'bins(age, 20, 40)', 'spline(age, 20, 40, "
            "60)', 'log(pay, 1)'; or 'cross(region, fuel)', which is added to its columns. Can be "
            "repeated.",
        ),
    ] = None
    base_levels: Annotated[
        list[str] | None,
        typer.Option(
            "--base-level",
            metavar="first|COLUMN=A",
            show_default=False,
            help="The category that the slopes of the others compare to: the first of every "
            "column, or A of one column. Can be repeated.",
        ),
    ] = None
    schema: Annotated[
        Path | None,
        file_option(
            "JSON that says the same: target, classes, categories, numeric, drop, missing, "
            "features, base_levels, decimal ..."
        ),
    ] = None

    def facts(self) -> Schema:
        """The facts of the schema file, and what the other options add to or put above them.

        Raises
        ------
        InvalidInput
            If the file or a declaration cannot be understood.
        """
        file = Schema() if self.schema is None else Schema.read(self.schema)
        named: dict[str, tuple[Label, ...]] = {}
        for text in self.categories or ():
            name, values = named_values(text, "--categories")
            named[name] = (*named.get(name, ()), *values)
        return Schema(
            target=self.target or file.target,
            classes=file.classes if self.classes is None else _split(self.classes, "--classes"),
            numeric=(*file.numeric, *(self.numeric or ())),
            categories={**file.categories, **named},
            drop=(*file.drop, *(self.drop or ())),
            missing=self.missing or file.missing,
            features=(*file.features, *(self.feature or ())),
            base_levels=file.base_levels if self.base_levels is None else _bases(self.base_levels),
            written=file.written,
            complete=file.complete,
        )


@dataclass(frozen=True, kw_only=True)
class Schema:
    """Declared facts about the columns of a table, never taken from its rows.

    Attributes
    ----------
    target : what to predict.
    classes : labels of the target, if they are declared.
    numeric : columns of numbers.
    categories : column -> its categories.
    drop : columns to leave out.
    missing : what a missing number does, as an estimator takes it.
    features : functions of columns, as they are typed.
    base_levels : what an estimator takes as ``drop``.
    written : how files are written: what is declared of the options of `Written`.
    complete : whether a feature that is neither numeric nor has categories is refused.
    """

    target: str | None = None
    classes: tuple[Label, ...] | None = None
    numeric: tuple[str, ...] = ()
    categories: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    missing: Missing = "drop"
    features: tuple[str, ...] = ()
    base_levels: Literal["first"] | Mapping[str, Label] | None = None
    written: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = False

    @classmethod
    def read(cls, path: Path) -> Schema:
        """Read a schema file; raises InvalidInput if it cannot be understood."""
        place = ""
        try:
            content = strictly(path.read_bytes())
        except OSError as error:
            raise InvalidInput(
                f"The schema {path} cannot be read: {error.strerror}. Give another file."
            ) from None
        except Repeated as error:
            raise InvalidInput(
                f"The schema {path} says two things. {error.sentence} Leave one of them out."
            ) from None
        except (ValueError, RecursionError) as error:
            content, place = None, _place(error)
        if not isinstance(content, dict):
            raise InvalidInput(f"The schema {path} is not a JSON object{place}. Its form: {_FORM}")
        written = {name: content.pop(name) for name in _WRITTEN if name in content}
        unknown = set(content) - _KNOWN
        if content.get("missing", "drop") not in get_args(Missing):
            unknown.add("missing")
        unknown |= {
            name for name, value in written.items() if not isinstance(value, _FORMS.get(name, str))
        }
        target, categories = content.get("target"), content.get("categories", {})
        if unknown or not isinstance(target, str | None) or not isinstance(categories, dict):
            wrong = min(unknown) if unknown else "target" if categories == {} else "categories"
            known = "" if wrong in _NAMES else _stranger(wrong)
            raise InvalidInput(f"The schema {path} is wrong in {wrong!r}.{known} Its form: {_FORM}")
        return cls(
            target=target,
            classes=_list(path, content, "classes", str | int | float),
            numeric=_list(path, content, "numeric", str) or (),
            categories={
                name: _list(path, categories, name, str | int | float) or () for name in categories
            },
            drop=_list(path, content, "drop", str) or (),
            missing=content.get("missing", "drop"),
            features=_list(path, content, "features", str) or (),
            base_levels=content.get("base_levels"),
            written=written,
            complete=content.get("numeric") is not None,
        )

    def require_complete(self, path: str, features: Sequence[str]) -> None:
        """Refuse features that a schema file with a list of numeric columns does not know."""
        for name in features:
            if self.complete and name not in {*self.numeric, *self.categories}:
                raise InvalidInput(
                    f"Column {name!r} of {path} is not in the schema. Put it under "
                    f'"numeric" or "categories", or leave it out (--drop {shlex.quote(name)}).'
                )


def _place(error: Exception) -> str:
    """Where a file stops being JSON, such as after a comma too many."""
    if not isinstance(error, json.JSONDecodeError):
        return ""
    return f" (line {error.lineno}, column {error.colno})"


def _stranger(name: str) -> str:
    """What a schema holds, for a name that it may not hold."""
    return (
        f"{guess(name, _NAMES)} It may hold {', '.join(_NAMES)}. Other options go on the command "
        "line."
    )


def _list(path: Path, content: dict[str, Any], name: str, kind: Any) -> tuple[Any, ...] | None:
    values = content.get(name)
    if values is None:
        return None
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise InvalidInput(f"In the schema {path}, {name!r} must be a list. Its form: {_FORM}")
    return tuple(values)


def named_values(text: str, option: str) -> tuple[str, tuple[Label, ...]]:
    """A column and its values, as ``option`` has them; raises InvalidInput."""
    name, equals, values = text.partition("=")
    if not equals or not name:
        column, colon, listed = name.partition(":" if ":" in name else ",")
        column = shlex.quote(column or "column")
        listed = shlex.quote(listed) if colon == ":" and listed else "a,b,c"
        raise InvalidInput(f"{option} {text!r} is not understood. Type: {option} {column}={listed}")
    return name, _split(values, f"{option} {name}=")


def _bases(texts: Sequence[str]) -> Literal["first"] | dict[str, Label]:
    """``first``, or the base level of each column that was typed."""
    if list(texts) == ["first"]:
        return "first"
    pairs = [text.partition("=") for text in texts]
    for text, (name, equals, level) in zip(texts, pairs, strict=True):
        if not (name and equals and level):
            raise InvalidInput(
                f"--base-level {text!r} is not understood. Type --base-level first, or for each "
                "column --base-level column=a"
            )
    return {name: level for name, _, level in pairs}


def _split(text: str, option: str) -> tuple[Label, ...]:
    """Values between commas; quotes protect a comma. They are numbers if all look so."""
    from privtail.schema.declared import numbers_of

    values = tuple(value.strip() for value in next(csv.reader([text], skipinitialspace=True), []))
    if not values or "" in values:
        raise InvalidInput(f"{option} needs values between commas, like a,b,c.")
    return numbers_of(values)
