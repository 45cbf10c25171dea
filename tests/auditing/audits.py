"""Every published algorithm, audited from end to end: ``make audits``.

An audit draws releases on two neighbouring data sets, chooses an event ``statistic > t`` on a
third of the draws and measures it on the others. With Clopper and Pearson's bounds p below the
probability under one data set and q above that under the other, epsilon >= log((p - delta) / q)
holds but for a chance of ALPHA. Claims are the whole curve of the accountant, at DELTAS.

`ROWS` are fits of every algorithm of the table, on neighbours between which its releases differ as
much as a record can make them differ. The statistic is the best there is: the logarithm of how much
likelier all that one fit released is on one of them. To know it, a `Wiretap` in place of the
sampler keeps what was released and releases the same again on the other data set. Noise is
simulated, on the identical path; one test says that both samplers have one law. All public choices
are fixed; the enemy knows both data sets, the deal, and whom a Poisson batch holds but for the
record in question.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

from privtail import calibration, evaluate, private_covariance
from privtail.algorithms import (
    AggregatedMinimizer,
    BoostedAdaSSP,
    CatoniDescent,
    FrankWolfe,
    FrankWolfeCorners,
    HeavyTailedFrankWolfe,
    LaplacePeeling,
    MedianOfMeansDescent,
    MirrorDescent,
    NetSearch,
    NoisyDescent,
    OnePassDescent,
    OneShotPeeling,
    ProximalGradient,
    RandomRoundDescent,
    SparsePeeling,
    StochasticProximalGradient,
    TrimmedDescent,
    TruncatedLasso,
    TruncatedSparseRegression,
)
from privtail.calibration import calibrated
from privtail.default import ScaledDescent, Tuning
from privtail.domains import L1Ball, L2Ball, Unconstrained
from privtail.losses import AbsoluteLoss, LogisticLoss, SquaredLoss
from privtail.mean import private_mean
from privtail.robust_means import ClampedMean, ClippedMean, SmoothedCatoniMean, TruncatedMean
from privtail.statement import Statement
from privtail.trusted import curator as curator_module
from privtail.trusted.accountants import Cost, cost
from privtail.trusted.budget import NEIGHBOURS, Budget, Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.deals import Coins
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms import simulated
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyTopK
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.sampling import DisjointParts, PoissonBatches
from privtail.trusted.smooth.aggregate import SampleAndAggregate
from privtail.trusted.smooth.questions import aggregate, trimmed_gradient
from privtail.trusted.smooth.trimmed import TrimmedMean

ALPHA = 1e-6
DELTAS = (0.0, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2)
HUGE = 1e308
Draws = tuple[np.ndarray, np.ndarray]


# --- the audit -------------------------------------------------------------------------------


def events(statistic: np.ndarray) -> np.ndarray:
    """Thresholds worth trying: quantiles, denser in the tails."""
    tails = np.concatenate([np.logspace(-3.5, -1, 12), 1 - np.logspace(-3.5, -1, 12)])
    return np.unique(np.quantile(statistic, np.concatenate([np.linspace(0.1, 0.9, 17), tails])))


def bounds(hits: Any, count: int) -> tuple[Any, Any]:
    """Clopper and Pearson: below and above the probability, each but for a chance of ALPHA / 2."""
    hits = np.asarray(hits)
    low = np.where(hits > 0, stats.beta.ppf(ALPHA / 2, hits, count - hits + 1), 0.0)
    high = np.where(hits < count, stats.beta.isf(ALPHA / 2, hits + 1, count - hits), 1.0)
    return low, high


def lower_bound(draws: Draws, delta: float) -> float:
    """A lower bound on epsilon at this delta, in the better of both directions."""
    best = []
    for one, other in (draws, (-draws[1], -draws[0])):
        a, b = len(one) // 3, len(other) // 3
        t = events(np.concatenate([one[:a], other[:b]]))
        p, _ = bounds([(one[:a] > c).sum() for c in t], a)
        _, q = bounds([(other[:b] > c).sum() for c in t], b)
        chosen = t[int(np.argmax((p - delta) / q))]
        p, _ = bounds((one[a:] > chosen).sum(), len(one) - a)
        _, q = bounds((other[b:] > chosen).sum(), len(other) - b)
        best.append(math.log((p - delta) / q) if p > delta else 0.0)
    return max(0.0, *best)


@dataclass(frozen=True)
class Verdict:
    """Lower bounds and claims at DELTAS."""

    observed: tuple[float, ...]
    claimed: tuple[float, ...]

    @property
    def caught(self) -> bool:
        """Whether the claim is refuted somewhere."""
        return any(o > c for o, c in zip(self.observed, self.claimed, strict=True))

    @property
    def share(self) -> float:
        """The largest part of a claim that was demonstrated."""
        pairs = zip(self.observed, self.claimed, strict=True)
        return max(o / c for o, c in pairs if 0 < c < math.inf)

    def __str__(self) -> str:
        cells = zip(DELTAS, self.observed, self.claimed, strict=True)
        return "; ".join(f"delta {d:g}: {o:.3f} of {c:.3f}" for d, o, c in cells)


def audit(draws: Draws, bill: Cost) -> Verdict:
    """What the draws show against what the bill claims."""
    observed = tuple(lower_bound(draws, delta) for delta in DELTAS)
    return Verdict(observed, tuple(bill.epsilon(delta) for delta in DELTAS))


# --- what a fit released, and how likely it was ----------------------------------------------


@dataclass(frozen=True)
class Held:
    """Coins of which that of the record is set."""

    coins: Coins
    held: bool

    def within(self, start: int, stop: int) -> np.ndarray:
        ids = np.arange(stop)[self.coins.within(start, stop)]
        others = ids[ids != RECORD]
        held = [RECORD] if self.held and start <= RECORD < stop else []
        return np.sort(np.append(others, held).astype(np.int64))


class Wiretap:
    """A simulated sampler that keeps what it releases, and can release it again on other records.

    After either, ``rounds`` has the logarithm of the likelihood of every round: of the whole fit
    where no Poisson batch was drawn, else of each batch, with the rate of its sampling. Of the
    noise that is billed only ``part`` is drawn: 1, but for sabotage.
    """

    exact = False

    def __init__(self, seed: int, part: float = 1.0) -> None:
        self._noise, self._part = SimulatedSampler(seed), part
        self._tape: list[Any] = []
        self._left: Iterator[Any] | None = None
        self._held: bool | None = None
        self.rounds: list[tuple[float, float]] = [(1.0, 0.0)]

    def again(self, held: bool | None = None) -> None:
        """Release the same from now on; ``held`` says whether batches hold the record."""
        self._left, self._held, self.rounds = iter(self._tape), held, [(1.0, 0.0)]

    def _say(self, draw: Callable[[], Any], likelihood: Callable[[Any], float]) -> Any:
        if self._left is None:
            self._tape.append(draw())
        out = self._tape[-1] if self._left is None else next(self._left)
        rate, log = self.rounds[-1]
        self.rounds[-1] = rate, log + likelihood(out)
        return out

    def coins(self, rate: float) -> Any:
        self.rounds.append((rate, 0.0))
        coins = self._say(lambda: self._noise.coins(rate), lambda out: 0.0)
        return coins if self._held is None else Held(coins, self._held)

    def gaussian(self, values: Any, scale: float) -> Any:
        return self._say(
            lambda: self._noise.gaussian(values, scale * self._part),
            lambda out: -0.5 * float((((out - values) / scale) ** 2).sum()),
        )

    def laplace(self, values: Any, scale: float) -> Any:
        return self._say(
            lambda: self._noise.laplace(values, scale * self._part),
            lambda out: -float(np.abs((out - values) / scale).sum()),
        )

    def top(self, values: Any, scale: float, count: int) -> Any:
        return self._say(
            lambda: self._noise.top(values, scale * self._part, count),
            lambda out: peeled(values / scale, out),
        )

    def largest(self, values: Any, scale: float) -> int:
        """The largest under Laplace noise: of `LaplaceMax` nothing but the choice is heard."""
        return int(
            self._say(
                lambda: np.argmax(self._noise.laplace(values, scale * self._part)),
                lambda out: chosen(values / scale, int(out)),
            )
        )

    def scaled_laplace_lognormal(self, values: Any, sizes: Any, scale: float, spread: float) -> Any:
        return self._say(
            lambda: self._noise.scaled_laplace_lognormal(values, sizes * self._part, scale, spread),
            lambda out: (
                lognormal((out - values) / (sizes * scale), spread) - float(np.log(sizes).sum())
            ),
        )

    def scaled_normal(self, values: Any, sizes: Any, scale: float) -> Any:
        return self._say(
            lambda: self._noise.scaled_normal(values, sizes * self._part, scale),
            lambda out: (
                -0.5 * float((((out - values) / (sizes * scale)) ** 2).sum())
                - float(np.log(sizes).sum())
            ),
        )


def peeled(scores: np.ndarray, order: np.ndarray) -> float:
    """Log probability that Gumbel noise puts these scores first, in this order."""
    left, log = np.asarray(scores, dtype=float).copy(), 0.0
    for j in order:
        log += float(left[j] - logsumexp(left))
        left[j] = -np.inf
    return log


def chosen(scores: np.ndarray, j: int) -> float:
    """Log probability that score j is the largest under unit Laplace noise."""
    z = np.linspace(-40, 40, 4001)
    below = [stats.laplace.logcdf(scores[j] - s + z) for i, s in enumerate(scores) if i != j]
    return float(logsumexp(np.sum(below, axis=0) - np.abs(z)) if below else 0.0)


def lognormal(z: np.ndarray, spread: float) -> float:
    """Log density of X e^(spread Y), X Laplace and Y normal, up to a constant."""
    y, weights = np.polynomial.hermite_e.hermegauss(64)
    shrunk = np.exp(-spread * y)
    inside = np.log(weights * shrunk) - np.abs(z)[:, None] * shrunk
    return float(logsumexp(inside, axis=1).sum())


# --- neighbours, and fits of them ------------------------------------------------------------

RECORD = 3
"""The record in which the neighbours differ."""
Row = tuple[Any, float]
EMPTY: Row = (1.0, math.nan)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fit of squares, and two data sets that differ in one record.

    Attributes
    ----------
    algorithm : or the options of a private mean, or a function of X, y and options that releases.
    others : X (n, d) and y (n,) of all records; what is at RECORD is not used.
    one, other : the two records (x, y).
    draws : times a usual number of draws; more where one choice of several is informative.
    part : what a short audit shows of the claim, at least.
    sabotage : so much of the noise is little enough for a short audit to notice.
    """

    algorithm: Any
    others: tuple[np.ndarray, np.ndarray] = field(
        default_factory=lambda: (np.ones((12, 1)), np.full(12, math.nan))
    )
    one: Row = (1.0, -HUGE)
    other: Row = (1.0, HUGE)
    loss: Any = SquaredLoss()
    domain: Any = None
    start: Any = None
    budget: Budget = Budget(2.5, 0.05)
    draws: int = 1
    part: float = 0.05
    sabotage: float = 0.25

    def run(self, record: Row, budget: Budget) -> tuple[Plan, Budget]:
        """One fit; its plan."""
        X, y = self.others[0].copy(), self.others[1].copy()
        X[RECORD], y[RECORD] = record
        options = {**asdict(budget), "noise": "simulated", "random_state": 0}
        if isinstance(self.algorithm, dict):
            return private_mean(y, **options, **self.algorithm).privacy_.plan, budget
        if callable(self.algorithm):
            return self.algorithm(X, y, options).plan, budget
        curator = Curator(X, y, budget=budget, noise="simulated", random_state=0)
        multiplier = calibrated(curator, lambda m: self.algorithm.plan(m, curator.problem))
        domain = self.domain
        if domain is None:
            domain = L1Ball(radius=1.0) if "axes" in self.algorithm.needs else Unconstrained()
        self.algorithm.run(curator, self.loss, domain, multiplier, self.start)
        return curator.plan, budget


