"""Recomputing a statement from its releases, and comparing it with its claim."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput, PrivtailError
from privtail.json_files import json_of
from privtail.spelling import printable
from privtail.statement.page import cost_shown, shown
from privtail.statement.promise import FORMAT, Statement
from privtail.statement.reading import brief, from_number, wrong_field
from privtail.statement.recipes import followed
from privtail.statement.sense import TOLERANCE, nonsense
from privtail.trusted.accountants import Cost, cost
from privtail.trusted.events import (
    SMOOTH,
    Event,
    Round,
)
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import PoissonBatches

CLOSE, LOOSE = 1e-6, 1e-3
"""How far written numbers may lie from those of the releases; an epsilon may be more by `LOOSE`.

Another version may prove a slightly smaller epsilon of the same releases.
"""
NEEDED = "a model, an evaluation, a statement or another result that privtail wrote"


@dataclass(frozen=True, kw_only=True, repr=False)
class Verification:
    """The answer of `verify`; true only if the claim is private and was recomputed.

    Attributes
    ----------
    claimed : tuple of float
        Epsilon and delta of the file.
    recomputed : float or None
        Epsilon at that delta from the releases alone; None if it cannot be computed.
    problems : tuple of str
        Sentences; empty if the promise holds.
    headline : str
        What may be said of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_mean, verify
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=2_000)
    >>> found = verify(private_mean(x, epsilon=1.0).privacy_)
    >>> found.ok, found.problems
    (True, ())
    """

    claimed: tuple[float, float]
    recomputed: float | None
    problems: tuple[str, ...]
    headline: str

    @property
    def ok(self) -> bool:
        """Whether the promise is differential privacy and the releases keep it."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok

    def to_text(self) -> str:
        """The verdict, both numbers, and every problem."""
        epsilon, delta = self.claimed
        again = (
            "not computable" if self.recomputed is None else f"ε = {cost_shown(self.recomputed)}"
        )
        lines = [
            self.headline if self.ok else "NOT VERIFIED",
            f"claimed     ε = {shown(epsilon)}, δ = {shown(delta)}",
            f"recomputed  {again} from the releases alone",
        ]
        return "\n".join([*lines, *(f"  - {problem}" for problem in self.problems)])

    def __str__(self) -> str:
        return printable(self.to_text())

    def __repr__(self) -> str:
        return printable(f"<Verification: {self.headline}>")


def verify(source: str | os.PathLike[str] | Mapping[str, Any] | Statement) -> Verification:
    """Recompute a statement's cost from its releases and compare it with its claim.

    Parameters
    ----------
    source : path, mapping or Statement
        A statement file, a model file with a ``"statement"``, the JSON object of either, or a
        `Statement`.

    Returns
    -------
    Verification
        Its ``problems`` tell what is wrong; a statement that promises no privacy is not ok either.
        Every sensitivity is derived anew from n, the unit and the parameters of its question. No
        file can prove that these releases, and no others, were made with this noise, or that
        ``groups`` named the persons. Ledger entry, versions and all sentences (assumptions, notes,
        what is outside of the promise) are not checked.

    Raises
    ------
    InvalidInput
        If this is no statement: not a file, not JSON, another format, missing or mistyped fields.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_mean, verify
    >>> mean = private_mean(np.arange(1_000.0), epsilon=1.0)
    >>> verify(mean.privacy_).ok
    True
    """
    given: object = source
    if not isinstance(given, str | os.PathLike | Mapping | Statement):
        own = next((name for name in ("privacy_", "statement") if hasattr(given, name)), None)
        mend = "" if own is None else f" Pass its .{own}."
        raise InvalidInput(
            "verify takes a Statement, the path of a file or a JSON object, got an object of type "
            f"{type(given).__name__}.{mend}"
        )
    written: Mapping[str, Any] | None = None
    if isinstance(source, Statement):
        statement = source
    else:
        written = source if isinstance(source, Mapping) else read(Path(source))
        if "statement" in written and written.get("format") != FORMAT:
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


def verify_all(source: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Verification, ...]:
    """`verify` of every statement of a file, or of what it holds: its own, and an evaluation's.

    Raises
    ------
    InvalidInput
        As `verify`.
    """
    written = source if isinstance(source, Mapping) else read(Path(source))
    if "statements" not in written:
        return (verify(written),)
    several = written["statements"]
    if not (isinstance(several, list) and several and all(isinstance(s, Mapping) for s in several)):
        raise wrong_field("'statements'", "a list of statements", several)
    own = (written,) if "statement" in written or written.get("format") == FORMAT else ()
    return tuple(map(verify, (*own, *several)))


