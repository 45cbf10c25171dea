"""A plan, sorted by what the theorems need. The only place that divides noise by sensitivity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from privtail.errors import InvalidInput, UnsupportedAccounting, told
from privtail.trusted.accounting.curves import ULP, ApproximateDP, decimal, rounded_up, up
from privtail.trusted.budget import NEIGHBOURS, Neighbours
from privtail.trusted.events import GAUSSIAN, LAWS, SMOOTH, Event, Plan, Round
from privtail.trusted.sampling import DisjointParts, PoissonBatches

# A weaker release is billed as this ratio of sensitivity to noise: dearer than it is.
_FAINTEST = 1e-9


@dataclass(frozen=True)
class SampledGaussian:
    """``times`` batches at ``rate``, each with one Gaussian of std / radius ``ratio``."""

    rate: float
    ratio: float
    times: int

    def spread(self, neighbours: Neighbours) -> float:
        """Standard deviation of the privacy loss of one batch, roughly (no guarantee)."""
        x = min(self.ratio**-2, 600.0) if self.ratio > 1e-2 else 600.0
        if neighbours == "zero_out":
            return min(self.rate * math.sqrt(math.expm1(x)), 1 / self.ratio)
        return min(self.rate * 2 * math.sqrt(math.sinh(x)), 2 / self.ratio)

    def span(self) -> float:
        """About half the range of the losses that matter."""
        return 4 / self.ratio * (1 / self.ratio + 5)


@dataclass(frozen=True)
class BoundedLoss:
    """``times`` releases, each (epsilon, delta)-DP."""

    epsilon: float
    delta: float
    times: int

    def spread(self, neighbours: Neighbours) -> float:
        """Standard deviation of the privacy loss of one release, roughly (no guarantee)."""
        return self.epsilon

    def span(self) -> float:
        """Half the range of the losses."""
        return self.epsilon


def gaussian_guess(groups: tuple[SampledGaussian | BoundedLoss, ...], near: Neighbours) -> float:
    """The mu of a central limit theorem: a place to start a search, never an answer."""
    return math.sqrt(math.fsum(g.times * g.spread(near) ** 2 for g in groups))


@dataclass
class Bill:
    """A plan, sorted by what the theorems need.

    Attributes
    ----------
    neighbours : the relation.
    mu_squares : (sensitivity / scale)^2 of the Gaussians that everyone, or one part, is in.
    concentrated : rho of the releases of which nothing else is known.
    searches : (rho of a trial, mean number of trials, times) of searches among trials.
    bounded : (epsilon, rho, delta, times) of the other laws, outside the Poisson batches.
    failing : probability that a label shows which only one of two neighbours holds.
    ranges : (range of the loss, picks) of those among them that are selections by Gumbel noise.
    batches : one entry per round of Poisson batches.
    noiseless : whether something spends and has no noise.
    """

    neighbours: Neighbours
    mu_squares: list[float] = field(default_factory=list)
    concentrated: list[float] = field(default_factory=list)
    searches: list[tuple[float, int, int]] = field(default_factory=list)
    failing: Fraction = Fraction(0)
    bounded: list[tuple[Fraction, float, float, int]] = field(default_factory=list)
    ranges: list[tuple[float, int]] = field(default_factory=list)
    batches: list[SampledGaussian | BoundedLoss] = field(default_factory=list)
    noiseless: bool = False

    @property
    def spends(self) -> bool:
        """Whether any release depends on the records."""
        return self.noiseless or bool(
            self.mu_squares or self.concentrated or self.searches or self.bounded or self.batches
        )

    @property
    def gaussian(self) -> bool:
        """Whether any noise is Gaussian, in batches or outside."""
        sampled = any(isinstance(batch, SampledGaussian) for batch in self.batches)
        return sampled or bool(self.mu_squares)

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of everything Gaussian outside the batches."""
        return up(math.sqrt(math.fsum(self.mu_squares)))

    @property
    def rho(self) -> float:
        """The zCDP parameter of everything outside the batches, and of one trial of a search."""
        bounded = (rho * times for _, rho, _, times in self.bounded)
        trials = (rho * times for rho, _, times in self.searches)
        return up(math.fsum([self.mu**2 / 2, *self.concentrated, *trials, *bounded]))

    @property
    def pure(self) -> ApproximateDP:
        """Basic composition of the bounded losses outside the batches."""
        loss = sum((loss * times for loss, _, _, times in self.bounded), Fraction(0))
        slack = sum((decimal(d) * times for _, _, d, times in self.bounded), Fraction(0))
        return ApproximateDP(loss, slack)

    @property
    def selections(self) -> tuple[float, int] | None:
        """Range of the loss and number of picks, if all that is bounded are selections alike."""
        alike = len({span for span, _ in self.ranges}) == 1
        if not alike or len(self.ranges) < len(self.bounded):
            return None
        return self.ranges[0][0], sum(picks for _, picks in self.ranges)

    @property
    def groups(self) -> tuple[SampledGaussian | BoundedLoss, ...]:
        """The whole plan as dominating pairs."""
        whole: list[SampledGaussian | BoundedLoss] = [
            BoundedLoss(rounded_up(loss), d, times) for loss, _, d, times in self.bounded
        ]
        if self.mu_squares:
            # dp_accounting doubles the shift of a Gaussian under replace-one.
            shifts = 2 if self.neighbours == "replace_one" else 1
            whole.append(SampledGaussian(1.0, shifts / max(self.mu, _FAINTEST), 1))
        return (*self.batches, *whole)


