"""Options that several verbs share, in groups: a verb takes each group as one argument."""

from __future__ import annotations

import functools
import glob
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from privtail.schema.dialect import Dialect
    from privtail.trusted.budget import Budget
    from privtail.trusted.files import TableFile
    from privtail.trusted.ledger import Ledger


def file_option(text: str) -> Any:
    """An option that names a file; the help says ``text``."""
    return typer.Option(metavar="FILE", show_default=False, help=text)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        show_default=False,
        help="A Parquet or Arrow file, or CSV with a header, also .csv.gz; a folder of these, or a "
        "pattern in quotes, 'claims/*.parquet', here or at a URL such as s3://bucket/claims/. "
        "They may be larger than memory.",
    ),
]

Numeric = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        show_default=False,
        help="Read a column as numbers. A row without a number does not count. Can be repeated.",
    ),
]

Confidence = Annotated[float, typer.Option(help="Confidence of the intervals, between 0 and 1.")]

Scratch = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default="the folder for temporary files, if it has room",
        help="Folder for a copy of the decoded rows: a file without a name, which ends with the "
        "command. none: keep no copy, and decode the data in every pass.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Written:
    """How files are written, and numbers in text."""

    decimal: Annotated[
        str | None,
        typer.Option(metavar="MARK", show_default=".", help="Decimal mark, such as , for 1,5."),
    ] = None
    thousands: Annotated[
        str | None,
        typer.Option(
            metavar="MARK", show_default=False, help="Mark of thousands, such as . for 1.234,5."
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            metavar="MARK",
            show_default=", ; or tab, by the header",
            help="Separator of the cells of a CSV.",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="utf-8",
            help="Encoding of a CSV, such as utf-16 or latin-1.",
        ),
    ] = None
    comment: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            show_default=False,
            help="How comment lines begin. Above the header they are skipped; below it they are "
            "rows without values.",
        ),
    ] = None
    partition_columns: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-column",
            metavar="COLUMN",
            show_default=False,
            help="Read a column from folders named COLUMN=...: their names are public then. "
            "Can be repeated.",
        ),
    ] = None

    def dialect(self, schema: Mapping[str, Any] | None = None) -> Dialect:
        """The same put above what a schema says, checked; raises InvalidInput."""
        from privtail.schema.dialect import Dialect

        given = {name: value for name, value in asdict(self).items() if value is not None}
        if given.get("separator") in ("\\t", "tab"):
            given["separator"] = "\t"
        return Dialect(**{**(schema or {}), **given})


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What the release promises."""

    epsilon: Annotated[
        float,
        typer.Option(
            show_default=False,
            help="Privacy budget, > 0; up to 1 is strong, above 10 weak, inf no privacy.",
        ),
    ]
    delta: Annotated[
        float,
        typer.Option(
            help="Slack of the promise: added to the bound that ε sets. Keep it well below 1/rows."
        ),
    ] = 1e-6
    neighbours: Annotated[
        Literal["replace_one", "zero_out"],
        typer.Option(
            help="Which two tables the promise compares: one row is replaced by any other, or one "
            "row is emptied and counts for nothing."
        ),
    ] = "replace_one"
    ledger: Annotated[
        Path | None,
        file_option(
            "Ledger to charge; privtail budget starts one, and privtail plan charges nothing. "
            "Without it nothing adds this cost to that of other commands."
        ),
    ] = None

    analyst: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", show_default=False, help="Name of the analyst, for the ledger."
        ),
    ] = None
    purpose: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", show_default=False, help="Purpose of this use, for the ledger."
        ),
    ] = None
    data_set: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="Name of the data set. The ledger of another data set refuses it.",
        ),
    ] = None

    @property
    def budget(self) -> Budget:
        """Epsilon and delta, checked; raises InvalidInput."""
        from privtail.trusted.budget import Budget

        return Budget(self.epsilon, self.delta, self.neighbours)

    @property
    def arguments(self) -> dict[str, Any]:
        """The budget, as an estimator takes it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "neighbours": self.neighbours}

    @property
    def account(self) -> Ledger | None:
        """The ledger, if one was named; raises InvalidInput if it cannot be used."""
        from privtail.ledgers import existing

        names = {"purpose": self.purpose, "data_set": self.data_set}
        if self.ledger is not None:
            return existing(self.ledger).by(self.analyst, **names)
        if self.analyst or any(names.values()):
            raise InvalidInput("--analyst, --purpose and --data-set go with --ledger FILE.")
        return None


