"""Events that no fit of privtail releases."""

from __future__ import annotations

import math
from collections.abc import Iterable

from privtail.trusted.events import (
    LAWS,
    SMOOTH,
    Event,
    Plan,
)

# A claim may lie this far below its recomputation with another version of the libraries.
TOLERANCE = 1e-9


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
    elif not 1 - TOLERANCE <= event.diameter / event.radius <= 2 + TOLERANCE:
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