@contextmanager
def tapped(wires: list[Wiretap]) -> Iterator[None]:
    """The last wire is the sampler of every curator; what was calibrated once is remembered."""
    remembered: list[float] = []
    calibrate, bill = calibration.calibrate, cache(curator_module.cost)

    def known(make_plan: Any, budget: Budget) -> float:
        if not remembered:
            remembered.append(calibrate(make_plan, budget))
        return remembered[0]

    @cache
    def paid(plan: Plan, neighbours: Neighbours) -> Any:
        honest = bill(plan, neighbours)
        return Paid(cache(honest.epsilon), honest.mu, honest.rho)

    def largest(self: LaplaceMax, value: Any, sensitivity: Any, sampler: Any) -> int:
        return int(sampler.largest(value, self.multiplier * sensitivity.radius.linf))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated, "SimulatedSampler", lambda seed: wires[-1])
        patch.setattr(calibration, "calibrate", known)
        patch.setattr(curator_module, "cost", paid)
        patch.setattr(LaplaceMax, "release", largest)
        yield


@dataclass(frozen=True)
class Paid:
    """A bill that is not worked out again for every draw."""

    epsilon: Callable[[float], float]
    mu: float | None
    rho: float | None


def mixed(here: list[tuple[float, float]], away: list[tuple[float, float]] | None) -> float:
    """Log likelihood of all rounds, when a coin says which batches hold the record."""
    total = 0.0
    for i, (rate, log) in enumerate(here):
        if rate == 1:
            total += log
        else:
            assert away is not None
            total += float(np.logaddexp(math.log(rate) + log, math.log1p(-rate) + away[i][1]))
    return total


