"""Inert records of releases: all that an accountant needs, and nothing that came from data.

A law means what `Event` says of it in this version; a statement names the version that wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from privtail.errors import InvalidInput, require_whole
from privtail.trusted.exactly import is_one_of
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling


def read_once(owner: Any, *names: str, kind: Callable[[Any], Any]) -> None:
    """Turn attributes into plain numbers, so that the bill and the release are of the same ones."""
    for name in names:
        object.__setattr__(owner, name, kind(getattr(owner, name)))


def read_whole(owner: Any, **least: int) -> None:
    """Turn attributes into plain whole numbers; what is checked is what is kept."""
    for name, smallest in least.items():
        whole = require_whole(name, getattr(owner, name), smallest)
        object.__setattr__(owner, name, whole)


Recipe = tuple[tuple[Any, ...], ...]
"""A question and its public parameters, then what was done to the answer; see `Sensitivity`."""

Law = Literal[
    "gaussian", "laplace", "noisy_max", "laplace_max", "gaussian_labels", "laplace_lognormal",
    "smooth_gaussian", "best_trial",
]  # fmt: skip
LAWS: tuple[Law, ...] = get_args(Law)
GAUSSIAN: tuple[Law, ...] = ("gaussian", "gaussian_labels")
"""Laws of Gaussian noise."""
SMOOTH: tuple[Law, ...] = ("laplace_lognormal", "smooth_gaussian")
"""Laws whose noise follows a smooth sensitivity, which is private."""
INTEGER: tuple[Law, ...] = ("laplace", "noisy_max", "laplace_max")
"""Laws of noise on whole numbers; the others round continuous noise."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One release, in units of its integer grid.

    Attributes
    ----------
    law : ``gaussian`` (normal noise of deviation ``scale`` on every coordinate, rounded),
        ``laplace`` (discrete Laplace), ``noisy_max`` (the ``picks`` largest of the scores plus
        Gumbel noise), ``laplace_max`` (the largest of the scores plus discrete Laplace noise),
        ``gaussian_labels`` (a stability histogram: Gaussian noise, then a threshold that
        fails with probability ``delta``); with noise in proportion to a smooth sensitivity
        ``laplace_lognormal`` (X e^(``spread`` Y), X Laplace, Y normal; every coordinate has a
        sensitivity of its own) and ``smooth_gaussian`` (one sensitivity for the whole vector,
        whose loss is bounded but for probability ``delta``); ``best_trial`` (the best of a secret
        number of trials, each of which is (sensitivity / ``scale``)^2 / 2-zCDP; of that number only
        its mean ``trials`` is public).
    scale : noise parameter in grid units: s (Gaussian), b (Laplace, Gumbel). 0 means no noise. In
        units of the smooth sensitivity where there is one.
    radius, diameter : sensitivity in grid units under ``zero_out`` and ``replace_one``, in the
        norm of the law: l2 (gaussian, gaussian_labels), l1 (laplace), l-infinity (noisy_max,
        laplace_max);
        where it is smooth, and of trials, the rows of one unit of privacy.
    coordinates : number of noise draws; of labels, those on counts that one person can move.
    picks : how many indices a noisy max releases.
    one_signed : every record's contribution to every score has one sign, so under ``zero_out``
        all scores move the same way (the range of a score change is ``radius``, not twice it).
    delta : failure probability of ``gaussian_labels`` and ``smooth_gaussian``.
    smoothness : log of the largest factor by which one record moves a smooth sensitivity.
    spread : standard deviation of the logarithm of ``laplace_lognormal`` noise.
    trials : mean of the geometric number of trials of ``best_trial``; 1 for everything else.
    unit : released value = grid value times ``unit``; only for the reader.
    question : what was asked of the records; only for the reader.
    recipe : from public numbers to radius, diameter and unit, as `Sensitivity` has it; empty where
        noise follows a smooth sensitivity, and for a search. `verify` reads it; it pays for
        nothing.
    """

    law: Law
    scale: float
    radius: float
    diameter: float
    coordinates: int
    picks: int = 1
    one_signed: bool = False
    delta: float = 0.0
    smoothness: float = 0.0
    spread: float = 0.0
    trials: int = 1
    unit: float = 1.0
    question: str = ""
    recipe: Recipe = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        read_whole(self, coordinates=1, picks=1, trials=1)
        read_once(self, "law", "question", kind=str.__str__)
        read_once(self, "one_signed", kind=bool)
        read_once(
            self, "scale", "radius", "diameter", "delta", "smoothness", "spread", "unit", kind=float
        )

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of one coordinate, in the units of ``scale``."""
        of_unit_scale = {
            "gaussian": 1.0,
            "gaussian_labels": 1.0,
            "smooth_gaussian": 1.0,
            "best_trial": 1.0,
            "noisy_max": math.pi / math.sqrt(6),
            "laplace_lognormal": math.sqrt(2) * math.exp(self.spread**2),
        }.get(self.law, math.sqrt(2))
        return of_unit_scale * self.scale

    @property
    def std(self) -> float:
        """Standard deviation of the noise of one coordinate, in units of the released value.

        NaN where the noise follows a smooth sensitivity, which is private.
        """
        if not self.scale:
            return 0.0
        return math.nan if self.law in SMOOTH else self.deviation * self.unit


