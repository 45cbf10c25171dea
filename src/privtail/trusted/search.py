"""A search among fits that pays once: the best of a secret number of trials.

Formal guarantee
----------------
The records are dealt once, by position and public chance, into a training part and a held-out part
of public sizes. A trial draws a candidate with private uniform chance, fits it to the training
part, and releases one noisy mean of losses, or of how far they differ from a public point's, on the
held-out part. Its outcome is (candidate, model, score). A record is in one part only. If it is in
the training part, the score is computed from the released model and from records that do not
change; if it is held out, the model is. The ranges to which features and margins are clipped are of
the released model too, so a held-out record's loss is a function of that record alone. So a trial
costs what the dearer of the two costs, and both cost at most rho in zCDP: `Allowance` admits
plans of at most rho together and fails otherwise, and the score's noise is at least the sensitivity
of the mean times 1/sqrt(2 rho). The candidate is drawn without records, and what is true of every
candidate is true of the draw, which is part of the outcome.

One person, several rows. Positions are dealt as above, and the first position of a person, in the
public order of `Curator`, takes all rows of the person along. So a person is in one part only, and
the argument above holds with "person" for "record", if neighbours differ in the rows of one person
and every other person stays in the same part with the same rows that count: `Persons.seats` decides
both from that person's own positions and public chance. Under replace-one the exchanged person has
the same positions, hence the same part; under zero-out the emptied person leaves a part and nobody
moves. How many rows fall into a part is no public number then (it tells under zero-out whether
somebody is there), so nothing depends on it: both parts keep all n positions, those of others
without a seat, and the public size that they would have as rows is the divisor. At most
``max_rows`` of the held-out contributions to a score change, so it moves by at most ``max_rows``
times as far as for one, which is what `Problem.scores` and `Problem.improvement` say and the noise
follows; a fit is charged for ``max_rows`` rows of the training part in the same way.

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
from numpy.typing import ArrayLike, NDArray

from privtail.errors import InvalidInput, NotPlanned, require_whole
from privtail.losses import Loss
from privtail.progress import watching
from privtail.trusted.allowance import Allowance
from privtail.trusted.batch import Batch
from privtail.trusted.budget import ROW, Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event, Round, read_whole
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.means import CheckedMean, Interval
from privtail.trusted.mechanisms.noise import GaussianNoise, require_multiplier
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.problem import Problem
from privtail.trusted.records import is_file
from privtail.trusted.records.arrays import taken
from privtail.trusted.records.persons import Seats
from privtail.trusted.sensitivity import Sensitivity

MOST = 10**6
"""Trials that a search may have on average: it would have no end."""

LARGEST = 1e9
"""Epsilon of the budget of a score; its allowance is what binds."""


@dataclass(frozen=True, kw_only=True)
class BestTrial:
    """The best of a geometric number of trials, each of them 1/(2 ``multiplier``^2)-zCDP.

    Parameters
    ----------
    multiplier : noise of one trial, per sensitivity; 0 means no noise.
    trials : mean number of trials; the number itself stays secret.
    rows : how many rows of a person count. The noise is for this many; a statement claims no more.

    Formal guarantee
    ----------------
    That of the module.
    """

    multiplier: float
    trials: int
    rows: int = 1

    def __post_init__(self) -> None:
        require_multiplier(self)
        read_whole(self, trials=1, rows=1)
        if self.trials > MOST:
            raise InvalidInput(f"trials may be {MOST:,} at most, got {self.trials}: they all run.")

    @property
    def rho(self) -> float:
        """The budget of one trial, in zCDP."""
        return 1 / (2 * self.multiplier**2) if self.multiplier else math.inf

    def event(self) -> Event:
        """The bill of the whole search, however many trials there will be."""
        return Event(
            law="best_trial",
            scale=self.multiplier * self.rows,
            radius=self.rows,
            diameter=self.rows,
            coordinates=1,
            trials=self.trials,
            question="search",
        )


@dataclass(frozen=True)
class Part:
    """Some of the records, in containers of the user's kind.

    ``groups`` is None where rows are protected. Else X and y are those of everybody, and it holds
    the persons of the part, for ``fit(X, y, groups)``.
    """

    X: Any
    y: Any
    groups: Seats | None = None


@dataclass(frozen=True)
class Found:
    """The released outcome of a search: the candidate, its fit, its noisy mean loss."""

    candidate: int
    model: Any
    loss: float


@dataclass(frozen=True)
class Score:
    """The score of a released model at a held-out record: its loss, clamped to [0, ``bound``].

    With ``base``, a public point of the shape of w, how much larger the loss is than there, clamped
    to both sides; for losses that have no smallest value. `Problem` has the sensitivity of either.
    """

    loss: Loss
    bound: float
    base: ArrayLike | None = None

    def answer(self, problem: Problem) -> Sensitivity:
        """The sensitivity of the mean score."""
        if self.base is None:
            return problem.scores(1, self._mean)
        return problem.improvement(self._mean)

    @property
    def _mean(self) -> CheckedMean:
        return CheckedMean(Interval(float(self.bound), one_signed=self.base is None), blocks=1)

    def release(
        self, batch: Batch, w: ArrayLike, ranges: PredictionRanges, noise: GaussianNoise
    ) -> float:
        """The noisy mean."""
        if self.base is None:
            return float(batch.scores(self.loss, [w], self._mean, ranges).release(noise)[0])
        gain = batch.improvement(self.loss, w, self.base, self._mean, ranges)
        return -float(gain.release(noise)[0])


Fit = Callable[[int, Part, Allowance, int], tuple[Any, ArrayLike, PredictionRanges]]
"""From a candidate, the training part, an allowance and a seed to a released model.