def drawn(fit: Fit, neighbours: Neighbours, draws: int, part: float = 1.0) -> tuple[Draws, Plan]:
    """Log likelihood ratios of ``draws`` fits of either data set, and the plan of a fit."""
    records = fit.one, EMPTY if neighbours == "zero_out" else fit.other
    budget = Budget(fit.budget.epsilon, fit.budget.delta, neighbours)
    wires: list[Wiretap] = []
    found: tuple[list[float], list[float]] = ([], [])
    with tapped(wires):
        for draw in range(2 * draws):
            wire = Wiretap(draw, part)
            wires[:] = [wire]
            plan, _ = fit.run(records[draw % 2], budget)
            sampled = len(wire.rounds) > 1
            logs = [wire.rounds, wire.rounds]
            for side in (0, 1) if sampled else (1 - draw % 2,):
                wire.again(held=True if sampled else None)
                fit.run(records[side], budget)
                logs[side] = wire.rounds
            away = None
            if sampled:
                wire.again(held=False)
                fit.run(records[0], budget)
                away = wire.rounds
            found[draw % 2].append(mixed(logs[0], away) - mixed(logs[1], away))
    return (np.array(found[0]), np.array(found[1])), plan


def audited(
    fit: Fit, neighbours: Neighbours, draws: int = 1200, part: float = 1.0
) -> tuple[Verdict, Plan]:
    """What an audit of ``fit`` finds, and the plan that was billed."""
    ratios, plan = drawn(fit, neighbours, draws * fit.draws, part)
    return audit(ratios, cost(plan, neighbours)), plan


