"""A search among fits that pays once: the best of a secret number of trials.

Formal guarantee
----------------
The records are dealt once, by position and public chance, into a training part and a held-out part
of public sizes. A trial draws a candidate with private uniform chance, fits it to the training
part, and releases one noisy mean of losses on the held-out part. Its outcome is (candidate, model,
score). A record is in one part only.
If it is in the training part, the score is computed from the released model and from records that
do not change; if it is held out, the model is. So a trial costs what the dearer of the two costs,
and both cost at most rho in zCDP: `Allowance` admits one plan of at most rho and fails otherwise,
and the score's noise is at least the sensitivity of the mean times 1/sqrt(2 rho). The candidate is
drawn without records, and what is true of every candidate is true of the draw, which is part of the
outcome.

The number of trials is geometric, drawn with the sampler's private chance and told to nobody. What
leaves is the outcome with the largest score, and nothing of the others: `search_surcharge` proves
the cost of that, and the event is charged before the first trial. The public chance of deals and
blocks is the same in all trials; given it, they are independent.

Assumed, not enforced: ``fit`` keeps nothing of its calls and shows nothing of them. It gets as a
ledger an `Allowance` that nobody else sees; it must not warn, nor fail on what the records
hold. Running time and memory tell the number of trials; they are outside the promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privtail.errors import InvalidInput, NotPlanned, require_whole
from privtail.losses import Loss
from privtail.progress import watching
from privtail.trusted.budget import ROW, Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Round
from privtail.trusted.ledger import Allowance
from privtail.trusted.means import BoundedMean
from privtail.trusted.mechanisms.noise import GaussianNoise, require_multiplier
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.problem import Problem
from privtail.trusted.records.arrays import taken
from privtail.trusted.sensitive import Sensitivity

LARGEST = 1e9
"""Epsilon of the budget of a score; its allowance is what binds."""


@dataclass(frozen=True, kw_only=True)
class BestTrial:
    """The best of a geometric number of trials, each of them 1/(2 ``multiplier``^2)-zCDP.

    Parameters
    ----------
    multiplier : noise of one trial, per sensitivity; 0 means no noise.
    trials : mean number of trials; the number itself stays secret.

    Formal guarantee
    ----------------
    That of the module.
    """

    multiplier: float
    trials: int

    def __post_init__(self) -> None:
        require_multiplier(self)
        require_whole("trials", self.trials, 1)

    @property
    def rho(self) -> float:
        """What one trial may cost, in zCDP."""
        return 1 / (2 * self.multiplier**2) if self.multiplier else math.inf

    def event(self) -> Event:
        """The bill of the whole search, however many trials there will be."""
        return Event(
            law="best_trial",
            scale=self.multiplier,
            radius=1.0,
            diameter=1.0,
            coordinates=1,
            trials=self.trials,
            question="search",
        )


@dataclass(frozen=True)
class Part:
    """Some of the records, in containers of the user's kind."""

    X: Any
    y: Any


@dataclass(frozen=True)
class Found:
    """The released outcome of a search: the candidate, its fit, its noisy mean loss."""

    candidate: int
    model: Any
    loss: float


Fit = Callable[[int, Part, Allowance, int], tuple[Any, ArrayLike]]
"""From a candidate, the training part, an allowance and a seed to a released model and its w."""


