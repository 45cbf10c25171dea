"""Empirical audits: what an enemy can tell from releases, against what the accountant claims.

`audits` says how. Every honest audit must stay below its claim (false-alarm chance: ALPHA for each
of 18 comparisons, with OS randomness where noise is exact, none where it is seeded), and reach a
stated part of it, so that it has the power to notice. Every sabotaged twin must be caught.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audits import BOTH, FITS, HUGE, ByGroup, Draws, Fit, audit, audited, lower_bound

from privtail.algorithms import TABLE
from privtail.default import AUTO
from privtail.losses import AbsoluteLoss
from privtail.mean import METHODS
from privtail.robust_means import ClampedMean
from privtail.trusted import kernels, questions
from privtail.trusted.accountants import Cost, cost
from privtail.trusted.budget import Budget, Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.deals import Coins
from privtail.trusted.events import Plan, Round
from privtail.trusted.folds import Folds
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.means import Ball, Interval
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.samplers import ExactSampler
from privtail.trusted.mechanisms.selection import NoisyMax
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.problem import Problem
from privtail.trusted.records.persons import Persons
from privtail.trusted.row_errors import LinearModel
from privtail.trusted.sampling import PoissonBatches
from privtail.trusted.search import BestTrial, Found, Score, TrialSearch, best_of
from privtail.trusted.sensitivity import Norms, Sensitivity
from privtail.trusted.smooth import aggregate, trimmed
from privtail.trusted.smooth.aggregate import SampleAndAggregate
from privtail.trusted.smooth.trimmed import TrimmedMean

BUDGET = Budget(1.5, 0.05)
COPIES = 100_000
RADIUS = 2.0**30
ENDLESS = PredictionRanges.of([[-math.inf, math.inf]], [-math.inf, math.inf])


def test_the_audit_finds_a_known_epsilon_and_no_more() -> None:
    """Seeded: randomized response at epsilon = 1, and two equal data sets."""
    rng = np.random.default_rng(0)
    p = math.e / (1 + math.e)
    answers = rng.random(COPIES) < p, rng.random(COPIES) < 1 - p
    found = lower_bound((answers[0].astype(float), answers[1].astype(float)), 0.0)
    assert 0.9 < found <= 1.0
    same = rng.normal(size=COPIES), rng.normal(size=COPIES)
    assert lower_bound(same, 0.0) < 0.2
    assert lower_bound(same, 0.01) == pytest.approx(0.0, abs=0.2)


# Mechanisms, with exact noise: one vector release of 10^5 copies for each neighbour


def copies(norm: str, unit: float = 1.0) -> Sensitivity:
    """The promise for one copy: as if each coordinate were a release of its own."""
    reach = Norms(RADIUS, RADIUS, RADIUS)
    both = Norms(2 * RADIUS, 2 * RADIUS, 2 * RADIUS)
    one = Sensitivity(size=1, unit=unit, radius=reach, diameter=both, magnitude=2**32)
    assert getattr(one.radius, norm) == RADIUS
    return one


def vector_release(
    mechanism: Any, norm: str, sampler: Any, moved: float = 2.0
) -> tuple[Draws, Plan]:
    """Releases on neighbours whose values differ by ``moved`` radii, and the plan of one copy."""
    one = copies(norm)
    plan = (Round(events=(mechanism.event(one),)),)
    values = (np.full(COPIES, int(moved * RADIUS)), np.zeros(COPIES, dtype=np.int64))
    return tuple(mechanism.release(v, one, sampler) for v in values), plan  # type: ignore[return-value]


class Halved(ExactSampler):
    """Half the noise that was billed."""

    def gaussian(self, values: Any, scale: float) -> Any:
        return super().gaussian(values, scale / 2)

    def laplace(self, values: Any, scale: float) -> Any:
        return super().laplace(values, scale / 2)

    def top(self, values: Any, scale: float, count: int) -> Any:
        return super().top(values, scale / 2, count)


ADDITIVE = pytest.mark.parametrize(
    ("mechanism", "norm", "part"),
    [(GaussianNoise(2.0), "l2", 0.8), (LaplaceNoise(2.0), "l1", 0.9)],
    ids=["gaussian", "laplace"],
)


@pytest.mark.slow
@ADDITIVE
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_additive_noise(mechanism: Any, norm: str, part: float, neighbours: Neighbours) -> None:
    """mu = 1 (Gaussian) and epsilon = 1 (Laplace) under replace-one, half of it under zero-out."""
    moved = 2.0 if neighbours == "replace_one" else 1.0
    draws, plan = vector_release(mechanism, norm, ExactSampler(), moved)
    verdict = audit(draws, cost(plan, neighbours))
    assert not verdict.caught, verdict
    assert verdict.share > part - 0.3, verdict


@pytest.mark.slow
@ADDITIVE
def test_half_the_noise_is_caught(mechanism: Any, norm: str, part: float) -> None:
    draws, plan = vector_release(mechanism, norm, Halved())
    assert audit(draws, cost(plan, "replace_one")).caught


@pytest.mark.slow
@ADDITIVE
def test_half_the_sensitivity_is_caught(mechanism: Any, norm: str, part: float) -> None:
    """The value moves by four radii where two were promised."""
    draws, plan = vector_release(mechanism, norm, ExactSampler(), moved=4.0)
    assert audit(draws, cost(plan, "replace_one")).caught


@pytest.mark.slow
@ADDITIVE
def test_zero_out_billed_for_replace_one_is_caught(mechanism: Any, norm: str, part: float) -> None:
    draws, plan = vector_release(mechanism, norm, ExactSampler())
    assert audit(draws, cost(plan, "zero_out")).caught


def choices(sampler: Any, count: int = 20_000) -> tuple[Draws, Plan]:
    """A record that raises one score by a diameter and lowers the other by one; epsilon = 2."""
    step = 1000.0
    reach = Norms(math.inf, math.inf, step)
    one = Sensitivity(size=2, unit=1.0, radius=reach, diameter=reach, magnitude=10**6)
    mechanism = NoisyMax(1.0)
    start = np.array([-3000, 0], dtype=np.int64)
    moved = start + np.array([1000, -1000])
    draws = [
        np.array([1.0 - mechanism.release(v, one, sampler) for _ in range(count)])
        for v in (moved, start)
    ]
    return (draws[0], draws[1]), (Round(events=(mechanism.event(one),)),)


@pytest.mark.slow
def test_noisy_max() -> None:
    draws, plan = choices(ExactSampler())
    verdict = audit(draws, cost(plan, "replace_one"))
    assert verdict.claimed[0] == pytest.approx(2.0)
    assert not verdict.caught, verdict
    assert verdict.share > 0.4, verdict


@pytest.mark.slow
def test_noisy_max_with_half_the_noise_is_caught() -> None:
    draws, plan = choices(Halved())
    assert audit(draws, cost(plan, "replace_one")).caught


# Poisson batches, with exact noise


def heads(coins: Coins, count: int) -> np.ndarray:
    """Which of the ids are in."""
    found = np.zeros(count, dtype=bool)
    found[coins.within(0, count)] = True
    return found


def batch_releases(rate: float, multiplier: float, once: bool, sampler: Any) -> Draws:
    """Two releases that both hold the record, of one batch (``once``) or of a batch each.

    The statistic is the likelihood ratio of the two releases.
    """
    noise, one = GaussianNoise(multiplier), copies("l2", 1 / RADIUS)
    seen: list[np.ndarray] = []
    for present in (True, False):
        coins = [heads(sampler.coins(rate), COPIES) for _ in range(2)]
        if once:
            coins[1] = coins[0]
        x, y = (noise.release((c & present) * int(RADIUS), one, sampler) for c in coins)
        if once:
            ratio = np.exp(np.minimum((x + y - 1) / multiplier**2, 600))
            seen.append(np.log1p(rate * (ratio - 1)))
        else:
            each = [np.exp(np.minimum((v - 0.5) / multiplier**2, 600)) for v in (x, y)]
            seen.append(sum(np.log1p(rate * (r - 1)) for r in each))
    return seen[0], seen[1]


RATE, STD = 0.15, 0.7


def batch_bill(once: bool) -> Cost:
    event = GaussianNoise(STD).event(copies("l2"))
    sampling = PoissonBatches(RATE)
    if once:
        return cost((Round(sampling=sampling, events=(event, event)),), "zero_out")
    return cost((Round(sampling=sampling, events=(event,), times=2),), "zero_out")


@pytest.mark.slow
@pytest.mark.parametrize("once", [True, False])
def test_poisson_batches(once: bool) -> None:
    verdict = audit(batch_releases(RATE, STD, once, ExactSampler()), batch_bill(once))
    assert not verdict.caught, verdict
    assert verdict.share > 0.35, verdict


@pytest.mark.slow
def test_one_batch_billed_as_two_samples_is_caught() -> None:
    """Seeded: the margin is narrow at this many draws."""
    draws = batch_releases(RATE, STD, True, SimulatedSampler(2))
    verdict = audit(draws, batch_bill(once=False))
    assert verdict.caught, verdict


# The best of a secret number of trials, each one Gaussian release


def search_releases(count: int, trials: int, sampler: Any) -> Draws:
    """The best released loss, where one record moves that of every trial by its diameter."""
    rng = np.random.default_rng(0)

    def best(mean: float) -> float:
        return best_of(lambda: Found(0, None, rng.normal(mean, 1)), trials, sampler).loss

    one, zero = (np.array([best(mean) for _ in range(count)]) for mean in (1, 0))
    return one, zero


def search_bill(trials: int) -> Cost:
    event = BestTrial(multiplier=1.0, trials=trials).event()
    return cost((Round(events=(event,)),), "replace_one")


@pytest.mark.slow
def test_a_search_costs_what_it_says_and_more_than_one_trial() -> None:
    """Seeded. One trial is mu = 1; billed as that, a search of ten on average is caught."""
    draws = search_releases(40_000, 10, SimulatedSampler(1))
    verdict = audit(draws, search_bill(10))
    assert not verdict.caught, verdict
    assert verdict.share > 0.3, verdict
    one_trial = (Round(events=(GaussianNoise(1.0).event(copies("l2")),)),)
    assert audit(draws, cost(one_trial, "zero_out")).caught


class Counted(SimulatedSampler):
    """A number of trials that is no secret: a hundred, every time."""

    left = 0

    def below(self, count: int) -> int:
        self.left = (self.left + 1) % 100
        return self.left


@pytest.mark.slow
def test_a_number_of_trials_that_is_no_secret_is_caught() -> None:
    """Seeded; billed as a geometric number of two."""
    assert audit(search_releases(4_000, 100, Counted(1)), search_bill(2)).caught


# A search that protects persons: five of twelve rows are one person's

ROWS = 5
HELD_OUT, TRAINING = 0, 1
"""Public seeds that deal this person to the one part, or to the other."""


def person_releases(count: int, seed: int, near: Neighbours) -> Draws:
    """The score where the person is held out, else the released mean of the fit."""
    sampler, n = SimulatedSampler(7), 12
    mechanism, mean = BestTrial(multiplier=1.0, trials=2, rows=ROWS), ClampedMean(1.0)
    budget, groups = Budget(1e6, 1e-3, near), np.maximum(np.arange(n), ROWS - 1).astype(object)

    def released(value: float) -> float:
        X, y, ids = np.zeros((n, 1)), np.zeros(n), groups.copy()
        X[:ROWS] = y[:ROWS] = value
        if near == "zero_out" and value == 0:
            ids[:ROWS] = None
        whole = Curator(
            X, y, budget=budget, noise="simulated", random_state=seed, groups=ids, max_rows=ROWS
        )
        whole._sampler = sampler

        def fit(which: int, part: Any, allowance: Any, chance: int) -> tuple[float, Any, Any]:
            own = Curator(
                part.X, budget=budget, ledger=allowance, noise="simulated", random_state=chance,
                groups=part.groups, max_rows=ROWS,
            )  # fmt: skip
            answer = own.problem.means(mean)
            moves = answer.diameter if near == "replace_one" else answer.radius
            noise = GaussianNoise(moves.l2 / answer.radius.l2 * (1 + 1e-9))
            own.open((Round(events=(noise.event(answer),)),))
            released = float(own.everyone().means(mean).release(noise)[0])
            return released, np.zeros((2, 1)), ENDLESS

        search = TrialSearch(whole, X, y, n // 2, noise="simulated")
        whole.open((Round(events=(mechanism.event(),)),))
        found = search.run(mechanism, 1, fit, Score(AbsoluteLoss(), 1.0))
        if value:
            assert (0 in search._held_out.groups.positions) == (seed == HELD_OUT)
        return found.loss if seed == HELD_OUT else found.model

    far = -1.0 if near == "replace_one" and seed == TRAINING else 0.0
    one, other = (np.array([released(v) for _ in range(count)]) for v in (1.0, far))
    return one, other


def person_bill(near: Neighbours) -> Cost:
    event = BestTrial(multiplier=1.0, trials=2, rows=ROWS).event()
    return cost((Round(events=(event,)),), near)


@pytest.mark.slow
@pytest.mark.parametrize("near", ["replace_one", "zero_out"])
@pytest.mark.parametrize("seed", [HELD_OUT, TRAINING])
def test_a_search_costs_a_person_what_it_says(seed: int, near: Neighbours) -> None:
    """Seeded. A trial is mu = 1 for a person of five rows, in either part."""
    verdict = audit(person_releases(1_500, seed, near), person_bill(near))
    assert not verdict.caught, verdict
    assert verdict.share > 0.1, verdict


@pytest.mark.slow
@pytest.mark.parametrize("seed", [HELD_OUT, TRAINING])
def test_a_search_that_takes_a_person_for_a_row_is_caught(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seeded: the noise of one row, for five that change."""

    def answer(self: Problem, **others: Any) -> Sensitivity:
        return Sensitivity(**others)

    monkeypatch.setattr(Problem, "_answer", answer)
    draws = person_releases(1_500, seed, "replace_one")
    assert audit(draws, person_bill("replace_one")).caught


