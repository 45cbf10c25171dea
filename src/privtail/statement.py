"""What was promised and what was spent, on one page that anybody can recompute.

A statement holds the promise and the events of its plan. Every other number (spent epsilon, mu,
rho, shares) is computed from the events when it is asked for; `verify` does the same with a file,
believing nothing in it.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import os
import platform
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from privtail.errors import InvalidInput, PrivtailError
from privtail.spelling import printable
from privtail.trusted.accountants import Cost, cost
from privtail.trusted.accounting.smooth import lognormal_rho
from privtail.trusted.budget import NEIGHBOURS, ROW, Neighbours, protected
from privtail.trusted.events import (
    LAWS,
    SMOOTH,
    Event,
    Plan,
    Round,
    plan_from_json,
    plan_to_json,
)
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import DisjointParts, PoissonBatches, Sampling

if TYPE_CHECKING:
    from privtail.trusted.curator import Curator

Noise = Literal["exact", "simulated", "none"]
_NOISES: dict[str, str] = {
    "exact": "exact: OpenDP's samplers, randomness of the operating system",
    "simulated": "simulated: a seeded sampler, for experiments; it protects nobody",
    "none": "none",
}

OUTSIDE = (
    "Anything computed from the records before the fit: scaling, imputation, outlier removal.",
    "Scores, plots and selections computed from the records; settings chosen by looking at them.",
    "Refusals: the error of a malformed file, and with invalid='raise' that of a bad row.",
    "Running time and memory.",
    "Other releases from the same records: their costs add to this one (see the ledger).",
)

_FORMAT, _VERSION = "privtail-statement", 1
# A claim may lie this far below its recomputation with another version of the libraries.
_TOLERANCE = 1e-9
_MOST = 2**40


def installed_versions() -> tuple[tuple[str, str], ...]:
    """Versions of what decides the numbers; what is not installed is left out."""
    found = [("python", platform.python_version())]
    for name in ("privtail", "numpy", "opendp", "dp-accounting"):
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(found)


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
        assumptions=curator.assumptions,
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Statement:
    """A privacy promise, and all that is needed to recompute its cost.

    Parameters
    ----------
    epsilon, delta : the promise; an infinite epsilon promises nothing.
    n : public number of records.
    plan : the rounds whose events were released.
    neighbours : relation of the promise.
    noise : ``"exact"``, ``"simulated"`` or ``"none"``.
    seeded_public_choices : whether ``random_state`` fixed the deals into blocks and parts.
    label : what was fitted.
    max_rows : how many rows of one person count; None protects one row.
    assumptions : sentences on which the promise rests, beyond the code itself.
    outside : sentences on what it does not cover.
    notes : sentences about the model, made of what was released.
    versions : (package, version) pairs.

    Raises
    ------
    InvalidInput
        If a field has the wrong type or lies outside its range.
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
    assumptions: tuple[str, ...] = ()
    outside: tuple[str, ...] = OUTSIDE
    notes: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = field(default_factory=installed_versions)

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = _number(name, getattr(self, name))
            if not value >= 0:
                raise _field(name, "a number that is not negative", value)
            object.__setattr__(self, name, value)
        if self.delta >= 1:
            raise _field("delta", "below 1", self.delta)
        if _integer("n", self.n) < 1:
            raise _field("n", "a positive integer", self.n)
        if self.neighbours not in NEIGHBOURS:
            raise _field("neighbours", f"one of {NEIGHBOURS}", self.neighbours)
        if self.noise not in tuple(_NOISES):
            raise _field("noise", f"one of {tuple(_NOISES)}", self.noise)
        _require(bool, "seeded_public_choices", self.seeded_public_choices)
        pairs = [text for pair in self.versions for text in pair]
        if self.max_rows is not None and _integer("max_rows", self.max_rows) < 1:
            raise _field("max_rows", "a positive integer", self.max_rows)
        for text in (self.label, *self.assumptions, *self.outside, *self.notes, *pairs):
            _require_line("every text", text)

    @property
    def unit(self) -> str:
        """What is protected: one row, or one person."""
        return protected(self.max_rows)

    # ---------------------------------------------------------------- recomputed

    @functools.cached_property
    def cost(self) -> Cost:
        """Cost of the plan, recomputed from its events; InvalidInput if they make no sense."""
        for problem in nonsense(self.plan):
            raise InvalidInput(f"The cost of this statement cannot be recomputed. {problem}")
        return cost(self.plan, self.neighbours)

    @functools.cached_property
    def spent(self) -> float:
        """Epsilon at ``delta`` that the events cost; infinite without exact noise."""
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
        """Whether the promise is finite and the events keep it."""
        promised = math.isfinite(self.epsilon) and self.noise == "exact"
        return promised and self.spent <= self.epsilon * (1 + _TOLERANCE)

    @property
    def headline(self) -> str:
        """The one line that must be right."""
        if self.noise == "simulated":
            return "NOT PRIVATE: simulated noise"
        if math.isinf(self.epsilon) or self.noise == "none":
            return "NOT PRIVATE: epsilon is infinite"
        if not self.private:
            return (
                f"NOT PRIVATE AS CLAIMED: ε = {_shown(self.epsilon)} was promised, the releases "
                f"cost {_rounded(self.spent)}"
            )
        return (
            f"(ε = {_shown(self.epsilon)}, δ = {_shown(self.delta)})-differentially private for "
            f"{self.unit}, {self.neighbours.replace('_', '-')} neighbours"
        )

    # ---------------------------------------------------------------- written

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `from_json` restores an equal statement from it."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "headline": self.headline,
            "label": self.label,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "neighbours": self.neighbours,
            "epsilon": _to_number(self.epsilon),
            "delta": self.delta,
            "n": self.n,
            "noise": self.noise,
            "seeded_public_choices": self.seeded_public_choices,
            "spent": self.recomputed(),
            "plan": plan_to_json(self.plan),
            "assumptions": list(self.assumptions),
            "outside": list(self.outside),
            "notes": list(self.notes),
            "versions": dict(self.versions),
        }

    def recomputed(self) -> dict[str, Any]:
        """What the file says of its own cost."""
        numbers = {"epsilon": self.spent, "mu": self.mu, "rho": self.rho}
        numbers |= {"slack": self.slack} if self.slack else {}
        return {k: _to_number(v) for k, v in numbers.items()} | {"accountant": self.accountant}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Statement:
        """Read what `to_json` wrote, without believing its computed numbers.

        Raises
        ------
        InvalidInput
            If this is not a statement of this version, or a field is missing or has a wrong type.
        """
        _require(Mapping, "the whole", content)
        if content.get("format") != _FORMAT:
            raise InvalidInput(f"This is not a privacy statement: its format is not {_FORMAT!r}.")
        if content.get("version") != _VERSION:
            raise InvalidInput(
                f"This statement has version {_brief(content.get('version'))}, and this privtail "
                f"reads version {_VERSION}. Update privtail."
            )
        missing = [name for name in (*_SCALARS, *_LISTS) if name not in content]
        if missing:
            raise InvalidInput(f"The statement has no field {missing[0]!r}.")
        values: dict[str, Any] = {name: content[name] for name in _SCALARS}
        values["epsilon"] = _from_number(values["epsilon"])
        _require_line("unit", content.get("unit"))
        values["max_rows"] = _rows_protected(content)
        for name in ("assumptions", "outside"):
            values[name] = tuple(_require(list, name, content[name]))
        values["notes"] = tuple(_require(list, "notes", content.get("notes", [])))
        values["versions"] = tuple(_require(dict, "versions", content["versions"]).items())
        values["plan"] = _read_plan(content["plan"])
        return cls(**values)

    # ---------------------------------------------------------------- shown

    def facts(self) -> tuple[tuple[str, str], ...]:
        """What the page says above the table, as (name, text)."""
        relation = {
            "replace_one": f"{self.unit}: replaced by any other, n known",
            "zero_out": f"{self.unit}: emptied or filled (add or remove), n known",
        }[self.neighbours]
        parameters = [("μ", self.mu), ("ρ", self.rho)]
        but_for = f" but for {_rounded(self.slack)}" if self.slack else ""
        known = [
            f"{name} = {_rounded(value)}{but_for}"
            for name, value in parameters
            if value is not None
        ]
        spent = f"ε = {_rounded(self.spent)} at δ = {_shown(self.delta)}"
        if self.noise == "simulated":
            would = _rounded(self.cost.epsilon(self.delta))
            spent = f"nothing is protected; exact noise would cost ε = {would}"
        choices = "seeded (they repeat; they protect nobody and need not)"
        return (
            ("fitted", self.label),
            ("protects", relation),
            ("records", f"n = {self.n} (public)"),
            ("promised", f"ε = {_shown(self.epsilon)}, δ = {_shown(self.delta)}"),
            ("spent", "; ".join([spent, *known, self.accountant])),
            ("noise", _NOISES[self.noise] + self._rounding()),
            ("public choices", choices if self.seeded_public_choices else "fresh"),
        )

    def _rounding(self) -> str:
        smooth = any(e.law in SMOOTH for r in self.plan for e in r.events)
        return "; correctly rounded where its size is private" if smooth else ""

    def table(self) -> tuple[tuple[str, ...], ...]:
        """The releases, under a header. ``share`` is a guide to where the budget went.

        ``stage`` says what a release is for, where the algorithm names its stages. ``size`` is how
        many numbers one release holds. Noise is shown as its standard deviation: in released units,
        over the zero-out sensitivity (``z``), over the replace-one sensitivity.
        Where it follows a smooth sensitivity S, it is in units of S, which is private.
        """
        rows = [(r, e) for r in self.plan for e in r.events]
        weights = [_weight(r, e, self.neighbours) for r, e in rows]
        total = math.fsum(weights)
        shares = [
            f"{w / total:.1%}" if 0 < total < math.inf else "?" if math.isinf(w) else "0.0%"
            for w in weights
        ]
        head = ("stage", "question", "law", "times", "sampling", "size", "noise std")
        return (
            (*head, "z", "std/diam.", "share"),
            *(_row(r, e, share) for (r, e), share in zip(rows, shares, strict=True)),
        )

    def to_text(self) -> str:
        """The whole statement as a readable page."""
        width = max(len(name) for name, _ in self.facts())
        lines = [self.headline, ""]
        lines += [hanging(f"{name:<{width}}  ", text) for name, text in self.facts()]
        lines += ["", "releases (gaussian, of everyone, where nothing else is said)"]
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
            unusual = [x for x in said if x not in ("law", "sampling", "gaussian", "everyone")]
            if unusual:
                yield f"    {', '.join(unusual)}"

    def _lists(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        if self.notes:
            yield "notes", self.notes
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
            f"<p>{escape(title)}</p><ul>{_html_cells(sentences, 'li')}</ul>"
            for title, sentences in self._lists()
        )
        body = "".join(f"<tr>{_html_cells(row, 'td')}</tr>" for row in rows)
        return (
            f"<div><p><strong>{escape(self.headline)}</strong></p><table>{facts}</table>"
            f"<table><thead><tr>{_html_cells(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
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
)
_LISTS = ("plan", "assumptions", "outside", "versions")


