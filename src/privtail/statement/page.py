"""A statement as text."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from html import escape

from privtail.ledger_texts import digits_above
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import (
    SMOOTH,
    Event,
    Round,
)
from privtail.trusted.sampling import DisjointParts, PoissonBatches, Sampling


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


def shown(x: float) -> str:
    """Short where that is exact: a promise is never rounded."""
    short = rounded(x)
    return short if float(short) == x else repr(x)


def rounded(x: float) -> str:
    """Six digits."""
    return f"{x:.6g}"


def cost_shown(x: float) -> str:
    """Six digits, rounded up: a cost is never shown smaller than it is."""
    return f"{digits_above(x):.6g}"


def relative_cost(r: Round, event: Event, neighbours: Neighbours) -> float:
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
        from privtail.trusted.smooth.accounting import lognormal_rho

        return 2 * times * event.coordinates * lognormal_rho(event)
    ratio = rate * change / event.scale if event.scale else math.inf
    ratio *= 2 if event.law == "laplace_max" else 1  # its scores move against each other
    ratio *= 3 if event.law == "best_trial" else 1  # in pure epsilon a search costs three trials
    return times * event.picks * ratio * ratio


def _sampled(sampling: Sampling) -> str:
    if isinstance(sampling, PoissonBatches):
        return f"Poisson, rate {rounded(sampling.rate)}"
    if isinstance(sampling, DisjointParts):
        return f"{sampling.parts} disjoint parts"
    return "everyone"


def table_row(r: Round, event: Event, share: str) -> tuple[str, ...]:
    """A line of the table of releases."""
    law = f"{event.law}, top {event.picks}" if event.picks > 1 else event.law
    if event.law == "best_trial":
        law = "in zCDP" if event.trials == 1 else f"{law} of {event.trials} on average"
    ratios = [rounded(event.deviation / s) if s else "-" for s in (event.radius, event.diameter)]
    noise = rounded(event.std) if event.scale else "none"
    if event.scale and event.law in SMOOTH:
        noise = f"{rounded(event.deviation)} × S"
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


def html_cells(texts: Sequence[str], tag: str) -> str:
    """Texts as HTML elements."""
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)