@dataclass(frozen=True, kw_only=True)
class Trimmed:
    """One trimmed mean of gradients."""

    mechanism: Callable[[float], TrimmedMean]
    needs = ()

    def plan(self, multiplier: float, problem: Any) -> Plan:
        return (Round(events=(self.mechanism(multiplier).event(problem, problem.d),)),)

    def run(self, curator: Curator, loss: Any, domain: Any, multiplier: float, start: Any) -> None:
        w = np.zeros((curator.problem.d, 1))
        trimmed_gradient(curator.everyone(), loss, w, self.mechanism(multiplier))


@dataclass(frozen=True, kw_only=True)
class Parted:
    """Two top columns of those whose signs part the records."""

    picks = 2
    needs = ()

    def plan(self, multiplier: float, problem: Any) -> Plan:
        answer = problem.separations(ClampedMean(1.0))
        return (Round(events=(NoisyTopK(multiplier, self.picks).event(answer),)),)

    def run(self, curator: Curator, loss: Any, domain: Any, multiplier: float, start: Any) -> None:
        w = np.zeros((curator.problem.rows, 1))
        answer = curator.everyone().separations(loss, w, ClampedMean(1.0))
        answer.release(NoisyTopK(multiplier, self.picks))


@dataclass(frozen=True, kw_only=True)
class MeanDerivative:
    """One release of the mean derivative at zero."""

    needs = ()

    def plan(self, multiplier: float, problem: Any) -> Plan:
        answer = problem.derivatives(ClippedMean(1.0))
        return (Round(events=(GaussianNoise(multiplier).event(answer),)),)

    def run(self, curator: Curator, loss: Any, domain: Any, multiplier: float, start: Any) -> None:
        w = np.zeros((curator.problem.rows, 1))
        answer = curator.everyone().derivatives(loss, w, ClippedMean(1.0))
        answer.release(GaussianNoise(multiplier))