It also returns the model's w and its ranges for clipping, by which held-out records are predicted.
"""


class TrialSearch:
    """A deal of a curator's records into a training and a held-out part, and the search on them.

    Parameters
    ----------
    curator : holds all records, and the plan that pays for the search.
    X, y : its records, in the user's containers; of a file y may name a column.
    held_out : how many records are held out, the same for all data.
    options : of the `Curator` of the held-out part: noise, classes, categories, encoding.

    Raises
    ------
    InvalidInput
        If the records cannot be dealt.
    """

    def __init__(self, curator: Curator, X: Any, y: Any, held_out: int, **options: Any) -> None:
        require_dealt(curator, *(X, y) if curator.unit == ROW else ())  # persons share one table
        n = curator.problem.n
        if n < 2:
            raise InvalidInput(
                "A search fits some rows and scores others; there is n_samples = 1. Bring more."
            )
        held_out = require_whole("held_out", held_out, 1)
        if held_out >= n:
            raise InvalidInput(
                f"Of {n} rows, {held_out} cannot be held out: at least one must be left to fit."
            )
        last = curator._fresh(n).labels(0, n) < held_out
        self._curator, self._options, self._count = curator, options, held_out
        self._X, self._y = X, y
        self._last, self._first = np.flatnonzero(last), np.flatnonzero(~last)

    @property
    def problem(self) -> Problem:
        """The public sizes of the training part."""
        return self._sized(self._curator.problem.n - self._count)

    def _sized(self, n: int) -> Problem:
        """The public sizes of a part of n records, or of persons with n of the positions."""
        whole = self._curator.problem
        most = n if self._curator.unit == ROW else whole.n
        return replace(whole, n=n, expected=float(n), most=most)

    def _part(self, ids: NDArray[np.int64]) -> Part:
        """The records at these positions, or the persons whose first position is one of them."""
        if self._curator.unit == ROW:
            return Part(rows_of(self._X, ids), rows_of(self._y, ids))
        return Part(self._X, self._y, seats_of(self._curator, ids))

    def noise(self, mechanism: BestTrial, score: Score) -> float:
        """Standard deviation of the noise in a score."""
        answer = score.answer(self._sized(self._count))
        return _noise(mechanism, answer).event(answer).std

    def run(self, mechanism: BestTrial, candidates: int, fit: Fit, score: Score) -> Found:
        """Draw, fit and score trials; return the best. The next planned event pays for all.

        w is (d + 1, K), the intercept last.
        """
        if type(mechanism) is not BestTrial:
            raise NotPlanned("A search is released by BestTrial only.")
        # Nobody else holds it; a plan for another number of rows is another plan.
        mechanism = replace(mechanism, rows=self._curator.problem.max_rows)
        opening = self._curator.everyone()._opening
        sampler = opening.charge(mechanism.event())
        self._training, self._held_out = self._part(self._first), self._part(self._last)
        with watching(unseen):
            best = best_of(
                lambda: self._trial(sampler, mechanism, candidates, fit, score),
                mechanism.trials,
                sampler,
            )
        opening.released()
        return best

    def _trial(
        self, sampler: Sampler, mechanism: BestTrial, candidates: int, fit: Fit, score: Score
    ) -> Found:
        candidate, seed = sampler.below(candidates), sampler.below(2**32)
        allowance = self._curator.allowance(mechanism.rho, self._training.groups)
        model, w, ranges = fit(candidate, self._training, allowance, seed)
        if not allowance.spent:
            raise NotPlanned("A trial has spent nothing: its fit is not on the allowance.")
        return Found(candidate, model, self._loss(mechanism, score, w, ranges, seed))

    def _loss(
        self, mechanism: BestTrial, score: Score, w: ArrayLike, ranges: PredictionRanges, seed: int
    ) -> float:
        """The released mean loss of w on the held-out part; the worst of a w that is no number."""
        if not np.isfinite(w).all():
            return score.bound
        neighbours, part = self._curator.budget.neighbours, self._held_out
        epsilon = LARGEST if mechanism.multiplier else math.inf
        judge = Curator(
            part.X, part.y, intercept=True, outputs=score.loss.outputs, groups=part.groups,
            max_rows=None if part.groups is None else part.groups.max_rows,
            budget=Budget(epsilon, self._curator.budget.delta, neighbours),
            ledger=self._curator.allowance(mechanism.rho, part.groups), random_state=seed,
            **self._options,
        )  # fmt: skip
        answer = score.answer(judge.problem)
        noise = _noise(mechanism, answer)
        judge.open((Round(events=(noise.event(answer),)),))
        return score.release(judge.everyone(), w, ranges, noise)


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


def seats_of(curator: Curator, ids: NDArray[np.int64]) -> Seats:
    """The persons of an open curator whose first position is one of these."""
    every = np.arange(curator.problem.n)
    positions, leaders = every[curator._kept], every[curator._leaders]
    dealt = np.isin(leaders, ids)
    return Seats(
        n=len(ids), rows=len(every), max_rows=curator.problem.max_rows,
        positions=positions[dealt], leaders=leaders[dealt],
    )  # fmt: skip


def rows_of(values: Any, ids: NDArray[np.int64]) -> Any:
    """The rows at these positions; the name of a column of a file, and None, as they are."""
    if is_file(values):
        return values.part(ids)
    return values if values is None or isinstance(values, str) else taken(values, ids)


def require_dealt(curator: Curator, *data: Any) -> None:
    """Refuse rows on a cluster, and by its type a container that gives no rows at positions."""
    if curator._away is not None:
        raise InvalidInput(
            "Searches and folds deal rows on one machine, and these are on a Dask cluster. Fit one "
            "model there, or pass what privtail.open_table(folder) gives."
        )
    try:
        for values in data:
            rows_of(values, np.arange(0))
    except Exception:  # noqa: BLE001  each library refuses in its own way
        raise InvalidInput(
            "Searches and folds deal rows, and a column of this type gives no rows at positions (a "
            "view of Arrow does not): make it plain text, or fit one model."
        ) from None


def unseen(done: int, planned: int, stage: str) -> None:
    """Progress inside a trial or a fold is shown to nobody: it would count the trials."""