@dataclass(frozen=True, kw_only=True)
class Chance:
    """Where noise and public choices come from."""

    noise: Annotated[
        Literal["exact", "simulated"],
        typer.Option(help="Simulated noise is fast, seeded and NOT PRIVATE: for rehearsals."),
    ] = "exact"
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default=False,
            help="Seed of public choices and of simulated noise. Exact noise has no seed.",
        ),
    ] = None

    @property
    def arguments(self) -> dict[str, Any]:
        """The same, as an estimator takes it."""
        return {"noise": self.noise, "random_state": self.seed}


@dataclass(frozen=True, kw_only=True)
class Persons:
    """Whom the promise protects, where a person has several rows."""

    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="Protect persons, not rows: this column says to which person a row belongs.",
        ),
    ] = None
    max_rows: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            show_default=False,
            help="How many rows of one person count, at most; with --groups. Choose it so that few "
            "rows are left out.",
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.groups is None) != (self.max_rows is None):
            raise InvalidInput(
                "--groups COLUMN and --max-rows M go together: the column that names the person "
                "of each row, and how many rows of one person count."
            )

    def of(self, table: TableFile) -> dict[str, Any]:
        """Whose the rows of this file are: arguments for the core, none without --groups."""
        if self.groups is None:
            return {}
        from privtail.trusted.tables import person_ids

        return {"groups": person_ids(table, self.groups), "max_rows": self.max_rows}


@dataclass(frozen=True, kw_only=True)
class Output:
    """Whether a file that exists may be replaced."""

    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False

    def require_free(self, file: Path | None, *others: Path | str | None) -> None:
        """Refuse a file that cannot be written, or exists; one that the command uses, by force too.

        None is no file. A folder is used with what is in it.
        """
        from privtail.written import require_writable

        if file is None:
            return
        for name in others:
            if name is None:
                continue
            other = Path(str(name).removeprefix("file://"))
            matches = glob.glob(str(other), recursive=True)  # noqa: PTH207  as privtail.open_table
            if file.resolve() in [path.resolve() for path in (other, *map(Path, matches))]:
                raise InvalidInput(f"This command uses {file} already. Write to another name.")
            if other.is_dir() and file.resolve().is_relative_to(other.resolve()):
                raise InvalidInput(
                    f"This command reads all files in {other}, and {file} would become one of "
                    "them. Write to another folder."
                )
        require_writable(file, overwrite=self.force)


def spelled_out(verb: Callable[..., None]) -> Callable[..., None]:
    """``verb`` with each argument that is a group replaced by the options of that group."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(verb).parameters.items():
        if name in groups:
            options += _options(groups[name])
        else:
            options.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def run(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        verb(**given)

    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=hints[field.name],
        )


def promised(budget: Budget, noise: str) -> str:
    """One line that says what is about to be promised."""
    relation = budget.neighbours.replace("_", "-")
    if noise == "simulated" or not budget.private:
        return "NOT PRIVATE: " + ("simulated noise" if budget.private else "epsilon is infinite")
    return f"ε = {budget.epsilon:g}, δ = {budget.delta:g}, {relation} neighbours, exact noise"


def advice(budget: Budget, rows: int) -> str | None:
    """A warning from public numbers."""
    if not budget.private or budget.delta <= 1 / rows:
        return None
    from privtail.promised import below_one_of

    return (
        f"Warning. δ = {budget.delta:g} is above 1/rows = {1 / rows:.2g}: so large a δ would also "
        "allow publishing one random row. A stronger promise costs little: "
        f"--delta {below_one_of(rows):g}"
    )