@dataclass(frozen=True, kw_only=True)
class ByGroup:
    """One question about the first column, in groups that the second and the third indicate.

    The third indicates all groups but the first: a row is in one of them, or in none.
    """

    cells: bool
    groups: int = 2
    needs = ()

    def plan(self, multiplier: float, problem: Any) -> Plan:
        k = self.groups
        answer = problem.cell_counts(1, 1, k) if self.cells else problem.column_moments(1, k)
        return (Round(events=(GaussianNoise(multiplier).event(answer),)),)

    def run(self, curator: Curator, loss: Any, domain: Any, multiplier: float, start: Any) -> None:
        batch, by = curator.everyone(), [[1] + [2] * (self.groups - 1)]
        answer = batch.cell_counts([0], [0.0], by) if self.cells else batch.column_moments([0], by)
        answer.release(GaussianNoise(multiplier))


@dataclass(frozen=True, kw_only=True)
class Aggregated:
    """The centre of attention of a function of parts: their one target."""

    mechanism: Callable[[float], SampleAndAggregate]
    needs = ()

    def plan(self, multiplier: float, problem: Any) -> Plan:
        return (Round(events=(self.mechanism(multiplier).event(problem, 1),)),)

    def run(self, curator: Curator, loss: Any, domain: Any, multiplier: float, start: Any) -> None:
        batch = curator.everyone()
        aggregate(batch, lambda x, y: y, np.zeros(1), self.mechanism(multiplier))


def covariances(X: np.ndarray, _: np.ndarray, options: dict[str, Any]) -> Statement:
    """A count, ranges, tails and products of the columns of X."""
    return private_covariance(X, **options).privacy_


class Odds:
    """A model whose log-odds are the feature."""

    classes_ = np.array([0.0, 1.0])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return expit(X * [-1.0, 1.0])


def judged(X: np.ndarray, y: np.ndarray, options: dict[str, Any]) -> Statement:
    """Two histograms that find bins, a table of labels by bin, and means."""
    (statement,) = evaluate(Odds(), X, y, trusted_rowwise=True, **options).statements
    return statement


def opposed(blocks: int, reach: float = HUGE) -> tuple[np.ndarray, np.ndarray]:
    """Others that make the block of the record the median: half the blocks up, half down."""
    X, y = np.ones((12, 1)), np.full(12, math.nan)
    deal = Curator(X, y, budget=Budget(1.0, 0.1), random_state=0).blocks(blocks)
    up = True
    for block in range(blocks):
        if block != deal[RECORD]:
            y[deal == block], up = (reach if up else -reach), not up
    return X, y