class TrialSearch:
    """A deal of a curator's records into a training and a held-out part, and the search on them.

    Parameters
    ----------
    curator : holds all records, and the plan that pays for the search.
    X, y : its records, in the user's containers.
    held_out : how many records are held out, the same for all data.
    options : of the `Curator` of the held-out part: noise, classes, categories.

    Raises
    ------
    InvalidInput
        If the records are not rows of their own (``groups``), or cannot be dealt.
    """

    def __init__(self, curator: Curator, X: Any, y: Any, held_out: int, **options: Any) -> None:
        n = curator.problem.n
        if curator.unit != ROW:
            raise InvalidInput(
                "A search protects rows, not persons: how the rows of persons fall into two parts "
                "would tell who is in the table. Leave groups and max_rows out."
            )
        require_whole("held_out", held_out, 1)
        if held_out >= n:
            raise InvalidInput(f"Of {n} records, {held_out} cannot be held out.")
        order = curator._public.permutation(n)
        last, first = np.sort(order[:held_out]), np.sort(order[held_out:])
        self._curator, self._options, self._count = curator, options, held_out
        self._training = Part(taken(X, first), taken(y, first))
        self._held_out = Part(taken(X, last), taken(y, last))

    @property
    def problem(self) -> Problem:
        """The public sizes of the training part."""
        n = self._curator.problem.n - self._count
        return replace(self._curator.problem, n=n, expected=float(n))

    def noise(self, mechanism: BestTrial, bound: float) -> float:
        """Standard deviation of the noise in a mean loss that is clamped to [0, bound]."""
        problem = replace(self._curator.problem, n=self._count, expected=float(self._count))
        answer = problem.scores(1, BoundedMean(bound))
        return _noise(mechanism, answer).event(answer).std

    def run(
        self, mechanism: BestTrial, candidates: int, fit: Fit, loss: Loss, bound: float
    ) -> Found:
        """Draw, fit and score trials; return the best. The next planned event pays for all.

        ``loss`` is clamped to [0, ``bound``] for every held-out record; w is (d + 1, K), the
        intercept last.
        """
        if type(mechanism) is not BestTrial:
            raise NotPlanned("A search is released by BestTrial only.")
        opening = self._curator.everyone()._opening
        sampler = opening.charge(mechanism.event())
        with watching(_unseen):
            best = best_of(
                lambda: self._trial(sampler, mechanism, candidates, fit, loss, bound),
                mechanism.trials,
                sampler,
            )
        opening.released()
        return best

    def _trial(
        self, sampler: Sampler, mechanism: BestTrial, candidates: int, fit: Fit, loss: Loss,
        bound: float,
    ) -> Found:  # fmt: skip
        candidate, seed = sampler.below(candidates), sampler.below(2**32)
        allowance = Allowance(mechanism.rho, self._curator.budget.neighbours)
        model, w = fit(candidate, self._training, allowance, seed)
        if not allowance.spent:
            raise NotPlanned("A trial has spent nothing: its fit is not on the allowance.")
        return Found(candidate, model, self._loss(mechanism, loss, w, bound, seed))

    def _loss(
        self, mechanism: BestTrial, loss: Loss, w: ArrayLike, bound: float, seed: int
    ) -> float:
        """The released mean loss of w on the held-out part."""
        neighbours, mean = self._curator.budget.neighbours, BoundedMean(bound)
        allowance = Allowance(mechanism.rho, neighbours)
        epsilon = LARGEST if mechanism.multiplier else math.inf
        judge = Curator(
            self._held_out.X, self._held_out.y, intercept=True, outputs=loss.outputs,
            budget=Budget(epsilon, self._curator.budget.delta, neighbours),
            ledger=allowance, random_state=seed, **self._options,
        )  # fmt: skip
        answer = judge.problem.scores(1, mean)
        noise = _noise(mechanism, answer)
        judge.open((Round(events=(noise.event(answer),)),))
        return float(judge.everyone().scores(loss, [w], mean).release(noise)[0])


def best_of(trial: Callable[[], Found], trials: int, sampler: Sampler) -> Found:
    """The trial of least loss among a geometric number of them, ``trials`` on average."""
    best = trial()
    while sampler.below(trials):
        other = trial()
        best = other if other.loss < best.loss else best
    return best


def _noise(mechanism: BestTrial, answer: Sensitivity) -> GaussianNoise:
    """Noise of a score, a hair above what rho asks for under either relation of neighbours."""
    ratio = answer.diameter.l2 / answer.radius.l2 * (1 + 1e-12)
    return GaussianNoise(mechanism.multiplier * ratio)


def _unseen(done: int, planned: int) -> None:
    """Progress inside a trial is shown to nobody: it would count the trials."""