# Two folds: this person is in one fit and in the evaluation


def folded_releases(count: int, near: Neighbours) -> Draws:
    """The sum of all that the fits and the evaluation release, each in deviations of its noise."""
    sampler, n, mean = SimulatedSampler(7), 12, ClampedMean(1.0)
    budget, groups = Budget(1e6, 1e-3, near), np.maximum(np.arange(n), ROWS - 1).astype(object)
    ends = np.array([-math.inf, math.inf])
    model = LinearModel(np.zeros((1, 1)), np.zeros(1), ends[None], ends, ends, "identity", None, {})

    def released(value: float) -> float:
        X, y, ids, total = np.zeros((n, 1)), np.zeros(n), groups.copy(), []
        X[:ROWS] = value
        if near == "zero_out" and value == 0:
            ids[:ROWS] = None
        whole = Curator(
            X, y, budget=budget, noise="simulated", random_state=0, groups=ids, max_rows=ROWS
        )
        folds = Folds(whole, X, y, None, 2)
        multiplier = (1 + 1e-9) / math.sqrt(2 * folds.rho(1.0))

        def spend(seats: Any, allowance: Any) -> None:
            own = Curator(
                X, budget=budget, ledger=allowance, noise="simulated", groups=seats, max_rows=ROWS
            )
            own._sampler = sampler
            answer = own.problem.means(mean)
            moves = answer.diameter if near == "replace_one" else answer.radius
            noise = GaussianNoise(multiplier * moves.l2 / answer.radius.l2)
            event = noise.event(answer)
            own.open((Round(events=(event,)),))
            total.append(float(own.everyone().means(mean).release(noise)[0]) / event.std)

        def fit(fold: int, X: Any, y: Any, exposure: Any, seats: Any, allowance: Any) -> None:
            spend(seats, allowance)

        whole.open((Round(events=(folds.event(1.0),)),))
        folds.run(1.0, fit, lambda _: model, lambda _, seats, allowance: spend(seats, allowance))
        assert len(total) == 3
        return sum(total)

    far = -1.0 if near == "replace_one" else 0.0
    one, other = (np.array([released(v) for _ in range(count)]) for v in (1.0, far))
    return one, other