def _broken(statement: Statement, recomputed: float) -> list[str]:
    """Why the promise of a statement does not hold."""
    problems = []
    if statement.noise == "simulated":
        problems.append("The noise was simulated with a seeded sampler: nothing is private.")
    elif statement.noise == "none" or math.isinf(statement.epsilon):
        problems.append("The fit was made without noise: nothing is private.")
    elif not any(r.times and r.events for r in statement.plan):
        problems.append("No release is listed, so there is no cost to recompute.")
    if not recomputed <= statement.epsilon * (1 + TOLERANCE):
        problems.append(
            f"The claim is below the cost: ε = {statement.epsilon!r} is claimed at δ = "
            f"{statement.delta!r}, the releases cost {recomputed!r}."
        )
    return problems


def _edited(statement: Statement, content: Mapping[str, Any]) -> list[str]:
    """Every number of a file that its releases contradict."""
    problems = []
    if content.get("unit") != statement.unit:
        problems.append(f"The unit was edited; it must read {statement.unit!r}.")
    if content.get("headline") != statement.headline:
        problems.append(f"The headline was edited; it must read {statement.headline!r}.")
    written = content.get("spent")
    for name, value in statement.recomputed().items():
        said = written.get(name, math.nan) if isinstance(written, Mapping) else math.nan
        above = LOOSE if name == "epsilon" else CLOSE
        if name != "accountant" and not _agrees(said, value, above):
            problems.append(
                f"Edited number: spent {name} is {brief(said)}, the releases give {value!r}."
            )
    return problems


def _agrees(said: object, value: object, above: float) -> bool:
    """Whether a written number is the recomputed one, or a little more. None claims nothing.

    A number that is more belongs to other releases: some are missing here, or had less noise.
    """
    if said is None:
        return True
    claim, truth = from_number(said), from_number(value)
    if isinstance(claim, bool) or not isinstance(claim, int | float):
        return False
    return isinstance(truth, float) and truth * (1 - CLOSE) <= claim <= truth * (1 + above)


def underived(statement: Statement) -> Iterable[str]:
    """Sentences about events that do not follow from n, the unit, and their questions."""
    rows = 1 if statement.max_rows is None else statement.max_rows
    problem = Problem(n=statement.n, d=1, max_rows=rows)
    for i, r in enumerate(statement.plan, 1):
        expected = problem.n * r.sampling.rate if isinstance(r.sampling, PoissonBatches) else 1.0
        if not expected >= 1 - TOLERANCE:
            yield f"Round {i}: a batch of {expected:.3g} of the n = {problem.n} rows is empty."
        for j, event in enumerate(r.events, 1):
            yield from (
                f"Round {i}, release {j}: {what}." for what in _underived(problem, r, event, rows)
            )


def _underived(problem: Problem, r: Round, event: Event, rows: int) -> Iterable[str]:
    """What of one release does not follow."""
    if event.law in (*SMOOTH, "best_trial"):
        of_law = 1.0 if event.law == "smooth_gaussian" else float(rows)
        if (event.radius, event.diameter) != (of_law, of_law):
            yield f"radius and diameter must be {of_law!r}"
        if event.law == "best_trial" and (event.coordinates, event.unit) != (1, 1.0):
            yield "a search has one coordinate, of unit 1"
        if event.law == "smooth_gaussian" and rows > 1:
            yield "sample and aggregate protects one row"
        return
    if not event.recipe:
        yield "it does not say how its sensitivity follows from the question, so nobody can check"
        return
    try:
        answer = followed(problem.sampled(r.sampling), event.recipe)
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


def _finite(bill: Cost, delta: float) -> float:
    """Epsilon of a recomputed cost; an accountant that answers NaN has not answered."""
    epsilon = bill.epsilon(delta)
    if not epsilon >= 0:
        raise InvalidInput("The accountant must give a number, and gave none.")
    return epsilon


def read(path: Path) -> Mapping[str, Any]:
    """What a file with a statement holds.

    Raises
    ------
    InvalidInput
        If it cannot be read, or holds no object of JSON.
    """
    content, _ = json_of(path, NEEDED)
    if not isinstance(content, Mapping):
        raise InvalidInput(f"{path} holds no privacy statement. Give {NEEDED}.")
    return content
