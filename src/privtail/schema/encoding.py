"""From columns to the features of a model: a declared map, which is public.

An `Encoding` is what somebody declared; a `Design` is what follows from it for the columns of one
table. Neither is given a cell: the core applies a design to one row after the other.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from privtail.errors import InvalidInput, told
from privtail.schema.declared import Label, plain
from privtail.schema.features import (
    Bins,
    Cross,
    Feature,
    Log,
    OfOneColumn,
    Spline,
    parsed,
    written,
)
from privtail.spelling import guess

Missing = Literal["drop", "indicator"]
Drop = Literal["first"] | Mapping[str, Label] | None


@dataclass(frozen=True)
class Cell:
    """A number as it is."""

    column: str


@dataclass(frozen=True)
class Levels:
    """A declared category: 1 for its own label, 0 for others."""

    column: str
    values: tuple[Label, ...]


@dataclass(frozen=True)
class Gap:
    """Whether the number of a column is missing: 1, else 0."""

    column: str


@dataclass(frozen=True)
class Product:
    """Every feature of one part times every feature of the other."""

    left: Part
    right: Part


Source = Cell | Levels | Gap | Bins | Spline | Log | Product


@dataclass(frozen=True)
class Part:
    """Features that follow from one declaration.

    Attributes
    ----------
    source : what they are made of.
    levels : their names, that of the base level among them.
    base : the place of the base level, for which there is no feature; None if there is none.
    bounded : whether they lie in [0, 1] by declaration.
    optional : whether they are filled in where a number is missing.
    """

    source: Source
    levels: tuple[str, ...]
    base: int | None = None
    bounded: bool = False
    optional: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for k, name in enumerate(self.levels) if k != self.base)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that they are made of."""
        source = self.source
        if isinstance(source, Product):
            return source.left.columns + source.right.columns
        return (source.column,)

    @property
    def exclusive(self) -> bool:
        """Whether at most one of them is 1 in a row, and the others are 0."""
        source = self.source
        if isinstance(source, Product):
            return source.left.exclusive and source.right.exclusive
        return isinstance(source, Levels | Bins | Gap)

    @property
    def categorical(self) -> bool:
        """Whether these are the categories of a column."""
        return isinstance(self.source, Levels)


def sizes_of(categories: Sequence[Sequence[int]], bounded: Sequence[int]) -> tuple[int, ...]:
    """The numbers of features of each category, and a 1 for each other feature in [0, 1]."""
    sizes = tuple(map(len, categories))
    return (*sizes, *(1,) * (len(bounded) - sum(sizes)))