def folded_bill(near: Neighbours) -> Cost:
    event = replace(BestTrial(multiplier=1.0, trials=1).event(), question="folds")
    return cost((Round(events=(event,)),), near)


@pytest.mark.slow
@pytest.mark.parametrize("near", ["replace_one", "zero_out"])
def test_folds_cost_a_person_what_they_say(near: Neighbours) -> None:
    """Seeded. All together are mu = 1 for a person of five rows."""
    verdict = audit(folded_releases(1_000, near), folded_bill(near))
    assert not verdict.caught, verdict
    assert verdict.share > 0.05, verdict


@pytest.mark.slow
def test_folds_that_take_a_person_for_a_row_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeded: the noise of one row, for five that change."""

    def answer(self: Problem, **others: Any) -> Sensitivity:
        return Sensitivity(**others)

    monkeypatch.setattr(Problem, "_answer", answer)
    draws = folded_releases(1_000, "replace_one")
    assert audit(draws, folded_bill("replace_one")).caught


# Fits from end to end, in simulation on the identical path


def test_every_algorithm_is_audited() -> None:
    assert {type(fit.algorithm) for fit in FITS.values()} >= {
        row.algorithm for row in (AUTO, *TABLE)
    }
    methods = {fit.algorithm["method"] for fit in FITS.values() if isinstance(fit.algorithm, dict)}
    assert methods == set(METHODS)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_fits(name: str) -> None:
    verdict, _ = audited(FITS[name], "replace_one", draws=500)
    assert not verdict.caught, verdict
    assert verdict.share >= FITS[name].part, verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
def test_fits_with_an_empty_slot(name: str) -> None:
    verdict, _ = audited(FITS[name], "zero_out", draws=800)
    assert not verdict.caught, verdict
    assert verdict.share >= FITS[name].part, verdict


def small_claim(name: str) -> Fit:
    """The fit at epsilon = 1: a few hundred draws refute no large claim."""
    return replace(FITS[name], budget=Budget(1.0, FITS[name].budget.delta))


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_fits_with_a_part_of_the_noise_are_caught(name: str) -> None:
    verdict, _ = audited(small_claim(name), "replace_one", 300, FITS[name].sabotage)
    assert verdict.caught, verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["W19 1", "X23 2, 3", "W19 4", "W22 1", "mean derivative"])
def test_fits_with_half_the_sensitivity_are_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in (Ball, Interval):
        honest = kind.norms

        def norms(self: Any, size: int, bits: int, honest: Any = honest) -> tuple[Norms, Norms]:
            halves = [Norms(n.l1 / 2, n.l2 / 2, n.linf / 2) for n in honest(self, size, bits)]
            return halves[0], halves[1]

        monkeypatch.setattr(kind, "norms", norms)
    verdict, _ = audited(small_claim(name), "replace_one", draws=2000)
    assert verdict.caught, verdict


BY_GROUP = pytest.mark.parametrize(
    ("name", "question"), [("cell counts", "cell_counts"), ("column moments", "column_moments")]
)


@pytest.mark.slow
@BY_GROUP
def test_half_the_sensitivity_of_a_question_by_group_is_caught(
    name: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = getattr(Problem, question)

    def half(self: Problem, *sizes: int) -> Sensitivity:
        answer = honest(self, *sizes)
        least = [Norms(x.l1 / 2, x.l2 / 2, x.linf / 2) for x in (answer.radius, answer.diameter)]
        return replace(answer, radius=least[0], diameter=least[1])

    monkeypatch.setattr(Problem, question, half)
    verdict, _ = audited(small_claim(name), "replace_one", draws=2000)
    assert verdict.caught, verdict


@pytest.mark.slow
def test_a_row_that_counts_in_every_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve groups in which a row counts at once: sums move by sqrt 12 of what was billed."""

    def every(self: questions.ColumnMoments, block: questions.Block, sums: np.ndarray) -> None:
        z = np.clip(block.rows.transformed()[:, self.columns[0]], -1.0, 1.0)
        values = np.rint(2.0**block.problem.bits * np.array([z.sum(), (z * z).sum()]))
        sums[0, :, 0] += values

    monkeypatch.setattr(questions.ColumnMoments, "add", every)
    groups = replace(FITS["column moments"], algorithm=ByGroup(cells=False, groups=12))
    fit = replace(groups, budget=small_claim("column moments").budget)
    verdict, _ = audited(fit, "replace_one", draws=2000)
    assert verdict.caught, verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["covariances", "labels and log-odds"])