def targets(low: int, high: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """``low`` records with target -reach, ``high`` with reach, and the one in question."""
    y = np.array([-reach] * low + [reach] * high)
    y = np.insert(y, RECORD, math.nan)
    return np.ones((len(y), 1)), y


def columns(x: list[float], y: float, rows: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Others that are all alike."""
    return np.tile(np.array(x), (rows, 1)), np.full(rows, y)


def parted() -> tuple[np.ndarray, np.ndarray]:
    """Others that the signs of two columns part as their targets say, and of two against."""
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    y[RECORD] = math.nan
    return y[:, None] * np.array([1e-3, 1e-3, -1e6, -1e6]), y


def leaning(x: float, y: float) -> tuple[np.ndarray, np.ndarray]:
    """One other record, that makes one of two choices the rarer one."""
    X, targets = np.ones((12, 1)), np.full(12, math.nan)
    X[0], targets[0] = x, y
    return X, targets


def trimmed_mean(multiplier: float) -> TrimmedMean:
    return TrimmedMean(multiplier=multiplier, trim=20, low=-1.0, high=1.0, smoothness=0.04)


def aggregated_mean(multiplier: float) -> SampleAndAggregate:
    return SampleAndAggregate(
        multiplier=multiplier, blocks=41, radius=1.0, smoothness=0.06, delta=0.01
    )


HALVES = {"others": targets(25, 24, HUGE), "one": (1.0, HUGE), "other": (1.0, -HUGE)}
"""Trimmed at 20 of 50: the sum moves by all of its sensitivity."""
POINTS = {"others": targets(21, 19, 0.25), "one": (1.0, 0.25), "other": (1.0, -0.25)}
"""21 or 22 of 41 points hold the centre."""
TURNED = {"one": ([1.0, -1.0], -HUGE), "other": ([1.0, -1.0], HUGE)}
"""Two features: one entry of the gradient rises where the other falls."""
SIDES: Any = {"one": ([1.0, 1.0], -1.0), "other": ([1.0, -1.0], -1.0), "start": [[1.0], [0.0]]}
"""The second entry of the gradient at ``start`` moves from one end of its range to the other."""
BALANCE = np.array([[1.0, 1.0]] + 17 * [[0.5, 0.0]]), np.array([-1.0] + 17 * [1.0])
"""Others for `SIDES`: the first entry of all gradients together is 0."""
PURE = Budget(2.0, 0.0)
LOOSE: Any = {"budget": Budget(8.0, 0.05), "part": 0.0, "sabotage": 0.05}
"""What is proved of noise in proportion to a smooth sensitivity is more than it can cost."""
STEPS: Any = {"steps": 2, "step_size": 0.1}
HALF = PoissonBatches(0.5)
SGD = StochasticProximalGradient


def net_search(order: float, others: int) -> Fit:
    """Two candidates; a record that fits one of them exactly, and the other not at all."""
    domain = L2Ball(radius=1.0)
    here, there = domain.net(2, 1).points[:, 0]
    return Fit(
        algorithm=NetSearch(points=2, scale=1.0, order=order), loss=AbsoluteLoss(), domain=domain,
        one=(1e6, 1e6 * here), other=(1e6, 1e6 * there), budget=PURE, draws=1 + others,
        others=leaning(1e6, 1e6 * here if others else math.nan),
    )  # fmt: skip


FEW_STEPS = Tuning(
    steps=2, column_summaries=0.01, other=0.01, screening=1.0,
)  # fmt: skip
"""Most of the budget goes to gradients and selections, which are moved most."""

FITS: dict[str, Fit] = {
    "auto": Fit(
        algorithm=ScaledDescent(tuning=FEW_STEPS), one=(1.0, -1e6), other=(1.0, 1e6),
    ),
    "auto, few features": Fit(
        algorithm=ScaledDescent(targets="binary", sparsity=1, tuning=FEW_STEPS),
        loss=LogisticLoss(), others=columns([1.0, 1.0], -1.0),
        one=([1.0, -1.0], 1.0), other=([1.0, -1.0], -1.0),
    ),
    "auto, few features of numbers": Fit(
        algorithm=ScaledDescent(sparsity=2, tuning=FEW_STEPS),
        loss=AbsoluteLoss(), others=columns([1.0, 1.0, 1.0], -1.0, rows=60),
        one=([1.0, -1.0, 1.0], 1.0), other=([1.0, -1.0, 1.0], -1.0),
    ),
    "separations": Fit(
        algorithm=Parted(), loss=AbsoluteLoss(), others=parted(),
        one=([HUGE, -HUGE, HUGE, -HUGE], -1.0), other=([HUGE, -HUGE, HUGE, -HUGE], 1.0),
    ),
    "mean derivative": Fit(algorithm=MeanDerivative()),
    "cell counts": Fit(
        algorithm=ByGroup(cells=True), others=columns([0.0, 1.0, 0.0], 0.0), part=0.1,
        one=([HUGE, 1.0, 0.0], 0.0), other=([-HUGE, 0.0, 1.0], 0.0),
    ),
    "column moments": Fit(
        algorithm=ByGroup(cells=False), others=columns([0.0, 1.0, 0.0], 0.0), part=0.1,
        one=([HUGE, 1.0, 0.0], 0.0), other=([-HUGE, 1.0, 0.0], 0.0),
    ),
    "covariances": Fit(
        algorithm=covariances, others=columns([math.nan] * 2, 0.0),
        one=([1e19, 0.0], 0.0), other=([0.0, 1e19], 0.0),
    ),
    "labels and log-odds": Fit(
        algorithm=judged, others=columns([0.5], 1.0), part=0.1, one=([40.0], 1.0),
        other=([-40.0], 1.0),
    ),
    "W20 1, a function": Fit(algorithm=Aggregated(mechanism=aggregated_mean), **POINTS, **LOOSE),
    "W20 1": Fit(
        algorithm=AggregatedMinimizer(
            blocks=41, radius=1.0, smoothness=0.06, delta=0.01, iterations=1
        ),
        **POINTS, **LOOSE,
    ),
    "W20 2": Fit(algorithm=Trimmed(mechanism=trimmed_mean), **HALVES, **LOOSE),
    "W20 3": Fit(
        algorithm=TrimmedDescent(
            steps=2, step_size=0.1, low=-0.5, high=0.5, trim=20, smoothness=0.04
        ),
        loss=AbsoluteLoss(), **HALVES, **LOOSE,
    ),
    "W20 3, clipped": Fit(
        algorithm=TrimmedDescent.clipped(
            steps=2, step_size=0.1, low=-1.0, high=1.0, trim=20, smoothness=0.04
        ),
        loss=AbsoluteLoss(), **HALVES, **LOOSE,
    ),
    "W20 4": Fit(algorithm=CatoniDescent(**STEPS, scale=1.0, smoothing=3.0)),
    "W20 4, batches": Fit(
        algorithm=CatoniDescent(**STEPS, scale=1.0, smoothing=3.0, sampling=HALF)
    ),
    "Holland": Fit(algorithm=CatoniDescent.holland(12, steps=3, second_moment=1.0, curvature=9.0)),
    "Holland, batches": Fit(
        algorithm=CatoniDescent.holland(12, steps=3, second_moment=1.0, curvature=9.0, batch=6)
    ),
    "W19 1": Fit(algorithm=ProximalGradient(**STEPS, threshold=1.0)),
    "W19 2": Fit(algorithm=FrankWolfe(**STEPS, threshold=1.0), domain=L2Ball(radius=1.0)),
    "W19 3": Fit(algorithm=MirrorDescent(**STEPS, threshold=1.0), domain=L1Ball(radius=1.0)),
    "W19 4": Fit(algorithm=FrankWolfeCorners(**STEPS, threshold=1.0)),
    "Zhang et al.": Fit(
        algorithm=RandomRoundDescent(rows=2, **STEPS, threshold=1.0)
    ),
    "Wang, Ye, Xu": Fit(algorithm=NoisyDescent(**STEPS, threshold=1.0)),
    "Tang et al.": Fit(
        algorithm=BoostedAdaSSP(steps=1, radius=1.0, threshold=1.0),
        others=(np.zeros((12, 2)), np.full(12, math.nan)), one=([1.0, 0.0], -HUGE),
        other=([0.5, math.sqrt(0.75)], HUGE), draws=2,
    ),
    "Lowy, Razaviyayn": Fit(algorithm=OnePassDescent(**STEPS, threshold=1.0)),
    "X23 1": Fit(algorithm=SGD(mean=ClippedMean(1.0), **STEPS, sampling=HALF)),
    "X23 2, 3": Fit(
        algorithm=SGD(mean=ClampedMean(1.0, blocks=3), **STEPS, sampling=HALF), others=opposed(3)
    ),
    "X23 4": Fit(algorithm=SGD(mean=SmoothedCatoniMean(1.0, 1.5), **STEPS, sampling=HALF)),
    "Hu, HTDP-FW": Fit(
        algorithm=HeavyTailedFrankWolfe(steps=1, scale=1.0), others=leaning(1.0, -HUGE), budget=PURE
    ),
    "Hu, HTP-LASSO": Fit(
        algorithm=TruncatedLasso(steps=1, truncation=1.0), others=BALANCE, budget=PURE, draws=4,
        **SIDES,
    ),
    "Hu, sparse regression": Fit(
        algorithm=TruncatedSparseRegression(steps=1, step_size=4.0, truncation=1.0, sparsity=1),
        others=columns([0.0, 1.0], -1.0), draws=3, **SIDES,
    ),
    "Hu, sparse optimization": Fit(
        algorithm=SparsePeeling.smoothed(steps=1, step_size=1.0, scale=1.0, sparsity=1),
        others=columns([1.0, 1.0], -HUGE), **TURNED,
    ),
    "T22 1": Fit(
        algorithm={"method": "truncated", "threshold": 1.0}, one=(1.0, 1.0), other=(1.0, -1.0)
    ),
    "T22 2, convex": Fit(
        algorithm=MedianOfMeansDescent(**STEPS, threshold=1.0, blocks=3),
        others=opposed(3), loss=AbsoluteLoss(),
    ),
    "T22 2, strongly convex": Fit(
        algorithm=MedianOfMeansDescent(
            **STEPS, threshold=1.0, blocks=1, sampling=DisjointParts(2)
        ),
        loss=AbsoluteLoss(),
    ),
    "T22 3": Fit(
        algorithm={"method": "truncated", "threshold": 1.0, "blocks": 3},
        others=opposed(3, 1.0), one=(1.0, 1.0), other=(1.0, -1.0),
    ),
    "T22 4, 5": Fit(
        algorithm=SparsePeeling(
            mean=TruncatedMean(1.0), steps=1, step_size=1.0, peeling=LaplacePeeling(sparsity=1)
        ),
        others=columns([1.0, 1.0], -HUGE), loss=AbsoluteLoss(), sabotage=0.1, **TURNED,
    ),
    "T22 4, 5, one-shot": Fit(
        algorithm=SparsePeeling(
            mean=TruncatedMean(1.0), steps=1, step_size=1.0, peeling=OneShotPeeling(sparsity=1)
        ),
        others=columns([1.0, 1.0], -HUGE), loss=AbsoluteLoss(), **TURNED,
    ),
    "W22 1": net_search(2.0, others=1),
    "W22 2": net_search(1.3, others=0),
    "KSU 2020": Fit(algorithm={"method": "ksu"}),
    "KSU 2020, projected": Fit(algorithm={"method": "clipped"}),
    "KLZ 2022, medians": Fit(
        algorithm={"method": "clamped", "threshold": 1.0, "blocks": 3}, others=opposed(3)
    ),
    "KLZ 2022, smoothed": Fit(algorithm={"method": "catoni"}),
    "CoinPress": Fit(algorithm={"method": "coinpress"}),
}  # fmt: skip
"""By paper (as in docs/errata.md) and box."""


BOTH = ("W20 4", "X23 1", "T22 4, 5", "W22 2")
"""Audited under both relations: one of each kind whose bills differ between them."""


def main(names: list[str]) -> None:
    """Print what audits of the boxes find whose names begin so, or of all of them."""
    begun = time.process_time()
    titles = f"{'box':26}{'neighbours':13}{'claimed epsilon, delta':24}{'audited':>9}"
    print(f"{titles}{'seconds':>9}{'best share':>12}")
    for name, fit in FITS.items():
        if names and not name.startswith(tuple(names)):
            continue
        for neighbours in NEIGHBOURS if name in BOTH else NEIGHBOURS[:1]:
            start = time.process_time()
            verdict, _ = audited(fit, neighbours)
            at = DELTAS.index(fit.budget.delta)
            took = time.process_time() - start
            claim = f"{verdict.claimed[at]:.3f}, {fit.budget.delta:g}"
            print(
                f"{name:26}{neighbours:13}{claim:24}{verdict.observed[at]:9.3f}{took:9.1f}"
                f"{verdict.share:12.2f}",
                flush=True,
            )
            assert not verdict.caught, verdict
    print(f"{time.process_time() - begun:.0f} seconds of one processor")


if __name__ == "__main__":
    main(sys.argv[1:])
