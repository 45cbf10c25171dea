"""The curator: the only one who holds the records, the randomness and the ledger.

A fit is one plan. `Curator.calibrate` prices it, reserves its whole cost in the ledger before any
record is read, and from then on every release must be the next event of that plan. Questions are
asked of a `Batch`; each answer is a `Sensitive` whose lemma is in `Problem`.

Formal guarantee
----------------
Everything that leaves this module has passed `Sensitive.release` (or `Batch.labels`, whose proof
is in its docstring) after its event was matched with the reserved plan. Record ids are row
positions; blocks, parts and batches are dealt by id; n, and every divisor, is public. A user's
callback sees fresh read-only copies; its output is forced onto the declared range and whatever it
raises counts as 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import BudgetExceeded, InvalidInput, NotPlanned, NotReleased
from privtail.losses import LOSSES, AnyLoss, CustomLoss, GeneralLoss, Loss
from privtail.trusted import kernels
from privtail.trusted.accountants import calibrate, cost
from privtail.trusted.budget import Budget
from privtail.trusted.events import Event, Plan, Round, plan_to_json
from privtail.trusted.ledger import Ledger
from privtail.trusted.means import Ball, ClippedMean, Interval, RobustMean
from privtail.trusted.mechanisms.samplers import ExactSampler, Sampler, SimulatedSampler
from privtail.trusted.problem import Problem
from privtail.trusted.records import Rows, as_records
from privtail.trusted.records.targets import Labels, Numbers
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling
from privtail.trusted.sensitive import Sensitive, Sensitivity

Doubles = NDArray[np.float64]
Ids = slice | NDArray[np.int64]
BLOCK_ROWS = 4096
ROW_LOCAL = frozenset({type(loss) for loss in LOSSES} | {CustomLoss})


def threads() -> int:
    """Worker threads: ``PRIVTAIL_THREADS``, else the processors this process may use."""
    asked = os.environ.get("PRIVTAIL_THREADS", "")
    return max(1, int(asked)) if asked.isdigit() else len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class FeatureMap:
    """Public map of features z_j = x_j scale_j + offset_j; the intercept column stays 1."""

    scales: Doubles
    offsets: Doubles


class Opening:
    """The right to make the releases of one opened batch, in the planned order."""

    def __init__(self, events: tuple[Event, ...], sampler: Sampler) -> None:
        self._events, self._next, self._sampler = events, 0, sampler
        self._open = True

    def charge(self, event: Event) -> Sampler:
        """Match the release with the next planned event and hand out the noise."""
        if not self._open:
            raise NotPlanned(
                "This batch is closed: a later round has begun. Release everything that you need "
                "of a batch before asking for the next one, and plan it as one round."
            )
        planned = self._events[self._next] if self._next < len(self._events) else None
        if planned is None or not _pays_for(planned, event):
            raise NotPlanned(
                f"The next planned release is {planned}, but {event} was asked for. "
                "plan() and run() of the algorithm must agree."
            )
        self._next += 1
        return self._sampler

    def close(self) -> None:
        """Nothing can be released from this batch any more."""
        self._open = False

    def __reduce__(self) -> NoReturn:
        raise NotReleased("The right to release cannot be pickled or copied.")


def _pays_for(planned: Event, event: Event) -> bool:
    """Equal but for what only readers see; fewer coordinates than planned cost no more."""
    same = replace(event, unit=planned.unit, question=planned.question)
    fits = event.coordinates <= planned.coordinates
    return fits and replace(same, coordinates=planned.coordinates) == planned


class Curator:
    """Holds private records and answers planned questions about them.

    Parameters
    ----------
    X : array (n, d) of numbers, a memory map, a SciPy CSR matrix, a data frame, or a mapping of
        columns. Never copied as a whole.
    y : (n,) targets, or None.
    budget : what this fit may cost.
    ledger : where it is charged; a fresh one of just this budget if None.
    noise : ``"exact"`` (OpenDP) or ``"simulated"`` (seeded NumPy; never private).
    random_state : seed of public choices (deals into blocks and parts), and of the simulated noise.
    intercept : add an implicit constant feature, the last row of w.
    outputs : K, columns of w.
    classes : declared labels, in order; None for a numeric target; ``()`` for labels still to buy.
    categories : column -> declared categories, for data frames and mappings.
    label : what the ledger and the statement call this fit.

    Raises
    ------
    InvalidInput
        If shapes, types or options do not fit. Never because of a record's value.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        budget: Budget,
        ledger: Ledger | None = None,
        noise: Literal["exact", "simulated"] = "exact",
        random_state: int | None = None,
        intercept: bool = False,
        outputs: int = 1,
        classes: Sequence[Any] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        label: str = "fit",
        assumptions: Sequence[str] = (),
    ) -> None:
        if noise not in ("exact", "simulated"):
            raise InvalidInput(f'noise must be "exact" or "simulated", got {noise!r}.')
        self._records = as_records(X, categories)
        n, d = self._records.n, self._records.d
        self.problem = Problem(n=n, d=d, outputs=outputs, intercept=intercept)
        self._targets: Numbers | Labels | None = None
        if y is not None:
            self._targets = Numbers(y, n) if classes is None else Labels(y, n)
        if isinstance(self._targets, Labels) and classes:
            self._targets.declare(tuple(classes))
        self.budget, self._ledger = budget, ledger
        self.label, self.assumptions = label, tuple(assumptions)
        self._sampler: Sampler = (
            ExactSampler() if noise == "exact" else SimulatedSampler(random_state)
        )
        self.seeded = random_state is not None
        self._public = np.random.default_rng(random_state)
        self._deals: dict[int, NDArray[np.int64]] = {}
        self._plan: Plan | None = None
        self._cursor: list[tuple[Round, int]] = []
        self._current: Opening | None = None
        self.map = FeatureMap(np.ones(d), np.zeros(d))

    # ---------------------------------------------------------------- budget

    def calibrate(self, make_plan: Callable[[float], Plan]) -> float:
        """Smallest noise multiplier whose plan fits the budget; reserves the whole cost.

        No record is read. A curator runs one plan.

        Raises
        ------
        BudgetExceeded
            If no multiplier fits, or the ledger has too little left.
        """
        multiplier = calibrate(make_plan, self.budget)
        self.open(make_plan(multiplier))
        return multiplier

    def open(self, plan: Plan) -> None:
        """Reserve the cost of a fixed plan; its releases may follow, in order."""
        if self._plan is not None:
            raise NotPlanned("This curator already runs a plan; compose() the plans into one.")
        bill = cost(plan, self.budget.neighbours)
        epsilon = bill.epsilon(self.budget.delta)
        if epsilon > self.budget.epsilon:
            raise BudgetExceeded(
                f"The plan costs epsilon = {epsilon:.6g} at delta = {self.budget.delta:g}, but the "
                f"budget is {self.budget.epsilon:g}. Calibrate the plan, or raise the budget."
            )
        if self._ledger is not None:
            self._ledger.reserve(
                label=self.label,
                epsilon=epsilon,
                delta=self.budget.delta,
                mu=bill.mu,
                rho=bill.rho,
                neighbours=self.budget.neighbours,
                plan=plan_to_json(plan),
            )
        self._plan = plan
        self._cursor = [(r, 0) for r in plan if r.times > 0]

    @property
    def sparse(self) -> bool:
        """Whether the records are CSR, which cannot be centred."""
        return self._records.sparse

    @property
    def plan(self) -> Plan:
        """The plan that was opened; raises NotPlanned before."""
        if self._plan is None:
            raise NotPlanned("Nothing has been planned yet.")
        return self._plan

    @property
    def noise(self) -> Literal["exact", "simulated", "none"]:
        """What the statement says of the noise."""
        if not self.budget.private:
            return "none"
        return "exact" if self._sampler.exact else "simulated"

    def refuse_non_finite(self) -> None:
        """Raise InvalidInput if any number is NaN or infinite: a leak, for those who ask for it.

        Must come before the plan, so that a refused fit is not charged.
        """
        if self._plan is not None:
            raise NotPlanned("Records are checked before a plan is opened, not after.")
        for start in range(0, self.problem.n, BLOCK_ROWS):
            ids = slice(start, min(start + BLOCK_ROWS, self.problem.n))
            rows = self._records.rows(ids)
            z = rows.transformed(np.ones(self.problem.d), np.zeros(self.problem.d))
            y = np.zeros(1) if self._targets is None else self._targets.rows(ids)
            for name, values in (("X", z), ("y", y)):
                if not np.isfinite(values).all():
                    raise InvalidInput(
                        f"Input {name} contains NaN or infinity. With invalid='zero' such rows "
                        "count as zero."
                    )

    # ---------------------------------------------------------------- public choices

    def transform(self, scales: ArrayLike, offsets: ArrayLike | None = None) -> None:
        """Set the public feature map z = x * scales + offsets of all later questions."""
        s = np.ascontiguousarray(scales, dtype=np.float64)
        o = np.zeros_like(s) if offsets is None else np.ascontiguousarray(offsets, np.float64)
        if s.shape != (self.problem.d,) or o.shape != s.shape:
            raise InvalidInput(f"scales and offsets need shape ({self.problem.d},).")
        if not (np.isfinite(s).all() and (s > 0).all() and np.isfinite(o).all()):
            raise InvalidInput("scales must be positive and finite, offsets finite.")
        if self._records.sparse and o.any():
            raise InvalidInput("Sparse records cannot be centred; use offsets=None.")
        self.map = FeatureMap(s, o)

    def declare(self, classes: Sequence[Any]) -> None:
        """Code the targets by these (declared or released) classes."""
        if not isinstance(self._targets, Labels):
            raise InvalidInput("Classes belong to a target of labels.")
        self._targets.declare(tuple(classes))

    def reshape(self, outputs: int) -> None:
        """Set the number of outputs once the classes are known."""
        self.problem = replace(self.problem, outputs=outputs)

    def blocks(self, count: int) -> NDArray[np.int64]:
        """The public deal of the n ids into ``count`` blocks of equal size, (n,)."""
        if count not in self._deals:
            n = self.problem.n
            deal = np.zeros(n, np.int64) if count == 1 else self._public.permutation(n) % count
            self._deals[count] = deal
        return self._deals[count]

    def uniform(self, count: int) -> int:
        """A public uniform choice among 0 .. count - 1."""
        return int(self._public.integers(count))

    # ---------------------------------------------------------------- batches

    def rounds(self, sampling: Sampling, steps: int) -> Iterator[Batch]:
        """``steps`` batches of ``sampling``; each closes when the next one is asked for."""
        deal = None
        if isinstance(sampling, DisjointParts):
            deal = self._public.permutation(self.problem.n) % sampling.parts
        for step in range(steps):
            ids: Ids = slice(0, self.problem.n)
            if isinstance(sampling, PoissonBatches):
                ids = np.flatnonzero(self._sampler.coins(self.problem.n, sampling.rate))
            elif deal is not None and isinstance(sampling, DisjointParts):
                ids = np.flatnonzero(deal == step % sampling.parts)
            yield self._batch(sampling, ids)
        self._close()

    def everyone(self) -> Batch:
        """One batch of all records."""
        return self._batch(Everyone(), slice(0, self.problem.n))

    def _batch(self, sampling: Sampling, ids: Ids) -> Batch:
        self._close()
        if not self._cursor:
            raise NotPlanned("No round is left in the plan; calibrate a plan that announces it.")
        planned, used = self._cursor[0]
        if planned.sampling != sampling:
            raise NotPlanned(f"The plan announces {planned.sampling}, not {sampling}.")
        if used + 1 == planned.times:
            self._cursor.pop(0)
        else:
            self._cursor[0] = (planned, used + 1)
        self._current = Opening(planned.events, self._sampler)
        return Batch(self, self.problem.sampled(sampling), ids, self._current)

    def _close(self) -> None:
        if self._current is not None:
            self._current.close()

    def __repr__(self) -> str:
        return f"Curator({self._records!r}, {self.budget})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A curator holds private records and cannot be pickled or copied.")