def test_a_row_that_counts_in_every_cell_above_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts of tails, and of the histograms that find bins, are billed for one cell of a row."""
    honest = questions.Histogram.add

    def add(self: questions.Histogram, block: questions.Block, sums: np.ndarray) -> None:
        own = np.zeros_like(sums)
        honest(self, block, own)
        sums += own.cumsum(axis=-1)

    monkeypatch.setattr(questions.Histogram, "add", add)
    verdict, _ = audited(small_claim(name), "replace_one", draws=800)
    assert verdict.caught, verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["W19 1", "KSU 2020, projected"])
def test_fits_without_an_enforced_range_are_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten radii instead of one: what an influence function that is only believed would let by."""
    honest = kernels.ball_dense

    def ball_dense(*arguments: Any) -> None:
        wide = np.zeros_like(arguments[-1])
        honest(*arguments[:-1], wide)
        arguments[-1][:] += 10 * wide

    monkeypatch.setattr(kernels, "ball_dense", ball_dense)
    verdict, _ = audited(small_claim(name), "replace_one", draws=200)
    assert verdict.caught, verdict


# Noise in proportion to a smooth sensitivity, simulated

TOP = 2**30
MIDDLE = TOP // 2
COLUMNS = {
    "moved": ([0] * 25 + [TOP] * 25, [0] * 24 + [TOP] * 26),
    "stretched": ([MIDDLE] * 50, [MIDDLE] * 49 + [TOP]),
}
"""Trimmed at 20 of 50: the sum moves by all of S; S alone changes, by a factor e^t."""

