"""The statement of a fit: what it promises, and the releases that it made."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from privtail.errors import InvalidInput, PrivtailError
from privtail.spelling import printable
from privtail.trusted.accountants import Cost, cost
from privtail.trusted.budget import NEIGHBOURS, Neighbours, protected
from privtail.trusted.events import (
    INTEGER,
    Plan,
    plan_to_json,
)

if TYPE_CHECKING:
    from privtail.trusted.curator import Curator


from privtail.statement.page import (
    cost_shown,
    hanging,
    html_cells,
    relative_cost,
    rounded,
    shown,
    table_row,
)
from privtail.statement.reading import (
    as_integer,
    as_number,
    brief,
    from_number,
    read_plan,
    require_line,
    require_type,
    to_number,
    wrong_field,
)
from privtail.statement.sense import TOLERANCE, nonsense

Noise = Literal["exact", "simulated", "none"]
NOISES: dict[str, str] = {
    "exact": "exact: {}; randomness from the operating system",
    "simulated": "simulated: a seeded sampler, for experiments; it protects nobody",
    "none": "none",
}
OUTSIDE = (
    "Anything computed from several rows beforehand: a scaler, an imputer, a choice of columns.",
    "Leaving out rows by what they hold: the number of rows is public.",
    "Scores, plots and selections computed from the rows; settings chosen by looking at them.",
    "Refusals: the error of a malformed file, and with invalid='raise' that of a bad row.",
    "Running time and memory.",
    "Other releases from the same rows: their costs add to this one (see the ledger).",
)
FORMAT, VERSION = "privtail-statement", 1


@functools.cache
def installed_versions() -> tuple[tuple[str, str], ...]:
    """Versions of what decides the numbers; what is not installed is left out."""
    found = [("python", platform.python_version())]
    for name in ("privtail", "numpy", "scipy", "numba", "mpmath", "opendp", "dp-accounting"):
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)


def unkept(*statements: Statement) -> tuple[str, ...]:
    """What statements say where nothing, or too much, was promised; each text once."""
    return tuple(dict.fromkeys(one.headline for one in statements if not one.private))


def state(curator: Curator, notes: Sequence[str] = ()) -> Statement:
    """The statement of a fit, from the public side of its curator."""
    return Statement(
        epsilon=curator.budget.epsilon,
        delta=curator.budget.delta,
        n=curator.problem.n,
        plan=curator.plan,
        neighbours=curator.budget.neighbours,
        noise=curator.noise,
        seeded_public_choices=curator.seeded,
        label=curator.label,
        max_rows=curator.max_rows,
        ledger=curator.charged,
        assumptions=curator.assumptions,
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Statement:
    """A privacy promise, and all that is needed to recompute its cost.

    Parameters
    ----------
    epsilon : float
        The promised epsilon; an infinite one promises nothing.
    delta : float
        The promised delta.
    n : int
        Public number of records.
    plan : tuple of Round
        The rounds whose events were released.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Relation of the promise.
    noise : {"exact", "simulated", "none"}, default="exact"
        What was added.
    seeded_public_choices : bool, default=False
        Whether ``random_state`` fixed the deals into blocks and parts.
    label : str, default="fit"
        What was fitted.
    max_rows : int or None, default=None
        How many rows of one person count, at most; None protects one row.
    ledger : str, default=""
        Entry of the ledger that was charged, with its names; empty if there was none.
    assumptions : tuple of str, default=()
        Sentences on which the promise rests, beyond the code itself.
    outside : tuple of str, default=OUTSIDE
        Sentences on what it does not cover.
    notes : tuple of str, default=()
        Sentences about the model, made of what was released.
    versions : tuple of (str, str), default=those that are installed
        Packages and their versions.

    Raises
    ------
    InvalidInput
        If a field has the wrong type or lies outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_mean
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=2_000)
    >>> statement = private_mean(x, epsilon=1.0).privacy_
    >>> statement.private, statement.unit
    (True, 'one row, not several of one person')
    """

    epsilon: float
    delta: float
    n: int
    plan: Plan
    neighbours: Neighbours = "replace_one"
    noise: Noise = "exact"
    seeded_public_choices: bool = False
    label: str = "fit"
    max_rows: int | None = None
    ledger: str = ""
    assumptions: tuple[str, ...] = ()
    outside: tuple[str, ...] = OUTSIDE
    notes: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = field(default_factory=installed_versions)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = as_number(name, getattr(self, name))
            if not value >= 0:
                raise wrong_field(name, "a number that is not negative", value)
            object.__setattr__(self, name, value)
        if self.delta >= 1:
            raise wrong_field("delta", "below 1", self.delta)
        if as_integer("n", self.n) < 1:
            raise wrong_field("n", "a positive integer", self.n)
        if self.neighbours not in NEIGHBOURS:
            raise wrong_field("neighbours", f"one of {NEIGHBOURS}", self.neighbours)
        if self.noise not in tuple(NOISES):
            raise wrong_field("noise", f"one of {tuple(NOISES)}", self.noise)
        require_type(bool, "seeded_public_choices", self.seeded_public_choices)
        pairs = [text for pair in self.versions for text in pair]
        if self.max_rows is not None and as_integer("max_rows", self.max_rows) < 1:
            raise wrong_field("max_rows", "a positive integer", self.max_rows)
        for text in (
            self.label,
            self.ledger,
            *self.assumptions,
            *self.outside,
            *self.notes,
            *pairs,
        ):
            require_line("every text", text)

    @property
    def unit(self) -> str:
        """What is protected: one row, or one person."""
        return protected(self.max_rows)

    # ---------------------------------------------------------------- recomputed

    @functools.cached_property
    def cost(self) -> Cost:
        """Cost of the plan, recomputed from its releases; InvalidInput if they make no sense."""
        for problem in nonsense(self.plan):
            raise InvalidInput(f"The cost of this statement cannot be recomputed. {problem}")
        return cost(self.plan, self.neighbours)

    @functools.cached_property
    def spent(self) -> float:
        """Epsilon at ``delta`` that the releases cost; infinite without exact noise."""
        return self.cost.epsilon(self.delta) if self.noise == "exact" else math.inf

    @property
    def mu(self) -> float | None:
        """Gaussian-DP parameter of the plan, if it has one; it holds but for ``slack``."""
        return self.cost.mu

    @property
    def rho(self) -> float | None:
        """Parameter of zCDP of the plan, if it has one; it holds but for ``slack``."""
        return self.cost.rho

    @property
    def slack(self) -> float:
        """Probability to add to delta where ``mu`` or ``rho`` is composed (label discovery)."""
        return self.cost.slack

    @property
    def accountant(self) -> str:
        """The theorem that gives `spent`."""
        return self.cost.theorem(self.delta)

    @property
    def private(self) -> bool:
        """Whether the promise is finite and the releases keep it."""
        promised = math.isfinite(self.epsilon) and self.noise == "exact"
        return promised and self.spent <= self.epsilon * (1 + TOLERANCE)

    @property
    def headline(self) -> str:
        """The one line that must be right."""
        if self.noise == "simulated":
            return "NOT PRIVATE: simulated noise"
        if math.isinf(self.epsilon) or self.noise == "none":
            return "NOT PRIVATE: epsilon is infinite"
        if not self.private:
            return (
                f"NOT PRIVATE AS CLAIMED: ε = {shown(self.epsilon)} was promised, the releases "
                f"cost {cost_shown(self.spent)}"
            )
        return (
            f"(ε = {shown(self.epsilon)}, δ = {shown(self.delta)})-differentially private for "
            f"{self.unit}, {self.neighbours.replace('_', '-')} neighbours"
        )

    # ---------------------------------------------------------------- written

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `from_json` restores an equal statement from it."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "headline": self.headline,
            "label": self.label,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "neighbours": self.neighbours,
            "epsilon": to_number(self.epsilon),
            "delta": self.delta,
            "n": self.n,
            "noise": self.noise,
            "seeded_public_choices": self.seeded_public_choices,
            "ledger": self.ledger,
            "spent": self.recomputed(),
            "plan": plan_to_json(self.plan),
            "assumptions": list(self.assumptions),
            "outside": list(self.outside),
            "notes": list(self.notes),
            "versions": dict(self.versions),
        }

    def recomputed(self) -> dict[str, Any]:
        """The cost that follows from the releases, by name, as the file says it."""
        numbers = {"epsilon": self.spent, "mu": self.mu, "rho": self.rho}
        numbers |= {"slack": self.slack} if self.slack else {}
        return {k: to_number(v) for k, v in numbers.items()} | {"accountant": self.accountant}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Statement:
        """Read what `to_json` wrote, without believing its computed numbers.

        Parameters
        ----------
        content : mapping
            A JSON object.

        Returns
        -------
        Statement

        Raises
        ------
        InvalidInput
            If this is not a statement of this version, or a field is missing or has a wrong type.
        """
        require_type(Mapping, "the whole", content)
        if content.get("format") != FORMAT:
            raise InvalidInput(f"This is not a privacy statement: its format must be {FORMAT!r}.")
        if content.get("version") != VERSION:
            raise InvalidInput(
                f"This statement has version {brief(content.get('version'))}, and this privtail "
                f"reads version {VERSION}. Update privtail."
            )
        missing = [name for name in (*_SCALARS, *_LISTS) if name not in content]
        if missing:
            raise InvalidInput(
                f"The statement has no field {missing[0]!r}. Take the file as privtail wrote it."
            )
        values: dict[str, Any] = {name: content[name] for name in _SCALARS}
        values["epsilon"] = from_number(values["epsilon"])
        require_line("unit", content.get("unit"))
        for name in ("assumptions", "outside"):
            values[name] = tuple(require_type(list, name, content[name]))
        values["notes"] = tuple(require_type(list, "notes", content.get("notes", [])))
        values["versions"] = tuple(require_type(dict, "versions", content["versions"]).items())
        values["plan"] = read_plan(content["plan"])
        return cls(**values)

    # ---------------------------------------------------------------- shown

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What the page says above the table, as (name, text)."""
        parameters = [("μ", self.mu), ("ρ", self.rho)]
        but_for = f" but for {rounded(self.slack)}" if self.slack else ""
        known = [
            f"{name} = {cost_shown(value)}{but_for}"
            for name, value in parameters
            if value is not None
        ]
        spent = f"ε = {cost_shown(self.spent)} at δ = {shown(self.delta)}, by {self.accountant}"
        if self.noise == "simulated":
            would = cost_shown(self.cost.epsilon(self.delta))
            spent = f"nothing is protected; exact noise would cost ε = {would}"
        if self.noise == "none":
            spent, known = "nothing is protected", []
        promised = (
            ("protects", self.unit),
            ("compares", self._compared()),
            ("promised", f"ε = {shown(self.epsilon)}, δ = {shown(self.delta)}"),
        )
        choices = "drawn from random_state" if self.seeded_public_choices else "drawn anew"
        return (
            ("computed", self.label),
            *(promised if self.private else ()),
            ("rows", f"n = {self.n} (public)"),
            ("spent", "; ".join([spent, *known])),
            ("ledger", self.ledger or "none: no ledger adds this cost to that of other releases"),
            ("noise", NOISES[self.noise].format(self._samplers())),
            ("public choices", f"{choices}; privacy does not depend on them"),
        )

    def _compared(self) -> str:
        whose = "one row" if self.max_rows is None else "the rows of one person"
        if self.neighbours == "replace_one":
            return f"two tables of the same size that differ in {whose}"
        return f"a table, and the same with {whose} emptied; the size stays the same"

    def _samplers(self) -> str:
        """Whose noise the plan holds; the trials of a search may hold either."""
        laws = {e.law for r in self.plan for e in r.events}
        own = {True, False} if "best_trial" in laws else {law not in INTEGER for law in laws}
        said = {True: "continuous noise, correctly rounded", False: "OpenDP's samplers"}
        return " and ".join(said[law] for law in sorted(own or {True}))

    def table(self) -> tuple[tuple[str, ...], ...]:
        """The releases, under a header. ``share`` is a guide to where the budget went.

        ``stage`` says what a release is for, where the algorithm names its stages. ``size`` is how
        many numbers one release holds. Noise is shown as its standard deviation: in released units,
        over the most that one row adds, over the most that replacing one changes.
        Where it follows a smooth sensitivity S, it is in units of S, which is private.
        """
        rows = [(r, e) for r in self.plan for e in r.events]
        weights = [relative_cost(r, e, self.neighbours) for r, e in rows]
        total = math.fsum(weights)
        shares = [
            f"{w / total:.1%}" if 0 < total < math.inf else "?" if math.isinf(w) else "0.0%"
            for w in weights
        ]
        head = ("stage", "question", "law", "times", "sampling", "size", "noise std")
        return (
            (*head, "std/rad.", "std/diam.", "share"),
            *(table_row(r, e, share) for (r, e), share in zip(rows, shares, strict=True)),
        )

    def to_text(self) -> str:
        """The whole statement as a readable page."""
        width = max(len(name) for name, _ in self.facts())
        lines = [self.headline, ""]
        lines += [hanging(f"{name:<{width}}  ", text) for name, text in self.facts()]
        lines += ["", "releases (Gaussian noise on all rows, unless stated otherwise)"]
        lines += self._releases()
        for title, sentences in self._lists():
            lines += ["", title, *(hanging("  - ", sentence) for sentence in sentences)]
        versions = ", ".join(" ".join(pair) for pair in self.versions)
        return "\n".join([*lines, "", hanging("versions  ", versions)])

    def _releases(self) -> Iterable[str]:
        """The table in 80 columns: stages, unusual laws and samplings have lines of their own."""
        table = [(row[0], (row[1], row[3], *row[5:]), (row[2], row[4])) for row in self.table()]
        rows = [row for _, row, _ in table]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        before = "stage"
        for stage, row, said in table:
            if stage not in (before, "-"):
                yield f"  {stage}:"
            before = stage
            indent = "  " if stage in ("stage", "-") else "    "
            yield indent + "  ".join(map(str.ljust, row, widths)).rstrip()
            usual = (("law", "gaussian"), ("sampling", "everyone"))
            unusual = [
                f"{a}: {x}" for (a, b), x in zip(usual, said, strict=True) if x not in (a, b)
            ]
            if unusual:
                yield f"    {'; '.join(unusual)}"

    def _lists(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        if self.notes:
            yield "notes", self.notes
        if self.private:
            if self.assumptions:
                yield "assumptions", self.assumptions
            yield "outside the promise", self.outside

    def __str__(self) -> str:
        return printable(self.to_text())

    def __repr__(self) -> str:
        try:
            return printable(f"<Statement: {self.headline}>")
        except PrivtailError:
            return "<Statement: NOT VERIFIED, the cost cannot be recomputed>"

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _repr_html_(self) -> str:
        head, *rows = self.table()
        facts = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in self.facts()
        )
        lists = "".join(
            f"<p>{escape(title)}</p><ul>{html_cells(sentences, 'li')}</ul>"
            for title, sentences in self._lists()
        )
        body = "".join(f"<tr>{html_cells(row, 'td')}</tr>" for row in rows)
        return (
            f"<div><p><strong>{escape(self.headline)}</strong></p><table>{facts}</table>"
            f"<table><thead><tr>{html_cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
            f"{lists}</div>"
        )


_SCALARS = (
    "epsilon",
    "delta",
    "n",
    "neighbours",
    "noise",
    "seeded_public_choices",
    "label",
    "max_rows",
    "ledger",
)
_LISTS = ("plan", "assumptions", "outside", "versions")