@dataclass(frozen=True, kw_only=True)
class Round:
    """``times`` rounds, each of which opens one batch of ``sampling`` and releases ``events``.

    ``stage`` says what the rounds are for, in the words of the algorithm; only for the reader.
    With ``DisjointParts`` one Round is one deal: its t-th repetition sees part t mod parts.
    """

    sampling: Sampling = field(default_factory=Everyone)
    events: tuple[Event, ...]
    times: int = 1
    stage: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        read_whole(self, times=0)
        object.__setattr__(self, "events", tuple(self.events))
        known = is_one_of(self.sampling, get_args(Sampling))
        if not known or any(type(event) is not Event for event in self.events):
            raise InvalidInput(
                "A Round holds events of Everyone(), PoissonBatches(rate) or DisjointParts(parts), "
                "and no class derived from these: what is planned must be what is compared."
            )


Plan = tuple[Round, ...]


def compose(*plans: Iterable[Round]) -> Plan:
    """One plan after another."""
    return tuple(r for plan in plans for r in plan)


def own_plan(plan: Iterable[Round]) -> Plan:
    """A copy that nobody else holds: what was paid for can no longer be changed."""
    return tuple(
        Round(
            sampling=replace(r.sampling),
            events=tuple(replace(event) for event in r.events),
            times=r.times,
            stage=r.stage,
        )
        for r in plan
    )


def plan_to_json(plan: Plan) -> list[dict[str, Any]]:
    """A JSON form from which `plan_from_json` restores an equal plan."""
    kinds = {Everyone: "everyone", PoissonBatches: "poisson", DisjointParts: "parts"}
    return [
        {
            "sampling": {"kind": kinds[type(r.sampling)], **asdict(r.sampling)},
            "times": r.times,
            "stage": r.stage,
            "events": [_event_to_json(e) for e in r.events],
        }
        for r in plan
    ]


def plan_from_json(rounds: list[dict[str, Any]]) -> Plan:
    """Inverse of `plan_to_json`; raises InvalidInput on anything else."""
    makers: dict[str, type[Sampling]] = {
        "everyone": Everyone,
        "poisson": PoissonBatches,
        "parts": DisjointParts,
    }
    try:
        plan = []
        for entry in rounds:
            arguments = dict(entry["sampling"])
            sampling = makers[arguments.pop("kind")](**arguments)
            events = tuple(
                Event(
                    **{
                        **e,
                        "unit": float(e.get("unit", 1.0)),
                        "recipe": tuple(tuple(step) for step in e.get("recipe", ())),
                    }
                )
                for e in entry["events"]
            )
            stage = entry.get("stage", "")
            plan.append(Round(sampling=sampling, events=events, times=entry["times"], stage=stage))
        return tuple(plan)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            "This must be a list of planned rounds as privtail writes it."
        ) from error


def _event_to_json(event: Event) -> dict[str, Any]:
    steps = [[_number(x) for x in step] for step in event.recipe]
    written = asdict(replace(event, recipe=())) | {"unit": _number(event.unit)}
    return written | {"recipe": steps}


def _number(x: Any) -> Any:
    """JSON has no infinity, which is the unit of a sum that is not clipped."""
    return "inf" if x == math.inf else x