POINTS = {
    "moved": ([-(2**28)] * 22 + [2**28] * 19, [-(2**28)] * 21 + [2**28] * 20),
    "stretched": ([-(2**28)] * 41, [-(2**28)] * 40 + [2**28]),
}
"""22 of 41 points hold the centre: it moves by half of S; S alone changes, by a factor e^beta."""


def trimmed_draws(pair: str, many: int = 30_000) -> tuple[Draws, Cost]:
    part = 0.04 if pair == "moved" else 0.3
    mechanism = TrimmedMean(multiplier=1.0, trim=20, low=-1.0, high=1.0, smoothness=part)
    problem, sampler = Problem(n=50, d=1), SimulatedSampler(5)
    assert problem.bits == 34
    found = [
        mechanism.release(np.tile(np.array(x, np.int64) * 16, (many, 1)), problem, sampler)
        for x in COLUMNS[pair]
    ]
    bill = cost((Round(events=(mechanism.event(problem, 1),)),), "replace_one")
    if pair == "stretched":
        found = [np.abs(v) for v in found]
    return (found[1], found[0]), bill


def aggregated_draws(pair: str, beta: float = 0.06) -> tuple[Draws, Cost]:
    """As `SampleAndAggregate.release`, many times over."""
    mechanism = SampleAndAggregate(
        multiplier=1.0, blocks=41, radius=1.0, smoothness=beta, delta=0.01
    )
    sampler, found = SimulatedSampler(6), []
    for x in POINTS[pair]:
        points = np.array(x, np.int64)[:, None]
        centre, size = aggregate.centre_of_attention(points, mechanism.smoothness)
        values, sizes = np.full(COPIES, centre[0]), np.full(COPIES, size)
        found.append(sampler.scaled_normal(values, sizes, mechanism.multiplier).astype(float))
    bill = cost((Round(events=(mechanism.event(Problem(n=50, d=1), 1),)),), "replace_one")
    if pair == "stretched":
        found = [np.abs(v + 2**29) for v in found]
    return (found[1], found[0]), bill