def read(plan: Plan, neighbours: Neighbours) -> Bill:
    """Sort a plan; every rounding goes up.

    Raises
    ------
    InvalidInput, UnsupportedAccounting
        For numbers that cannot be used and mixtures without a theorem.

    Formal guarantee
    ----------------
    See `cost`, which lists the theorem of every line.
    """
    if neighbours not in NEIGHBOURS:
        raise InvalidInput(f"neighbours must be one of {NEIGHBOURS}, got {told(neighbours)}.")
    bill = Bill(neighbours)
    for r in plan:
        for event in r.events:
            _check(event)
        times = _repetitions(r)
        sampled = isinstance(r.sampling, PoissonBatches) and r.sampling.rate < 1
        events = [e for e in r.events if _spends(e, neighbours, sampled)]
        if not times or not events:
            continue
        if any(e.scale == 0 for e in events):
            bill.noiseless = True
            return bill
        if isinstance(r.sampling, PoissonBatches) and sampled:
            bill.batches.append(_batch(events, r.sampling.rate, times, neighbours))
        else:
            _add_whole(bill, events, times)
    return bill


def _repetitions(r: Round) -> int:
    """The largest number of rounds that one record is in."""
    if isinstance(r.sampling, DisjointParts):
        return -(-r.times // r.sampling.parts)
    return r.times


def _spends(event: Event, neighbours: Neighbours, sampled: bool) -> bool:
    """Under replace-one a sampled record may also be compared with an absent one."""
    return _sensitivity(event, neighbours) > 0 or (sampled and event.radius > 0)


def _sensitivity(event: Event, neighbours: Neighbours) -> float:
    return event.diameter if neighbours == "replace_one" else event.radius


def _loss(event: Event, neighbours: Neighbours) -> Fraction:
    """Pure epsilon of one pick of a law that is not Gaussian."""
    change = Fraction(_sensitivity(event, neighbours))
    if event.law in ("noisy_max", "laplace_max") and not (
        event.one_signed and neighbours == "zero_out"
    ):
        change *= 2
    return change / Fraction(event.scale)


def _add_whole(bill: Bill, events: Iterable[Event], times: int) -> None:
    for event in events:
        if event.law in GAUSSIAN:
            mu = _sensitivity(event, bill.neighbours) / event.scale
            bill.mu_squares.append(up(mu * mu * times))
            bill.failing += decimal(event.delta) * times
            continue
        if event.law in SMOOTH:  # a second core, which no other plan loads
            from privtail.trusted.smooth.accounting import lognormal_rho, smooth_gaussian_loss
        if event.law == "laplace_lognormal":
            bill.concentrated.append(up(lognormal_rho(event) * event.coordinates * times))
            continue
        if event.law == "best_trial":
            mu = _sensitivity(event, bill.neighbours) / event.scale
            rho = up(mu * mu / 2)
            if event.trials == 1:  # there is nothing to choose
                bill.concentrated.append(up(rho * times))
            else:
                bill.searches.append((rho, event.trials, times))
            continue
        smooth = event.law == "smooth_gaussian"
        loss = smooth_gaussian_loss(event) if smooth else 0.0
        if math.isinf(loss):
            bill.noiseless = True
            return
        exact = Fraction(loss) if smooth else _loss(event, bill.neighbours)
        loss = rounded_up(exact)
        rho = loss * math.tanh(loss / 2) if loss < 40 else loss
        if event.law == "noisy_max":
            rho = min(rho, loss * loss / 8)
            times_seen, slack = times * event.picks, 0.0
            bill.ranges.append((loss, times_seen))
        else:
            times_seen, slack = times, event.delta
        bill.bounded.append((exact, up(rho), slack, times_seen))


NOT_IN_BATCHES = {
    **dict.fromkeys(SMOOTH, "Noise in proportion to a smooth sensitivity has"),
    "gaussian_labels": "Labels that are found have",
    "best_trial": "A search among trials has",
}
"""What has no theorem in a Poisson batch, by law."""


def _batch(
    events: list[Event], rate: float, times: int, neighbours: Neighbours
) -> SampledGaussian | BoundedLoss:
    """One batch opens once: its events are one event."""
    for law, what in NOT_IN_BATCHES.items():
        if any(e.law == law for e in events):
            raise UnsupportedAccounting(
                f"{what} no theorem in a Poisson batch. Use a Round of its own, with Everyone()."
            )
    gaussians = [e for e in events if e.law == "gaussian"]
    if not gaussians:
        return _bounded_batch(events, rate, times, neighbours)
    if len(gaussians) < len(events):
        raise UnsupportedAccounting(
            "One Poisson batch releases Gaussian noise and another law, and no theorem is known to "
            "us for that. Give the selection or Laplace releases a Round of their own: a second "
            "batch, or Everyone()."
        )
    reach = [
        max(e.radius, e.diameter / 2) if neighbours == "replace_one" else e.radius
        for e in gaussians
    ]
    inverse = math.hypot(*(w / e.scale for w, e in zip(reach, gaussians, strict=True)))
    return SampledGaussian(rate, (1 - 8 * ULP) / max(inverse, _FAINTEST), times)


def _bounded_batch(
    events: list[Event], rate: float, times: int, neighbours: Neighbours
) -> BoundedLoss:
    """A batch whose events all have a bounded loss, amplified by its rate."""
    relations = NEIGHBOURS if neighbours == "replace_one" else (neighbours,)
    picks = [e.picks if e.law == "noisy_max" else 1 for e in events]
    loss = rounded_up(
        max(
            sum((_loss(e, near) * k for e, k in zip(events, picks, strict=True)), Fraction(0))
            for near in relations
        )
    )
    # log(1 + q (e^x - 1)) = x + log(q + (1 - q) e^-x) does not overflow.
    small = math.log1p(rate * math.expm1(loss)) if loss < 1 else math.inf
    large = loss + math.log(rate + (1 - rate) * math.exp(-loss))
    slack = math.fsum(e.delta for e in events)
    return BoundedLoss(up(min(small, large)) + 8 * ULP * loss, up(rate * slack), times)


def _check(event: Event) -> None:
    numbers = (
        event.scale, event.radius, event.diameter, event.delta, event.smoothness, event.spread
    )  # fmt: skip
    if (
        not all(0 <= x < math.inf for x in numbers)
        or event.coordinates < 0
        or event.picks < 1
        or event.trials < 1
    ):
        raise InvalidInput(
            "A planned event has a scale, sensitivity, delta or count that is negative or not "
            f"finite: {event!r}. An unbounded range has no sensitivity: give a finite threshold."
        )
    if event.law not in LAWS:
        raise UnsupportedAccounting(
            f"No privacy theorem is known to us for the law {event.law!r}. Use one of {LAWS}."
        )
