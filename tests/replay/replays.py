"""A call that is made twice: on records, and on a neighbour of theirs with the same releases.

Whatever the second call shows is then post-processing of what the first one released, or a leak.
So the second must look like the first in everything but the exact sums before noise, and these may
differ by the sensitivity that was billed, in the norm of the law of the noise.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from privtail.progress import watching
from privtail.trusted import curator
from privtail.trusted.events import GAUSSIAN, Event
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.registry import MECHANISMS
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.opening import Opening
from privtail.trusted.smooth.questions import SMOOTH_MECHANISMS

OPENERS: tuple[Any, ...] = (*MECHANISMS, *SMOOTH_MECHANISMS, StabilityHistogram)
"""All that turns a private value into a public answer."""

SECRETS = ("below", "coins")
"""Secret choices of a sampler that no record decides."""


class _Exact(SimulatedSampler):
    """Noise that repeats, for what wants exact noise."""

    exact = True


@dataclass
class Release:
    """One answer, and what it was drawn from."""

    event: Event
    exact: Any
    answer: Any


@dataclass
class Tape:
    """A call as its caller sees it, line by line, and what lay before the noise."""

    journal: list[tuple[Any, ...]] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    secrets: list[Any] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        """Whether the call ended with an error."""
        return bool(self.journal) and self.journal[-1][0] == "raised"


class _Written(io.StringIO):
    """A stream that notes in the journal when something was written."""

    def __init__(self, tape: Tape, name: str) -> None:
        super().__init__()
        self._tape, self._name = tape, name

    def write(self, text: str) -> int:
        self._tape.journal.append((self._name, text))
        return len(text)


def played(call: Callable[[], Any], before: Tape | None = None) -> Tape:
    """Make a call with seeded noise and note what it shows; release what ``before`` released."""
    tape = Tape()
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        _watch_releases(patch, tape, before)
        stack.enter_context(contextlib.redirect_stdout(_Written(tape, "stdout")))
        stack.enter_context(contextlib.redirect_stderr(_Written(tape, "stderr")))
        stack.enter_context(_noting_warnings(tape))
        stack.enter_context(watching(lambda *done: tape.journal.append(("round", *done))))
        try:
            tape.journal.append(("returned", shown(call())))
        except Exception as error:  # noqa: BLE001  an error is something that the caller sees
            causes = repr(error.__cause__)
            tape.journal.append(("raised", type(error).__name__, str(error), causes))
    return tape


@contextlib.contextmanager
def _noting_warnings(tape: Tape) -> Iterator[None]:
    def note(message: Any, category: Any, *_: Any, **__: Any) -> None:
        tape.journal.append(("warned", category.__name__, str(message)))

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield


def _watch_releases(patch: pytest.MonkeyPatch, tape: Tape, before: Tape | None) -> None:
    """Keep every exact value and every answer; answer from ``before`` if there is one."""
    charge, charged, inside = Opening.charge, [], [False]

    def charging(self: Opening, event: Event) -> Any:
        tape.journal.append(("charged", event))
        charged.append(event)
        return charge(self, event)

    def watched(opener: Any) -> Callable[..., Any]:
        release = opener.release

        def releasing(self: Any, exact: Any, public: Any, sampler: Any) -> Any:
            if inside[0]:
                return release(self, exact, public, sampler)
            kept = exact.copy()
            tape.journal.append(("released", repr(self), _sizes(kept)))
            inside[0] = True
            try:
                answer = (
                    release(self, exact, public, sampler)
                    if before is None
                    else before.releases[len(tape.releases)].answer
                )
            finally:
                inside[0] = False
            tape.releases.append(Release(charged[-1], kept, _again(answer)))
            return _again(answer)

        return releasing

    def secretly(name: str) -> Callable[..., Any]:
        draw = getattr(SimulatedSampler, name)

        def drawing(self: Any, *arguments: Any) -> Any:
            tape.journal.append(("drew", name, *arguments))
            drawn = draw(self, *arguments)
            tape.secrets.append(drawn if before is None else before.secrets[len(tape.secrets)])
            return _again(tape.secrets[-1])

        return drawing

    patch.setattr(curator, "ExactSampler", partial(_Exact, 0))
    patch.setattr(Opening, "charge", charging)
    for opener in OPENERS:
        patch.setattr(opener, "release", watched(opener))
    for name in SECRETS:
        patch.setattr(SimulatedSampler, name, secretly(name))


def _again(answer: Any) -> Any:
    return answer.copy() if hasattr(answer, "copy") else answer


def _sizes(exact: Any) -> Any:
    """The shape of what is released; of labels nobody knows how many occur."""
    return exact.shape if isinstance(exact, np.ndarray) else None


def shown(thing: Any) -> Any:
    """What can be seen of a result, in a form that can be compared; NaN equals itself."""
    if isinstance(thing, np.ndarray):
        cells = tuple(map(shown, thing.ravel())) if thing.dtype == object else thing.tobytes()
        return "array", str(thing.dtype), thing.shape, cells
    if isinstance(thing, float | np.floating):
        return type(thing).__name__, float(thing).hex()
    if isinstance(thing, Ledger):
        return tuple(
            repr({k: v for k, v in vars(entry).items() if k not in ("time", "pid")})
            for entry in thing.entries()
        )
    if isinstance(thing, Mapping):
        return type(thing).__name__, tuple((repr(k), shown(v)) for k, v in thing.items())
    if isinstance(thing, list | tuple):
        return type(thing).__name__, *map(shown, thing)
    if callable(thing):
        return getattr(thing, "__qualname__", type(thing).__name__)
    if hasattr(thing, "__dict__"):
        return type(thing).__name__, shown(vars(thing)), str(thing)
    return type(thing).__name__, repr(thing)


def differences(
    ours: Tape, theirs: Tape, *, emptied: bool = False, excused: bool = False
) -> list[str]:
    """What tells two neighbours apart; ``emptied`` if a row of one is empty in the other.

    ``excused``: a refusal of either is outside the promise.
    """
    if excused and (ours.refused or theirs.refused):
        return []
    found = [
        f"seen: {one!r:.300} | {other!r:.300}"
        for one, other in zip(ours.journal, theirs.journal, strict=False)
        if one != other
    ][:1]
    if not found and len(ours.journal) != len(theirs.journal):
        found.append(f"{len(ours.journal)} lines | {len(theirs.journal)} lines")
    if found:
        return found
    pairs = enumerate(zip(ours.releases, theirs.releases, strict=True))
    return [f"release {k}: {far}" for k, pair in pairs if (far := _too_far(*pair, emptied))]


def _too_far(ours: Release, theirs: Release, emptied: bool) -> str:
    """By how much more than billed two exact values differ; nothing if they do not."""
    event = ours.event
    billed = event.radius if emptied else event.diameter
    if event.law == "gaussian_labels":
        moved = _labels_moved(ours.exact, theirs.exact, event)
    elif event.law in ("laplace_lognormal", "smooth_gaussian"):
        # Of every coordinate (of every part) so many numbers may be others.
        apart = ours.exact != theirs.exact
        counts = apart.sum(axis=1) if event.law == "laplace_lognormal" else apart.any(axis=1).sum()
        moved = float(np.max(counts, initial=0))
    else:
        change = [int(b) - int(a) for a, b in zip(ours.exact, theirs.exact, strict=True)]
        moved = _norm(change, event)
        if event.one_signed and emptied and min(change) < 0 < max(change):
            return f"{event.question} moved both ways"
    return "" if moved <= billed * (1 + 1e-12) else (
        f"{event.question} moved by {moved:.6g}, billed are {billed:.6g}"
    )  # fmt: skip


def _norm(change: Sequence[int], event: Event) -> float:
    if event.law in GAUSSIAN:
        return float(np.sqrt(float(sum(c * c for c in change))))
    sizes = [abs(c) for c in change]
    return float(sum(sizes) if event.law == "laplace" else max(sizes, default=0))


def _labels_moved(ours: Mapping[Any, int], theirs: Mapping[Any, int], event: Event) -> float:
    """How far the counts of labels that both hold moved, in l2 and grid units of ``event``.

    Or how many rows hold a label of one alone, if that is more.
    """
    common = ours.keys() & theirs.keys()
    own = max(sum(counts[k] for k in counts.keys() - common) for counts in (ours, theirs))
    return max(_norm([ours[k] - theirs[k] for k in common], event), own) / event.unit
