"""The curator holds the records, the randomness and the ledger. Nothing else does.

A fit is one plan of releases. `Curator.open` computes its cost and reserves it in the ledger before
any record is read. Then every release must be the next event of the plan. Questions are asked of a
`Batch`, and each answer is a `Sensitive`. `Problem` states and proves its sensitivity.

Formal guarantee
----------------
Everything that leaves this module has passed `Sensitive.release`, or `Batch.labels`, after its
event was matched with the reserved plan. Record ids are row positions. Blocks, parts and batches
are dealt by id. n and every divisor are public. A user's callback gets fresh read-only copies. Its
output is forced onto the declared range, and counts as 0 where it raises.

One person, several rows (``groups``). Two tables of n positions are neighbours if they agree
everywhere but in the positions P of one person's rows, however many these are. There the other
table holds rows of another person, who has no row elsewhere (replace-one), or empty slots without
an id (zero-out). So neighbours agree on which positions belong together. This partition is public,
like n, and so is the number of rows of each person. Protected are ids and rows and, under zero-out,
whether a person is in the table. (A person with the id of somebody else in the table would change
whose rows count. Such tables are not neighbours.)

At most ``max_rows`` rows of every person count: those whose positions come first in a public random
order. `Persons.seats` decides this from P alone. So the same positions count in both tables, this
person changes nothing about which rows of others count, and at most ``max_rows`` contributions
differ. `Problem` has the bound for every answer. Rows that do not count are not read.

Rounds sample persons. Coins and parts are drawn for positions, and the first of a person's
positions decides for all of them. In a Poisson batch every person is in with probability ``rate``,
independently, with all the rows that count. So the theorem is that for one record of ``max_rows``
times the sensitivity, which is absent or exchanged in the other table. In a deal of disjoint parts
a person is in one part. Divisors stay n, n rate and n / parts. Blocks are dealt by position.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from privtail import progress
from privtail.dask_collections import is_spread
from privtail.errors import (
    BudgetExceeded,
    IncompatibleParts,
    InvalidInput,
    NotPlanned,
    NotReleased,
    require_whole,
    told,
)
from privtail.losses import AnyLoss, GeneralLoss, TruncatedLoss
from privtail.schema.containers import named_column, without_groups, without_max_rows
from privtail.schema.encoding import PLAIN, Encoding
from privtail.trusted.accountants import cost
from privtail.trusted.allowance import Allowance, require_payer
from privtail.trusted.batch import Batch
from privtail.trusted.budget import ROW, Budget, protected
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Deal, Ids, Listed, Part, Sample
from privtail.trusted.events import SMOOTH, Plan, Round, own_plan, plan_to_json
from privtail.trusted.exactly import is_one_of
from privtail.trusted.ledger import Ledger
from privtail.trusted.maps import FeatureMap
from privtail.trusted.mechanisms.samplers import ExactSampler, Sampler
from privtail.trusted.opening import Opening
from privtail.trusted.problem import Problem
from privtail.trusted.records import is_file, opened
from privtail.trusted.records.persons import Persons, Seats, rows_of_sampled, sample_mask
from privtail.trusted.records.targets import Labels
from privtail.trusted.rehearsal import rehearse, rehearse_noise
from privtail.trusted.sampling import Everyone, PoissonBatches, Sampling

if TYPE_CHECKING:
    from privtail.trusted.cluster.spread import Spread

PERSONS = (
    "An id stands for one person: nobody has two, and no two share one.",
    "Which rows belong together is public, like n; whose they are and what they hold is not.",
)
"""Assumptions of a promise for persons; the statement prints them."""


class Curator:
    """Holds private records and answers planned questions about them.

    Parameters
    ----------
    X : array (n, d) of numbers, a memory map, a SciPy CSR matrix, a data frame, or a mapping of
        columns. Never copied as a whole.
    y : (n,) targets, or None.
    budget : what this fit may cost.
    ledger : where it is charged; a fresh one of just this budget if None.
    noise : ``"exact"`` (`ExactSampler`) or ``"simulated"`` (seeded NumPy; never private).
    random_state : seed of public choices (deals into blocks and parts), and of the simulated noise.
    intercept : add an implicit constant feature, the last row of w.
    outputs : K, columns of w.
    classes : declared labels, in order; None for a numeric target; ``()`` before their release.
    categories : column -> declared categories, for data frames and mappings; None: there are none.
    encoding : what else is declared of the features, such as what a missing number counts as.
    exposure : (n,) on how much each target was counted, or None: its logarithm is added to margins.
        A row where it is not positive and finite has no target. Files: see `TableFile.exposed`.
    groups : (n,) person ids, numbers or text: the promise is then for one person with all rows,
        not for one row. A missing id belongs to nobody, and its row never counts; so does an id of
        a class that is neither Python's own, NumPy's nor pandas'. Or the `Seats` of some persons,
        of which there are a public number as divisor.
    max_rows : how many rows of one person count, with ``groups``. Noise grows with it.
    label : what the ledger and the statement call this fit.

    Raises
    ------
    InvalidInput
        If shapes, types or options do not fit. Never because of a record's value.
    """

    def __init__(
        self, X: Any, y: Any = None, *, budget: Budget, ledger: Ledger | Allowance | None = None,
        noise: Literal["exact", "simulated"] = "exact", random_state: int | None = None,
        intercept: bool = False, outputs: int = 1, classes: Sequence[Any] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None, encoding: Encoding = PLAIN,
        exposure: Any = None, groups: Any = None, max_rows: int | None = None, label: str = "fit",
        assumptions: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if noise not in ("exact", "simulated"):
            raise InvalidInput(f'noise must be "exact" or "simulated", got {told(noise)}.')
        if type(budget) is not Budget:
            raise InvalidInput("A budget must be a privtail.Budget, and no class derived from it.")
        if ledger is not None and not is_one_of(ledger, (Ledger, Allowance)):
            raise InvalidInput("A ledger must be a privtail.Ledger, and no class derived from it.")
        max_rows = _require_persons(groups, max_rows)
        declared = categories, encoding, exposure
        away: Spread | None = None
        records: Any
        if is_spread(X, y, groups, exposure):
            from privtail.trusted.cluster.spread import Spread

            records = away = Spread(X, y, classes, *declared, groups=groups)
            targets = away.targets
        else:
            records, targets = opened(X, y, classes, *declared)
        self.from_text = is_file(X) and X.from_text
        n = records.n
        seats = groups if type(groups) is Seats else None
        if seats is not None and not isinstance(ledger, Allowance):
            raise NotPlanned("Seats belong to a trial of a search: pass its allowance as ledger.")
        if seats is not None and (seats.rows, seats.max_rows) != (n, max_rows):
            raise InvalidInput("Seats need the rows and the max_rows that they were made of.")
        self._unseated = max_rows is not None and seats is None
        self._persons = Persons(groups, n) if self._unseated and away is None else None
        self._problem = Problem(
            n=n if seats is None else seats.n,
            most=n,
            d=records.d,
            outputs=outputs,
            intercept=intercept,
            indicators=records.indicators,
            categories=records.categories,
            optional=records.optional,
            exposure=targets is not None and targets.exposed,
            max_rows=1 if max_rows is None else max_rows,
        )
        self._budget, self._ledger, self.charged = replace(budget), ledger, ""
        stated = X.assumptions if is_file(X) else ()
        self.label, self.assumptions = label, (*assumptions, *stated)
        self._max_rows = None if max_rows is None else self._problem.max_rows
        if max_rows is not None:
            self.assume(PERSONS)
        if away is not None:
            self.assume(away.assumptions)
        seed = None if random_state is None else require_whole("random_state", random_state, 0)
        public, simulated, dealt = np.random.SeedSequence(seed).spawn(3)
        self._sampler: Sampler = ExactSampler() if noise == "exact" else _simulated(simulated)
        if isinstance(ledger, Allowance):
            ledger.require(seats, self._sampler.exact)
        self.seeded = random_state is not None
        self._public = np.random.default_rng(public)
        self._keys = np.random.default_rng(dealt)
        self._away = away
        self._data = Dataset(records, targets, self._keys.bytes(32), away)
        self._parts = self._data.deal(1)
        self._kept: Ids = slice(0, n) if seats is None else seats.positions
        self._leaders: Ids = slice(0, n) if seats is None else seats.leaders
        self._lock = threading.Lock()
        self._plan: Plan | None = None
        self._epsilon = 0.0
        self._process = os.getpid()
        self._cursor: list[tuple[Round, int]] = []
        self._current: Opening | None = None
        self._done = 0

    # ---------------------------------------------------------------- budget

    def open(
        self, plan: Plan, loss: AnyLoss | None = None, within: Sequence[tuple[Plan, AnyLoss]] = ()
    ) -> None:
        """Reserve the cost of a fixed plan. Then its releases may be made, in order.

        First `rehearse` runs on no rows what the plan, its ``loss``, and the plans and losses
        ``within`` it (of the trials of a search) need, so that it fails before anything is charged.
        """
        plan = own_plan(plan)
        bill = cost(plan, self.budget.neighbours)
        epsilon = bill.epsilon(self.budget.delta)
        if math.isfinite(epsilon) and not all(
            math.isfinite(e.unit) for r in plan for e in r.events
        ):
            raise InvalidInput(
                "An infinite threshold gives no privacy. Choose a finite one, or epsilon=inf."
            )
        if not epsilon <= self.budget.epsilon:
            raise BudgetExceeded(
                f"The plan costs epsilon = {epsilon:.6g} at delta = {self.budget.delta:g}, but the "
                f"budget is {self.budget.epsilon:g}. Calibrate the plan, or raise the budget."
            )
        if isinstance(self._ledger, Ledger) and not self._sampler.exact:
            self._ledger.refuse_simulated(self.label)
        if self.problem.exposure:
            _require_margins(plan, loss)
        with self._lock:
            if self._plan is not None:
                raise NotPlanned("This curator already runs a plan; compose() the plans into one.")
            self._process = os.getpid()
            for some, of in ((plan, loss), *within):
                if self._away is None:
                    rehearse(some, self.problem, self._data.records, of)
                else:
                    progress.report(0, sum(r.times for r in plan), "workers")
                    self._away.rehearse(some, self.problem, of)
                rehearse_noise(some, self._sampler)
            if self._ledger is not None:
                reserved = self._ledger.reserve(
                    label=self.label, epsilon=epsilon, delta=self.budget.delta, mu=bill.mu,
                    rho=bill.rho, neighbours=self.budget.neighbours, plan=plan_to_json(plan),
                    unit="row" if self.unit == ROW else "person",
                )  # fmt: skip
                self.charged = "" if reserved is None else str(reserved)
            self._plan, self._epsilon = plan, epsilon
            self._cursor = [(r, 0) for r in plan if r.times > 0]

    def allowance(self, rho: float, seats: Seats | None) -> Allowance:
        """What a fit or a score may spend of what this curator has paid for."""
        exact, payer = self._sampler.exact, self._process
        return Allowance(rho, self.budget.neighbours, seats, payer=payer, exact=exact)

    def assume(self, sentences: Sequence[str]) -> None:
        """Add assumptions of the promise to the statement, each sentence once."""
        new = (sentence for sentence in sentences if sentence not in self.assumptions)
        self.assumptions = (*self.assumptions, *new)

    @property
    def budget(self) -> Budget:
        """The budget of this fit."""
        return self._budget

    @property
    def unit(self) -> str:
        """The protected unit: one row, or one person with all rows."""
        return protected(self._max_rows)

    @property
    def max_rows(self) -> int | None:
        """The largest number of rows of one person that count; None if one row is protected."""
        return self._max_rows

    @property
    def problem(self) -> Problem:
        """The public sizes."""
        return self._problem

    @property
    def sparse(self) -> bool:
        """Whether the records are CSR, which cannot be centred."""
        return self._data.sparse

    @property
    def plan(self) -> Plan:
        """The opened plan; NotPlanned before `open`."""
        if self._plan is None:
            raise NotPlanned("Nothing has been planned yet.")
        return own_plan(self._plan)

    @property
    def noise(self) -> Literal["exact", "simulated", "none"]:
        """The kind of noise, for the statement."""
        if not self.budget.private:
            return "none"
        return "exact" if self._sampler.exact else "simulated"

    def refuse_non_finite(self) -> None:
        """Raise InvalidInput if a number is not finite or a label is undeclared.

        This tells something of the records, outside the promise, for a user who asked for it. It
        must come before `open`, so that a refused fit is not charged.
        """
        if self._plan is not None:
            raise NotPlanned("Records are checked before a plan is opened, not after.")
        self._data.refuse_non_finite()

    # ---------------------------------------------------------------- public choices

    def declare(self, classes: Sequence[Any]) -> None:
        """Encode the targets by these declared or released classes."""
        if not isinstance(self._data.targets, Labels):
            raise InvalidInput("Classes belong to a target of labels.")
        self._data.targets.declare(tuple(classes))

    def reshape(self, outputs: int) -> None:
        """Set the number of outputs once the classes are known."""
        self._problem = replace(self.problem, outputs=outputs)

    def blocks(self, count: int) -> NDArray[np.int64]:
        """The public deal of the n ids into ``count`` blocks of equal size, (n,), a copy."""
        return self._data.deal(count).labels(0, self._data.records.n).copy()

    def uniform(self, count: int) -> int:
        """A public uniform choice among 0 .. count - 1."""
        return int(self._public.integers(count))

    def uniforms(self, rows: int, columns: int) -> NDArray[np.float64]:
        """Public independent uniform numbers in (0, 1)."""
        return self._public.uniform(2.0**-53, 1.0, (rows, columns))

    # ---------------------------------------------------------------- batches

    def rounds(
        self, sampling: Sampling, steps: int, map: FeatureMap | None = None
    ) -> Iterator[Batch]:
        """``steps`` batches of ``sampling``; each one closes when the next is taken.

        Features are transformed by ``map``, or not at all if it is None.
        """
        for _ in range(steps):
            yield self._batch(sampling, map)
        self._close()

    def everyone(self, map: FeatureMap | None = None) -> Batch:
        """One batch of all records, with features transformed by ``map``."""
        return self._batch(Everyone(), map)

    def _batch(self, sampling: Sampling, map_: FeatureMap | None) -> Batch:
        own = self._mapped(map_)
        require_payer(self._process)
        self._close()
        with self._lock:
            if not self._cursor:
                raise NotPlanned("No round is left in the plan; compose() one that announces it.")
            planned, used = self._cursor[0]
            if planned.sampling != sampling:
                raise NotPlanned(f"The plan announces {planned.sampling}, not {sampling}.")
            sampling = planned.sampling
            if used + 1 == planned.times:
                self._cursor.pop(0)
            else:
                self._cursor[0] = (planned, used + 1)
            report = functools.partial(self._report_round, planned.stage)
            self._current = Opening(planned.events, self._sampler, report)
            return Batch(
                self._data, self.problem.sampled(sampling), self._sample(sampling, used),
                self._current, map_=own, everyone=isinstance(sampling, Everyone),
                private=math.isfinite(self._epsilon), assume=self.assume,
            )  # fmt: skip

    def _mapped(self, given: FeatureMap | None) -> FeatureMap:
        """A checked copy of a map, which no callback and no other thread can change."""
        d, optional = self.problem.d, self.problem.optional
        if given is None:
            return FeatureMap.of(d, np.ones(d), optional=optional)
        if not isinstance(given, FeatureMap):
            raise InvalidInput(
                "A map of features must be made by FeatureMap.of(d, scales, offsets)."
            )
        own = FeatureMap.of(d, given.scales, given.offsets, optional)
        if self.sparse and own.offsets.any():
            raise InvalidInput("A sparse matrix cannot be centred; use offsets=None.")
        return own

    def _sample(self, sampling: Sampling, used: int) -> Sample:
        """The ids in the next batch of a round. All parts of one Round come from one deal."""
        n = self._data.records.n
        if self._unseated:
            self._seat(self._fresh(n))
            self._unseated = False
        if isinstance(sampling, Everyone):
            return Listed(self._kept)
        if isinstance(sampling, PoissonBatches):
            sample: Sample = self._sampler.coins(sampling.rate)
        else:
            if used == 0:
                self._parts = self._fresh(sampling.parts)
            sample = Part(self._parts, used % sampling.parts)
        if isinstance(self._kept, slice):
            return sample
        return rows_of_sampled(self._kept, self._leaders, sample_mask(sample, n))

    def _seat(self, order: Deal) -> None:
        """Decide, once and after the charge, which rows of each person count."""
        if self._away is not None:
            self._away.seat(order, self.problem.max_rows)
        elif self._persons is not None:
            priority = order.labels(0, order.n)
            self._kept, self._leaders = self._persons.seats(priority, self.problem.max_rows)
            self._persons = None

    def _fresh(self, blocks: int) -> Deal:
        """A new public deal of all ids; into n blocks it is a shuffle."""
        return Deal(self._data.records.n, blocks, self._keys.bytes(32))

    def _close(self) -> None:
        if self._current is not None:
            self._current.close()

    def _report_round(self, stage: str) -> None:
        with self._lock:
            self._done += 1
            done = self._done
        progress.report(done, sum(r.times for r in self._plan or ()), stage)

    def __repr__(self) -> str:
        return f"Curator({self._data.records!r}, {self.budget})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A curator holds private rows and cannot be pickled or copied.")


def _simulated(seed: np.random.SeedSequence) -> Sampler:
    from privtail.trusted.mechanisms.simulated import SimulatedSampler

    return SimulatedSampler(seed)


def _require_margins(plan: Plan, loss: AnyLoss | None) -> None:
    """With an exposure, refuse questions that have no margin."""
    smooth = any(event.law in SMOOTH for r in plan for event in r.events)
    if smooth or isinstance(loss, GeneralLoss | TruncatedLoss):
        raise IncompatibleParts(
            "An exposure moves the margin of a loss, and trimmed means, functions of parts and "
            'losses of all numbers of a row have none: use algorithm="auto".'
        )


def _require_persons(groups: Any, max_rows: Any) -> int | None:
    """The checked ``max_rows``; None where single rows are protected."""
    if groups is None and max_rows is None:
        return None
    if groups is None:
        raise without_groups(max_rows)
    if max_rows is None:
        raise without_max_rows()
    if isinstance(groups, str):
        raise named_column("groups", groups)
    return require_whole("max_rows", max_rows, 1)