@dataclass(frozen=True)
class Design:
    """What a model sees of the columns of a table.

    Attributes
    ----------
    columns : names of the columns, in order.
    parts : the features, in order.
    indicator : whether a missing number is filled in, and not its row dropped.
    """

    columns: tuple[str, ...]
    parts: tuple[Part, ...]
    indicator: bool = False

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for part in self.parts for name in part.names)

    @functools.cached_property
    def bounded(self) -> tuple[int, ...]:
        """Places of the features that lie in [0, 1] by declaration."""
        return tuple(j for part, places in self.placed() for j in places if part.bounded)

    @functools.cached_property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Places of the features of each category, bins, cross of these, or missing number."""
        placed = ((part, tuple(places)) for part, places in self.placed())
        return tuple(places for part, places in placed if part.exclusive and places)

    @functools.cached_property
    def optional(self) -> tuple[int, ...]:
        """Places of the features that are filled in where a number is missing."""
        return tuple(j for part, places in self.placed() for j in places if part.optional)

    def placed(self) -> Iterator[tuple[Part, range]]:
        """Every part with the places of its features."""
        first = 0
        for part in self.parts:
            yield part, range(first, first + len(part.names))
            first += len(part.names)

    def watched(self) -> list[tuple[str, list[int], bool]]:
        """Each column to predict from: name, places, and whether these are all its categories."""
        numbers: dict[str, list[int]] = {}
        found: list[tuple[str, list[int], bool]] = []
        for part, places in self.placed():
            name, source = part.columns[0], part.source
            if isinstance(source, Levels) and part.base is None:
                found.append((name, list(places), True))
            elif not isinstance(source, Levels | Gap | Product):
                if name not in numbers:
                    found.append((name, numbers.setdefault(name, []), False))
                numbers[name] += places
        return found

    def lines(self) -> Iterator[tuple[str, int | None]]:
        """Names of features and of base levels, with the places of features; of a base level None.

        A base level stands where its feature would.
        """
        for part, places in self.placed():
            left = iter(places)
            for k, name in enumerate(part.levels):
                yield name, None if k == part.base else next(left)


@dataclass(frozen=True)
class Encoding:
    """What is declared of the features, beside the categories of columns.

    Attributes
    ----------
    missing : ``"drop"``: a row with a missing number counts for nothing. ``"indicator"``: a missing
        number counts as the centre of its column, and one more feature says that it was missing.
    drop : the base level of categories and bins, which has no feature: ``"first"``, or a label for
        each column that has one; None: no column has one.
    features : functions of columns. One of a single column takes the place of that column, unless
        the column is named, too; a cross stands beside its columns.

    Raises
    ------
    InvalidInput
        If one of them cannot be understood.
    """

    missing: Missing = "drop"
    drop: Drop = None
    features: Sequence[Feature] = ()

    def __post_init__(self) -> None:
        kinds: tuple[Missing, ...] = get_args(Missing)
        if self.missing not in kinds:
            raise InvalidInput(f'missing must be "drop" or "indicator", got {told(self.missing)}.')
        object.__setattr__(self, "missing", kinds[kinds.index(self.missing)])
        if not (self.drop is None or self.drop == "first" or isinstance(self.drop, Mapping)):
            raise InvalidInput(
                'drop must be "first", or name a base level for columns, for example '
                f'drop={{"city": "Rome"}}; got {told(self.drop)}. To leave out a column, pass X '
                "without it."
            )
        given: Any = self.features
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidInput(
                'features must be a list, for example features=[privtail.features.log("income")]; '
                f"got {told(self.features)}."
            )
        object.__setattr__(self, "drop", _own_drop(self.drop))
        object.__setattr__(self, "features", tuple(map(_own, self.features)))

    @property
    def plain(self) -> bool:
        """Whether nothing is declared beside categories."""
        return self.missing == "drop" and not self.drop and not self.features

    def design(
        self, columns: Sequence[str], categories: Mapping[str, Sequence[Label]]
    ) -> Design:  # fmt: skip
        """The features of a table of these columns, some of which have declared categories.

        Raises
        ------
        InvalidInput
            If a column is missing, or is not of the kind that a feature needs, or two features
            have one name.
        """
        return _Builder(self, tuple(columns), categories).design()

    def to_json(self) -> dict[str, Any]:
        """What a model writes; nothing of what is as by default."""
        return {
            **({"missing": self.missing} if self.missing != "drop" else {}),
            **({"drop": self.drop if isinstance(self.drop, str) else dict(self.drop)}
               if self.drop else {}),
            **({"features": [written(one) for one in self.features]} if self.features else {}),
        }  # fmt: skip

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """What `to_json` wrote, among other fields.

        Raises
        ------
        InvalidInput
            If a field cannot be understood.
        """
        features = content.get("features", [])
        if not isinstance(features, list) or not all(isinstance(one, str) for one in features):
            raise InvalidInput("The field 'features' must be a list of texts.")
        missing, drop = content.get("missing", "drop"), content.get("drop")
        return cls(missing, drop, tuple(map(parsed, features)))


def _own_drop(drop: Drop) -> Drop:
    """A copy in plain classes: a base level is asked for in every block of rows."""
    if isinstance(drop, Mapping):
        return {plain(name): plain(level) for name, level in drop.items()}
    return None if drop is None else "first"


def _own(feature: Any) -> Feature:
    """A copy of one of our features, read now, or a plain name."""
    if isinstance(feature, str):
        return str.__str__(feature)
    if not any(type(feature) is kind for kind in (Bins, Spline, Log, Cross)):
        raise InvalidInput(
            "features takes names of columns and what privtail.features makes, got "
            f"{told(feature)}. A function of your own would run on private rows. Compute its "
            "column before the fit, from one row at a time."
        )
    copy: Feature = replace(feature)
    return copy


PLAIN = Encoding()


@dataclass(frozen=True)
class _Builder:
    """Turns declarations into parts."""

    encoding: Encoding
    columns: tuple[str, ...]
    categories: Mapping[str, Sequence[Label]]

    @property
    def _indicator(self) -> bool:
        return self.encoding.missing == "indicator"

    def design(self) -> Design:
        """All parts, in the order of the columns; crosses come last."""
        features = self.encoding.features
        for one in features:
            for name in (one,) if isinstance(one, str) else one.columns:
                self._require(name)
        self._require_bases()
        parts: list[Part] = []
        for name in self.columns:
            own = [f for f in features if isinstance(f, OfOneColumn) and f.column == name]
            if not own or name in features:
                parts.append(self._part(name))
            parts += map(self._part, own)
            if self._indicator and name not in self.categories:
                parts.append(Part(Gap(name), (f"{name}=missing",), bounded=True))
        parts += [self._part(one) for one in features if isinstance(one, Cross)]
        design = Design(self.columns, tuple(parts), self._indicator)
        twice = [name for name, count in Counter(design.names).items() if count > 1]
        if twice:
            raise InvalidInput(
                f"Two features are called {twice[0]!r}. Rename a column, or declare each "
                "feature once, with one list of edges or knots for a column."
            )
        if not design.names:
            raise InvalidInput(
                "No feature is left beside the base levels. Add one, or leave drop out."
            )
        return design

    def _part(self, feature: Feature) -> Part:
        drops = self.encoding.drop == "first"
        if isinstance(feature, Cross):
            return self._product(self._part(feature.left), self._part(feature.right))
        if isinstance(feature, str) and feature in self.categories:
            values = tuple(self.categories[feature])
            names = tuple(f"{feature}={value}" for value in values)
            return Part(Levels(feature, values), names, self._base(feature, values), bounded=True)
        if isinstance(feature, str):
            return Part(Cell(feature), (feature,), optional=self._indicator)
        if feature.column in self.categories:
            raise InvalidInput(
                f"{feature} is a function of a number, and {feature.column!r} has declared "
                "categories. Leave out one of the two."
            )
        if isinstance(feature, Log):
            return Part(feature, feature.levels, optional=self._indicator)
        base = 0 if drops and isinstance(feature, Bins) else None
        return Part(feature, feature.levels, base, bounded=True)

    @staticmethod
    def _product(left: Part, right: Part) -> Part:
        names = (":".join(pair) for pair in itertools.product(left.names, right.names))
        return Part(
            Product(left, right),
            tuple(names),
            bounded=left.bounded and right.bounded,
            optional=left.optional or right.optional,
        )

    def _base(self, name: str, values: tuple[Label, ...]) -> int | None:
        drop = self.encoding.drop
        if drop is None or isinstance(drop, str):
            return None if drop is None else 0
        if name not in drop:
            return None
        level = drop[name]
        same = [k for k, value in enumerate(values) if value == level or str(value) == str(level)]
        if not same:
            hint = guess(str(level), map(str, values))
            raise InvalidInput(
                f"The base level {level!r} of column {name!r} must be one of its declared "
                f"categories.{hint}"
            )
        return same[0]

    def _require(self, name: str) -> None:
        if name not in self.columns:
            hint = guess(name, self.columns)
            call = re.fullmatch(r"(\w+)\((\w+)(.*)\)", name)
            if call is not None:
                hint = (
                    f" In Python write {call[1]}({call[2]!r}{call[3]}) as a call, without quotes."
                )
            raise InvalidInput(
                f"Features are declared of a missing column: {name!r}.{hint} Use a name that "
                "the data have."
            )

    def _require_bases(self) -> None:
        drop = self.encoding.drop
        for name in drop if isinstance(drop, Mapping) else ():
            self._require(name)
            if name not in self.categories:
                raise InvalidInput(
                    f"A base level is declared for column {name!r}, which has no declared "
                    "categories. Declare them."
                )