# --- verification ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification:
    """The answer of `verify`; true only if the claim is private and was recomputed.

    Attributes
    ----------
    claimed : (epsilon, delta) of the file.
    recomputed : epsilon at that delta from the events alone; None if it cannot be computed.
    problems : sentences; empty if the promise holds.
    headline : what may be said of the model.
    """

    claimed: tuple[float, float]
    recomputed: float | None
    problems: tuple[str, ...]
    headline: str

    @property
    def ok(self) -> bool:
        """Whether the promise is differential privacy and the events keep it."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def to_text(self) -> str:
        """The verdict, both numbers, and every problem."""
        epsilon, delta = self.claimed
        again = "not computable" if self.recomputed is None else f"ε = {_rounded(self.recomputed)}"
        lines = [
            self.headline if self.ok else "NOT VERIFIED",
            f"claimed     ε = {_shown(epsilon)}, δ = {_shown(delta)}",
            f"recomputed  {again} from the events alone",
        ]
        return "\n".join([*lines, *(f"  - {problem}" for problem in self.problems)])

    def __str__(self) -> str:
        return printable(self.to_text())

    def __repr__(self) -> str:
        return printable(f"<Verification: {self.headline}>")


def verify(source: str | os.PathLike[str] | Mapping[str, Any] | Statement) -> Verification:
    """Recompute a statement's cost from its events and compare it with its claim.

    Parameters
    ----------
    source : a statement file, a model file with a ``"statement"``, the JSON object of either, or a
        `Statement`.

    Returns
    -------
    Verification
        Its ``problems`` tell what is wrong; a statement that promises no privacy is not ok either.
        Every sensitivity is derived anew from n, the unit and the parameters of its question.
        Whether the releases were really made with these events, and whether rows of a person were
        counted at all, no file can prove.

    Raises
    ------
    InvalidInput
        If this is no statement: not a file, not JSON, another format, missing or mistyped fields.
    """
    if not isinstance(source, str | os.PathLike | Mapping | Statement):
        raise _field("the source", "a Statement, a path or a JSON object", source)
    written: Mapping[str, Any] | None = None
    if isinstance(source, Statement):
        statement = source
    else:
        written = source if isinstance(source, Mapping) else _load(Path(source))
        if "statement" in written and written.get("format") != _FORMAT:
            written = written["statement"]
        statement = Statement.from_json(written)
    problems = list(nonsense(statement.plan))
    recomputed: float | None = None
    if not problems:
        try:
            recomputed = _finite(cost(statement.plan, statement.neighbours), statement.delta)
        except PrivtailError as error:
            problems.append(f"The cost cannot be recomputed: {error}")
        except Exception as error:  # noqa: BLE001  a hostile file must not reach a traceback
            problems.append(f"The cost cannot be recomputed ({type(error).__name__}).")
    if not any(nonsense(statement.plan)):
        problems += underived(statement)
    if recomputed is not None:
        problems += _broken(statement, recomputed)
        problems += [] if written is None else _edited(statement, written)
    return Verification(
        claimed=(statement.epsilon, statement.delta),
        recomputed=recomputed,
        problems=tuple(problems),
        headline=statement.headline if not problems else "NOT VERIFIED",
    )


def _broken(statement: Statement, recomputed: float) -> list[str]:
    """Why the promise of a statement does not hold."""
    problems = []
    if statement.noise == "simulated":
        problems.append("The noise was simulated with a seeded sampler: nothing is private.")
    elif statement.noise == "none" or math.isinf(statement.epsilon):
        problems.append("The fit was made without noise: nothing is private.")
    if not recomputed <= statement.epsilon * (1 + _TOLERANCE):
        problems.append(
            f"The claim is below the cost: ε = {statement.epsilon!r} is claimed at δ = "
            f"{statement.delta!r}, the events cost {recomputed!r}."
        )
    return problems


def _edited(statement: Statement, content: Mapping[str, Any]) -> list[str]:
    """Every number of a file that its events contradict."""
    problems = []
    if content.get("unit") != statement.unit:
        problems.append(f"The unit was edited; it must read {statement.unit!r}.")
    if content.get("headline") != statement.headline:
        problems.append(f"The headline was edited; it must read {statement.headline!r}.")
    written = content.get("spent")
    for name, value in statement.recomputed().items():
        unsaid = None if name == "slack" else math.nan  # version 1 once had none
        said = written.get(name, unsaid) if isinstance(written, Mapping) else math.nan
        if name != "accountant" and not _covers(said, value):
            problems.append(
                f"Edited number: spent {name} is {_brief(said)}, the events give {value!r}."
            )
    return problems


def _covers(said: object, value: object) -> bool:
    """Whether a written number is not below the recomputed one. None claims nothing."""
    if said is None:
        return True
    claim, truth = _from_number(said), _from_number(value)
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return False
    return isinstance(truth, float) and claim >= truth * (1 - 1e-6)


def nonsense(plan: Plan) -> Iterable[str]:
    """Sentences about events that no fit of privtail releases."""
    for i, r in enumerate(plan, 1):
        for j, event in enumerate(r.events, 1):
            yield from (f"Round {i}, release {j}: {what}." for what in _wrong(event))


def _wrong(event: Event) -> Iterable[str]:
    """What is wrong with one release."""
    if event.law not in LAWS:
        yield f"the law {event.law!r} is unknown"
    for name in ("scale", "radius", "diameter", "delta", "smoothness", "spread", "unit"):
        unclipped = name == "unit" and event.unit == math.inf and event.scale == 0
        if not (0 <= getattr(event, name) < math.inf or unclipped):
            yield f"{name} must be finite and not negative, not {getattr(event, name)!r}"
            return
    if event.radius == 0 or event.unit == 0:
        yield "radius and unit must be positive"
    elif not 1 - _TOLERANCE <= event.diameter / event.radius <= 2 + _TOLERANCE:
        yield f"diameter {event.diameter!r} must be one to two times radius {event.radius!r}"
    fails = event.law in ("gaussian_labels", "smooth_gaussian")
    if event.delta >= 1 or (event.scale and (event.delta > 0) != fails):
        yield f"delta {event.delta!r} does not fit the law {event.law!r}"
    if event.law not in SMOOTH and event.smoothness:
        yield f"the law {event.law!r} has no smoothness"
    if event.scale and (event.spread > 0) != (event.law == "laplace_lognormal"):
        yield f"spread {event.spread!r} does not fit the law {event.law!r}"
    if event.law in SMOOTH and not 1 <= event.radius == event.diameter:
        yield f"the law {event.law!r} has one radius and diameter, the rows of a unit"
    yield from _miscounted(event)


def _miscounted(event: Event) -> Iterable[str]:
    """What is wrong with the whole numbers of one release."""
    if event.trials < 1 or (event.law != "best_trial" and event.trials != 1):
        yield f"{event.trials} trials do not fit the law {event.law!r}"
    if event.coordinates < 1:
        yield f"coordinates must be at least 1, not {event.coordinates}"
    elif not 1 <= event.picks <= (event.coordinates if event.law == "noisy_max" else 1):
        yield f"{event.picks} picks of {event.coordinates} coordinates"


def underived(statement: Statement) -> Iterable[str]:
    """Sentences about events that do not follow from n, the unit, and their questions."""
    rows = 1 if statement.max_rows is None else statement.max_rows
    problem = Problem(n=statement.n, d=1, max_rows=rows)
    for i, r in enumerate(statement.plan, 1):
        expected = problem.n * r.sampling.rate if isinstance(r.sampling, PoissonBatches) else 1.0
        if not expected >= 1 - _TOLERANCE:
            yield f"Round {i}: a batch of {expected:.3g} of the n = {problem.n} records is empty."
        for j, event in enumerate(r.events, 1):
            yield from (
                f"Round {i}, release {j}: {what}." for what in _underived(problem, r, event, rows)
            )


def _underived(problem: Problem, r: Round, event: Event, rows: int) -> Iterable[str]:
    """What of one release does not follow."""
    if event.law in (*SMOOTH, "best_trial"):
        of_law = float(rows) if event.law == "laplace_lognormal" else 1.0
        if (event.radius, event.diameter) != (of_law, of_law):
            yield f"radius and diameter must be {of_law!r}"
        if event.law == "smooth_gaussian" and rows > 1:
            yield "sample and aggregate protects one row"
        return
    if not event.recipe:
        yield "it does not say how its sensitivity follows from the question, so nobody can check"
        return
    try:
        answer = problem.sampled(r.sampling).follow(event.recipe)
    except PrivtailError as error:
        yield f"its sensitivity cannot be derived: {str(error).rstrip('.')}"
        return
    norm = {"laplace": "l1", "noisy_max": "linf", "laplace_max": "linf"}.get(event.law, "l2")
    for name, said, true in (
        ("radius", event.radius, getattr(answer.radius, norm)),
        ("diameter", event.diameter, getattr(answer.diameter, norm)),
        ("unit", event.unit, answer.unit),
        ("coordinates", event.coordinates, answer.size),
        ("question", event.question, answer.question),
    ):
        if said != true:
            yield f"{name} {said!r} does not follow from the question, which gives {true!r}"
    if event.one_signed and not answer.one_signed:
        yield "one_signed does not follow from the question"


def _rows_protected(content: Mapping[str, Any]) -> int | None:
    """The stored number; of files that had none, that of the text."""
    if "max_rows" in content:
        rows = content["max_rows"]
        return None if rows is None else _integer("max_rows", rows)
    text = str(content["unit"])
    digits = "".join(c for c in text if c in "0123456789")[:9]
    return None if text == ROW else int(digits or 0)


def _finite(bill: Cost, delta: float) -> float:
    """Epsilon of a recomputed cost; an accountant that answers NaN has not answered."""
    epsilon = bill.epsilon(delta)
    if not epsilon >= 0:
        raise InvalidInput("the accountant gave no number.")
    return epsilon


def _load(path: Path) -> Mapping[str, Any]:
    try:
        # Only regular files: a pipe or a device may never end.
        data = path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    if data is None:
        raise InvalidInput(f"There is no file {path}.")
    try:
        content = json.loads(data, parse_constant=_not_json)
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON, so it holds no privacy statement.") from None
    if not isinstance(content, Mapping):
        raise InvalidInput(f"{path} holds no privacy statement.")
    return content


# --- reading fields -------------------------------------------------------------------------------


def _read_plan(rounds: object) -> Plan:
    """A plan whose every field has its type; whether the numbers make sense is another question."""
    read = [_read_round(_require(dict, "a round", r)) for r in _require(list, "plan", rounds)]
    try:
        return plan_from_json(read)
    except InvalidInput as error:
        raise InvalidInput(f"The plan of this statement cannot be read. {error}") from None


def _read_round(r: dict[str, Any]) -> dict[str, Any]:
    sampling = dict(_require(dict, "sampling", r.get("sampling")))
    _require_line("kind", sampling.get("kind"))
    if "rate" in sampling:
        sampling["rate"] = _number("rate", sampling["rate"])
    if "parts" in sampling:
        sampling["parts"] = _integer("parts", sampling["parts"])
    events = [
        _read_event(_require(dict, "an event", e))
        for e in _require(list, "events", r.get("events"))
    ]
    stage = _require_line("stage", r.get("stage", ""))
    times = _integer("times", r.get("times"))
    return {"sampling": sampling, "times": times, "events": events, "stage": stage}


def _read_event(event: dict[str, Any]) -> dict[str, Any]:
    readers: dict[str, Callable[[str, object], Any]] = {
        "law": _require_line,
        "question": _require_line,
        "coordinates": _integer,
        "picks": _integer,
        "trials": _integer,
        "one_signed": functools.partial(_require, bool),
        "unit": lambda name, value: _number(name, _from_number(value)),
        "recipe": _read_recipe,
    }
    return {name: readers.get(name, _number)(name, value) for name, value in event.items()}


def _read_recipe(name: str, value: object) -> list[list[Any]]:
    steps = _require(list, name, value)
    return [[_from_number(x) for x in _require(list, name, step)] for step in steps]


def _require(kind: type[Any], name: str, value: object) -> Any:
    if not isinstance(value, kind):
        raise _field(name, f"a {kind.__name__}", value)
    return value


def _require_line(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise _field(name, "one line of printable text", value)
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _field(name, "a number", value)
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _MOST:
        raise _field(name, "an integer below 2^40", value)
    return value


def _field(name: str, must_be: str, value: object) -> InvalidInput:
    return InvalidInput(f"In a privacy statement {name} must be {must_be}, got {_brief(value)}.")


def _brief(value: object) -> str:
    """A short picture of anything; never fails."""
    small = isinstance(value, int) and abs(value) <= _MOST
    if small or value is None or isinstance(value, str | float):
        return repr(value)[:80]
    return f"something of type {type(value).__name__}"


def _not_json(name: str) -> float:
    raise ValueError(name)


def _to_number(x: float | None) -> float | str | None:
    """JSON has no infinity."""
    return "inf" if x == math.inf else x


def _from_number(x: object) -> object:
    return math.inf if x == "inf" else x


# --- showing --------------------------------------------------------------------------------------


def hanging(head: str, text: str) -> str:
    """``text`` in lines of 80 columns, the first after ``head`` and the others below it."""
    return textwrap.fill(
        text,
        80,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shown(x: float) -> str:
    """Short where that is exact: a promise is never rounded."""
    short = _rounded(x)
    return short if float(short) == x else repr(x)


def _rounded(x: float) -> str:
    return f"{x:.6g}"


def _weight(r: Round, event: Event, neighbours: Neighbours) -> float:
    """Twice its rho to first order: the currency in which shares are comparable."""
    times, rate = r.times, 1.0
    if isinstance(r.sampling, DisjointParts):
        times = -(-times // r.sampling.parts)
    if isinstance(r.sampling, PoissonBatches):
        rate = r.sampling.rate
    change = event.diameter if neighbours == "replace_one" else event.radius
    if not change or not times:
        return 0.0
    if event.law == "laplace_lognormal" and event.scale:
        return 2 * times * event.coordinates * lognormal_rho(event)
    ratio = rate * change / event.scale if event.scale else math.inf
    ratio *= 2 if event.law == "laplace_max" else 1  # its scores move against each other
    ratio *= 3 if event.law == "best_trial" else 1  # in pure epsilon a search costs three trials
    return times * event.picks * ratio * ratio


def _sampled(sampling: Sampling) -> str:
    if isinstance(sampling, PoissonBatches):
        return f"Poisson, rate {_rounded(sampling.rate)}"
    if isinstance(sampling, DisjointParts):
        return f"{sampling.parts} disjoint parts"
    return "everyone"


def _row(r: Round, event: Event, share: str) -> tuple[str, ...]:
    law = f"{event.law}, top {event.picks}" if event.picks > 1 else event.law
    law += f" of {event.trials} on average" if event.law == "best_trial" else ""
    ratios = [_rounded(event.deviation / s) if s else "-" for s in (event.radius, event.diameter)]
    noise = _rounded(event.std) if event.scale else "none"
    if event.scale and event.law in SMOOTH:
        noise = f"{_rounded(event.deviation)} × S"
    return (
        r.stage or "-",
        event.question or "-",
        law.replace("_", " "),
        str(r.times),
        _sampled(r.sampling),
        str(event.coordinates),
        noise,
        *ratios,
        share,
    )


def _html_cells(texts: Sequence[str], tag: str) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