@pytest.mark.parametrize(
    ("draws", "pair", "part"),
    [
        (trimmed_draws, "moved", 0.15), (trimmed_draws, "stretched", 0.05),
        (aggregated_draws, "moved", 0.15), (aggregated_draws, "stretched", 0.0005),
    ],
)  # fmt: skip
def test_smooth_noise(draws: Any, pair: str, part: float) -> None:
    verdict = audit(*draws(pair))
    assert not verdict.caught, verdict
    assert verdict.share > part, verdict


@pytest.mark.parametrize("draws", [trimmed_draws, aggregated_draws])
def test_a_fraction_of_the_smooth_noise_is_caught(
    draws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("scaled_laplace_lognormal", "scaled_normal"):
        honest = getattr(SimulatedSampler, name)
        monkeypatch.setattr(
            SimulatedSampler, name,
            lambda self, v, sizes, *more, honest=honest: honest(self, v, sizes / 8, *more),
        )  # fmt: skip
    verdict = audit(*draws("moved"))
    assert verdict.caught, verdict


def test_the_printed_sensitivity_of_a_trimmed_mean_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W20 Algorithm 2, line 1: the range of the data, or e^(-m t) of the interval."""

    def printed(
        values: Any, trim: int, top: int, weights: Any, inside: tuple[int, int]
    ) -> tuple[int, float]:
        n, x = len(values), np.sort(values)
        far = (n - 2 * trim) * weights[1] ** trim * top
        return int(x[trim : n - trim].sum()), max(float(x[-1] - x[0]), far)

    monkeypatch.setattr(trimmed, "trimmed_sum", printed)
    verdict = audit(*trimmed_draws("stretched"))
    assert verdict.caught, verdict


def test_the_printed_sensitivity_of_an_aggregate_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """W20 Algorithm 1, line 5, with the largest radii."""
    honest = aggregate.centre_of_attention

    def printed(points: Any, smoothness: float) -> tuple[Any, float]:
        x, m = points[:, 0], len(points)
        most, averaged = (m + 1) // 2 + 1, math.ceil(1 / smoothness)
        radii = np.sort(np.abs(x[:, None] - x[None, :]), axis=1)
        radii = np.column_stack([radii, np.full(m, 2**29)])
        sizes = [
            2 * np.sort(radii[:, most + k])[-averaged:].mean() * math.exp(-smoothness * k)
            for k in range(m - most + 1)
        ]
        return honest(points, smoothness)[0], 2 * max(sizes)

    monkeypatch.setattr(aggregate, "centre_of_attention", printed)
    verdict = audit(*aggregated_draws("stretched", beta=0.3))
    assert verdict.caught, verdict


# Persons with several rows, with exact noise


def person_release(neighbours: Neighbours, rows: int = 4) -> tuple[Draws, Plan]:
    """Column means of tables that differ in one person; the plan of one release.

    The person holds twice as many huge rows as count; opposite ones, or none, on the other side.
    """
    x = np.zeros((100, 1))
    groups = np.arange(len(x)).astype(object)
    groups[5 : 5 + 2 * rows] = "anna"
    noise, mean, values = GaussianNoise(2.0), ClampedMean(1.0), []
    for sign in (1.0, -1.0 if neighbours == "replace_one" else math.nan):
        x[5 : 5 + 2 * rows] = sign * HUGE
        curator = Curator(
            x.copy(), groups=groups, max_rows=rows, budget=BUDGET, noise="simulated", random_state=0
        )
        curator.open((Round(events=()),))
        answer = curator.everyone().means(mean)
        values.append(np.full(COPIES, answer._value[0]))
    one = answer.sensitivity
    released = [noise.release(v, one, ExactSampler()) for v in values]
    return (released[0], released[1]), (Round(events=(noise.event(one),)),)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_a_person_with_many_rows(neighbours: Neighbours) -> None:
    draws, plan = person_release(neighbours)
    verdict = audit(draws, cost(plan, neighbours))
    assert not verdict.caught, verdict
    assert verdict.share > 0.5, verdict


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
def test_the_noise_of_one_row_is_caught(
    neighbours: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Norms, "times", lambda self, factor: self)
    draws, plan = person_release(neighbours)
    assert audit(draws, cost(plan, neighbours)).caught


@pytest.mark.slow
def test_all_rows_of_a_person_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Persons.seats
    monkeypatch.setattr(Persons, "seats", lambda self, order, rows: honest(self, order, 10**6))
    draws, plan = person_release("replace_one")
    assert audit(draws, cost(plan, "replace_one")).caught