class Batch:
    """Answers questions about the records of one round. The only door to the records."""

    def __init__(self, curator: Curator, problem: Problem, ids: Ids, opening: Opening) -> None:
        self._curator, self._ids, self._opening = curator, ids, opening
        self.problem = problem

    def gradient(self, loss: AnyLoss, w: ArrayLike, mean: RobustMean) -> Sensitive:
        """Robust mean of the records' gradients at w, flattened row-major from (rows, K).

        A generalized-linear gradient is z outer r with r = loss.derivative(z.w, y); the range is
        enforced on it, not believed. Sensitivity: `Problem.gradient` (the lemma of `means`).
        """
        w = self._parameters(w)
        mean = self._finite(loss, w, mean)
        sums = self._sweep(self._gradient_block(loss, w, mean), mean.blocks, w.shape)
        return self._answer(_median(sums), self.problem.gradient(mean))

    def means(self, mean: RobustMean) -> Sensitive:
        """Robust mean of the mapped columns, (d,). Sensitivity: `Problem.means` (the lemma)."""
        d, range_ = self.problem.d, mean.range
        zero = np.zeros((d, 1))
        map_ = self._curator.map

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            _, squares, valid = rows.margins(map_.scales, map_.offsets, zero, np.zeros(1))
            ones = np.ones((len(rows), 1))
            _contribute(rows, map_, squares, valid, ones, labels, False, range_, self._bits, sums)

        sums = self._sweep(block, mean.blocks, (d, 1), targets=False)
        return self._answer(_median(sums), self.problem.means(mean))

    def scores(self, loss: Loss, candidates: Sequence[ArrayLike], mean: RobustMean) -> Sensitive:
        """Robust mean of the losses at each candidate w, forced into [0, bound].

        Sensitivity: `Problem.scores`; one-signed, so a record's absence lowers all scores.
        """
        answer = self.problem.scores(len(candidates), mean)
        points = [self._parameters(w) for w in candidates]
        box = mean.range
        assert isinstance(box, Interval)

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            for c, w in enumerate(points):
                margins, _, valid = self._margins(rows, w)
                values = _values(loss, margins, y) / box.radius
                values[~(valid & np.isfinite(y))] = 0.0
                kernels.influence(
                    values, box.kind, np.array(box.coefficients), box.steps(self._bits), self._bits
                )
                np.add.at(sums[:, c, 0], labels, np.maximum(values, 0.0))

        sums = self._sweep(block, mean.blocks, (len(points), 1))
        return self._answer(_median(sums), answer)

    def moments(self, radius: float, target: bool = False) -> Sensitive:
        """Second moments of the rows (z, 1, y) clipped to l2 norm ``radius``.

        Upper triangle row by row, off-diagonals times sqrt 2. Sensitivity: `Problem.moments`.
        """
        answer = self.problem.moments(radius, target)
        margin = kernels.margin_of_safety(answer.size, self._bits)

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            z = [rows.transformed(self._curator.map.scales, self._curator.map.offsets)]
            if self.problem.intercept:
                z.append(np.ones((len(rows), 1)))
            if target:
                z.append(y[:, None])
            joint = np.ascontiguousarray(np.hstack(z))
            valid = np.isfinite(joint).all(axis=1)
            kernels.moment_sum(joint, valid, radius, self._bits, margin, sums[0, :, 0])

        return self._answer(_median(self._sweep(block, 1, (answer.size, 1), target)), answer)

    def histogram(
        self, columns: Sequence[int], edges: ArrayLike, pooled: bool = False
    ) -> Sensitive:
        """Counts of mapped column values between public edges; column -1 is the (raw) target.

        Cell 0 lies below the first edge, cell e at or above edge e - 1. With ``pooled`` each
        record votes for one column, chosen by its id. Flattened (columns, edges + 1). Rows with a
        non-finite number count nowhere. Sensitivity: `Problem.histogram`.
        """
        cuts = _ascending(edges)
        answer = self.problem.histogram(len(columns), len(cuts), pooled)
        voters = self._curator.blocks(len(columns)) if pooled else None

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            z = rows.transformed(self._curator.map.scales, self._curator.map.offsets)
            valid = np.isfinite(z).all(axis=1)
            if -1 in columns:
                valid &= np.isfinite(y)
            for c, column in enumerate(columns):
                counted = valid if voters is None else valid & (labels == c)
                values = (y if column == -1 else z[:, column])[counted]
                cells = np.searchsorted(cuts, values, side="right")
                sums[0, c, :] += np.bincount(cells, minlength=len(cuts) + 1)

        shape = (len(columns), len(cuts) + 1)
        counts = self._sweep(block, 1, shape, -1 in columns, voters)
        return self._answer(counts.reshape(-1) << self._bits, answer)

    def gradient_norms(self, loss: Loss, w: ArrayLike, edges: ArrayLike) -> Sensitive:
        """Counts of the l2 norms of the records' gradients at w between public edges.

        Each record fills one cell. Sensitivity: `Problem.gradient_norms`.
        """
        w, cuts = self._parameters(w), _ascending(edges)

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            margins, squares, valid = self._margins(rows, w)
            residuals = _derivatives(loss, margins, y)
            with np.errstate(all="ignore"):
                norms = np.sqrt(squares + self.problem.intercept) * np.sqrt(
                    (residuals * residuals).sum(axis=1)
                )
            norms = norms[valid & np.isfinite(y)]
            cells = np.searchsorted(cuts, norms, side="right")
            sums[0, 0, :] += np.bincount(cells, minlength=len(cuts) + 1)

        counts = self._sweep(block, 1, (1, len(cuts) + 1))
        answer = self.problem.gradient_norms(len(cuts))
        return self._answer(counts.reshape(-1) << self._bits, answer)

    def labels(self, epsilon: float, delta: float) -> list[Any]:
        """The labels that occur often enough, sorted; charged even when there is none.

        Noisy counts get discrete Laplace noise b = 2/epsilon; a label is released when its noisy
        count is at least 1 + b log(1/(2 delta)). Replacing a record moves two counts by one:
        epsilon-DP on the labels that both data sets hold. A label held by one record alone passes
        with probability at most delta, and only one such label can be on either side.
        """
        from privtail.trusted.mechanisms.labels import StabilityHistogram

        targets = self._curator._targets
        if not isinstance(targets, Labels):
            raise InvalidInput("labels() needs a target of labels.")
        mechanism = StabilityHistogram(epsilon, delta)
        sampler = self._opening.charge(mechanism.event())
        if not isinstance(self._ids, slice):
            raise InvalidInput("Ask for labels in a round of Everyone.")
        return mechanism.release(targets.counts(), sampler)

    # ---------------------------------------------------------------- inside

    @property
    def _bits(self) -> int:
        return self.problem.bits

    def _parameters(self, w: ArrayLike) -> Doubles:
        array = np.ascontiguousarray(w, dtype=np.float64)
        shape = (self.problem.rows, self.problem.outputs)
        if array.shape != shape:
            raise InvalidInput(f"w needs shape {shape}, got {array.shape}.")
        return array

    def _margins(self, rows: Rows, w: Doubles) -> tuple[Doubles, Doubles, NDArray[np.bool_]]:
        d, map_ = self.problem.d, self._curator.map
        b = w[d] if self.problem.intercept else np.zeros(w.shape[1])
        return rows.margins(map_.scales, map_.offsets, w[:d], b)

    def _gradient_block(
        self, loss: AnyLoss, w: Doubles, mean: RobustMean
    ) -> Callable[[Rows, Doubles, NDArray[np.int64], Doubles], None]:
        map_, intercept, range_ = self._curator.map, self.problem.intercept, mean.range

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            margins, squares, valid = self._margins(rows, w)
            valid &= np.isfinite(y)
            residuals = np.ascontiguousarray(_derivatives(loss, margins, y))
            _contribute(
                rows, map_, squares, valid, residuals, labels, intercept, range_, self._bits, sums
            )

        def general(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            from privtail.trusted.records import DenseRows

            x = rows.transformed(map_.scales, map_.offsets)
            flat = DenseRows(_general_gradients(loss, w, x, y))
            one, zero = np.ones(w.size), np.zeros(w.size)
            _, squares, valid = flat.margins(one, zero, np.zeros((w.size, 1)), np.zeros(1))
            valid &= np.isfinite(x).all(axis=1) & np.isfinite(y)
            ones, plain = np.ones((len(rows), 1)), FeatureMap(one, zero)
            view = sums.reshape(sums.shape[0], w.size, 1)
            _contribute(flat, plain, squares, valid, ones, labels, False, range_, self._bits, view)

        return general if isinstance(loss, GeneralLoss) else block

    def _finite(self, loss: AnyLoss, w: Doubles, mean: RobustMean) -> RobustMean:
        """Without privacy an infinite clipping threshold becomes the largest gradient norm."""
        if not (isinstance(mean, ClippedMean) and mean.threshold == float("inf")):
            return mean
        if self._curator.budget.private:
            raise InvalidInput(
                "An infinite threshold gives no privacy. Choose a finite one, or epsilon=inf."
            )
        largest = [0.0]

        def block(rows: Rows, y: Doubles, labels: NDArray[np.int64], sums: Doubles) -> None:
            if isinstance(loss, GeneralLoss):
                x = rows.transformed(self._curator.map.scales, self._curator.map.offsets)
                norms = np.linalg.norm(_general_gradients(loss, w, x, y), axis=1)
            else:
                margins, squares, _ = self._margins(rows, w)
                residuals = _derivatives(loss, margins, y)
                norms = np.sqrt(squares + self.problem.intercept) * np.linalg.norm(
                    residuals, axis=1
                )
            largest.append(float(np.max(norms[np.isfinite(norms)], initial=0.0)))

        self._sweep(block, 1, (1, 1))
        return replace(mean, threshold=max(2 * max(largest), 1e-60))

    def _answer(self, value: NDArray[np.int64], sensitivity: Sensitivity) -> Sensitive:
        return Sensitive(value, sensitivity, self._opening)

    def _sweep(
        self,
        block: Callable[[Rows, Doubles, NDArray[np.int64], Doubles], None],
        blocks: int,
        shape: tuple[int, ...],
        targets: bool = True,
        labels: NDArray[np.int64] | None = None,
    ) -> NDArray[np.int64]:
        """Exact int64 sums (blocks, *shape): blocks of rows on threads, then added."""
        curator = self._curator
        if targets and curator._targets is None:
            raise InvalidInput("This question needs a target y.")
        deal = curator.blocks(blocks) if labels is None else labels
        stop = self._ids.stop if isinstance(self._ids, slice) else len(self._ids)

        def one(start: int) -> NDArray[np.int64]:
            part = slice(start, min(start + BLOCK_ROWS, stop))
            ids: Ids = part if isinstance(self._ids, slice) else self._ids[part]
            rows = curator._records.rows(ids)
            source = curator._targets if targets else None
            y = np.zeros(len(rows)) if source is None else source.rows(ids)
            sums = np.zeros((blocks, *shape))
            block(rows, y, deal[ids], sums)
            return sums.astype(np.int64)

        total = np.zeros((blocks, *shape), dtype=np.int64)
        starts = range(0, stop, BLOCK_ROWS)
        if threads() == 1 or len(starts) <= 1:
            for start in starts:
                total += one(start)
        else:
            with ThreadPoolExecutor(threads()) as pool:
                for sums in pool.map(one, starts):
                    total += sums
        return total

    def __repr__(self) -> str:
        return f"Batch({self.problem})"

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A batch holds private records and cannot be pickled or copied.")


def _contribute(
    rows: Rows, map_: FeatureMap, squares: Doubles, valid: NDArray[np.bool_], residuals: Doubles,
    labels: NDArray[np.int64], intercept: bool, range_: Ball | Interval, bits: int, sums: Doubles,
) -> None:  # fmt: skip
    scales, offsets = map_.scales, map_.offsets
    if isinstance(range_, Ball):
        rows.ball_sum(
            scales, offsets, squares, valid, residuals, labels, intercept, range_.radius, bits, sums
        )
    else:
        rows.box_sum(scales, offsets, valid, residuals, labels, intercept, range_, bits, sums)


def _median(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """Middle block sum of every coordinate; for an even count the two middle ones, added."""
    flat = np.sort(sums.reshape(sums.shape[0], -1), axis=0)
    k = len(flat)
    return flat[k // 2] if k % 2 else flat[k // 2 - 1] + flat[k // 2]


def _ascending(edges: ArrayLike) -> Doubles:
    cuts = np.asarray(edges, dtype=np.float64)
    if cuts.ndim != 1 or cuts.size == 0 or not (np.diff(cuts) > 0).all():
        raise InvalidInput("edges must be a one-dimensional, strictly ascending list of numbers.")
    return cuts


def _values(loss: Loss, margins: Doubles, y: Doubles) -> Doubles:
    """Losses (rows,). A loss that is not one of ours is called record by record."""
    return _rowwise(loss, loss.values, margins, y, (len(y),))


def _derivatives(loss: Loss, margins: Doubles, y: Doubles) -> Doubles:
    """Derivatives (rows, K). A loss that is not one of ours is called record by record."""
    return _rowwise(loss, loss.derivatives, margins, y, margins.shape)


def _rowwise(
    loss: Loss, function: Callable[[Doubles, Doubles], Doubles], margins: Doubles, y: Doubles,
    shape: tuple[int, ...],
) -> Doubles:  # fmt: skip
    with np.errstate(all="ignore"):
        if type(loss) in ROW_LOCAL:
            return function(margins, y)
        answers = np.zeros(shape)
        for i in range(len(y)):
            try:
                answer = np.asarray(function(margins[i : i + 1].copy(), y[i : i + 1].copy()))
                answers[i] = answer.astype(np.float64).reshape(shape[1:])
            except Exception:  # a callback's failure depends on the record and must not show
                answers[i] = 0.0
        return answers


def _general_gradients(loss: GeneralLoss, w: Doubles, x: Doubles, y: Doubles) -> Doubles:
    """Gradients (rows, w.size) of a general loss; a record that fails gets NaN, which adds 0."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(GeneralLoss.gradients(loss, w, x, y).reshape(len(y), -1))
