"""A dry run of a plan on no rows, before it is charged.

Compilation, a damaged cache or a missing library may fail for public reasons. They should fail
before the ledger is charged, not between the charge and the first release.

Formal guarantee
----------------
No record is read: kernels run on blocks without rows, of the type of the container. Noise is drawn
for public zeros and thrown away. Draws are independent, so the releases do not change. The plan,
the container's type and the machine decide what runs, and all of these are public.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from privtail.errors import InvalidInput
from privtail.losses import (
    LABELS,
    AbsoluteLoss,
    AnyLoss,
    GeneralLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    QuantileLoss,
    SigmoidLoss,
    SquaredLoss,
    TruncatedLoss,
)
from privtail.trusted import callbacks, kernels
from privtail.trusted.contributions import contribute
from privtail.trusted.deals import Deal
from privtail.trusted.events import SMOOTH, Plan
from privtail.trusted.maps import FeatureMap, MappedRows
from privtail.trusted.means import Ball, Interval
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.problem import Problem
from privtail.trusted.records import Records, Sparse, SparseRows

_BITS = 20

_STAGES: tuple[Loss, ...] = (SquaredLoss(), HuberLoss(threshold=1.0), AbsoluteLoss())
"""Losses that stages of an algorithm use in addition to its own."""

_CLIPPED = frozenset({"search", "scores", "improvement"})
"""Questions that may clip rows to the ranges of a model."""


def rehearse(plan: Plan, problem: Problem, records: Records, loss: AnyLoss | None) -> None:
    """Compile and run, on no rows, what the rounds of ``plan`` run on these records."""
    questions = {event.question for r in plan for event in r.events}
    sums = "gradient" in questions or "means" in questions
    for rows in _empty(records, problem.d, clipped=bool(questions & _CLIPPED)):
        _sweep(rows, problem, sums=sums)
    if problem.exposure:
        kernels.logarithms(np.empty(0), np.empty(0))
    if "derivatives" in questions:
        _sweep(MappedRows.as_they_are(np.empty((0, 1))), replace(problem, d=1), sums=True)
    _steps(questions, problem)
    if any(event.law in SMOOTH for r in plan for event in r.events):
        _trim()
    Deal(1, 2, bytes(32)).labels(0, 0)
    if not isinstance(loss, GeneralLoss | TruncatedLoss | None):
        further: tuple[Loss, ...] = (LogisticLoss(),) if "labels" in questions else ()
        further += (SigmoidLoss(),) if loss.targets in LABELS and "scores" in questions else ()
        further += (QuantileLoss(quantile=0.5),) if isinstance(loss, AbsoluteLoss) else ()
        for one in (loss, *_STAGES, *further):
            called = callbacks.core_loss(one)
            margins, y = np.empty((0, one.outputs)), np.empty(0)
            called.values(margins, y)
            called.derivatives(margins, y)


def rehearse_noise(plan: Plan, sampler: Sampler) -> None:
    """Draw once from every noise law of ``plan``, on a machine that computes as proofs need it."""
    _require_usual_arithmetic()
    for law in {event.law for r in plan for event in r.events if event.scale}:
        _draw(sampler, law)


def _require_usual_arithmetic() -> None:
    """Refuse to run if numbers are not rounded to the nearest, or the smallest count as zero.

    Both are settings of a thread, which threads that it starts take over.

    Raises
    ------
    InvalidInput
        By the settings alone.
    """
    usual = True
    for real in (np.float64, np.longdouble):
        one, step = real(1), np.finfo(real).eps
        usual &= bool(one + step / 2 == one and one - step / 4 == one)
    small = np.array([2.0**-1074, 2.0**-1022]) * np.array([1.0, 0.5])
    if not (usual and small.all()):
        raise InvalidInput(
            "This thread does not round to the nearest number, or takes the smallest numbers for "
            "0: then no proof holds. Some library has set the processor so (-ffast-math does): "
            "import privtail without it, or fit in another process."
        )


def _empty(records: Records, d: int, *, clipped: bool) -> Iterator[MappedRows]:
    """Blocks without rows, of all types that occur for these records.

    With ``clipped`` also those of rows that are clipped to ranges, which are dense.
    """
    identity = FeatureMap.of(d, np.ones(d))
    if isinstance(records, Sparse):
        nowhere = np.empty(0, np.int64)
        kernels.merge_row(nowhere, np.empty(0), nowhere)
        yield identity.applied(SparseRows(sp.csr_matrix((0, d))))
        if clipped:
            yield MappedRows.as_they_are(np.empty((0, d)))
        return
    kernels.rows_of(np.empty((d, 0)), 0, np.empty((0, d)))
    yield MappedRows.as_they_are(np.empty((0, d)))


def _sweep(rows: MappedRows, problem: Problem, *, sums: bool) -> None:
    """Run the kernels of gradients and means on no rows."""
    d, outputs = problem.d, problem.outputs
    _, squares, valid = rows.margins(np.zeros((d, outputs)), np.zeros(outputs))
    if not sums:
        return
    total = np.zeros((1, d + problem.intercept, outputs))
    residuals, bits = np.zeros((0, outputs)), problem.bits
    for range_ in (Ball(1.0), Interval(1.0)):
        contribute(
            rows, squares, valid, residuals, np.zeros(0, np.int64), problem.intercept, range_, bits,
            total,
        )  # fmt: skip


def _steps(questions: set[str], problem: Problem) -> None:
    """Run the kernels of other questions on no rows."""
    if questions & {"scores", "improvement", "separations", "search"}:
        kernels.influence(
            np.empty(0), kernels.CLAMP, np.zeros(2 * kernels.FRACTION_DEGREE), 1, _BITS
        )
    if questions & {"histogram", "derivative norms"}:
        nothing, edges = np.empty((0, 1)), np.zeros((1, 1))
        kernels.tally(
            nothing, nothing.view(np.int64), np.empty(0, np.int64), edges, edges.view(np.int64),
            np.zeros((1, 2)),
        )  # fmt: skip
    if "moments" in questions:
        margin = kernels.margin_of_safety(1, _BITS)
        rows, valid = np.empty((0, 1)), np.empty(0, np.bool_)
        kernels.moment_sum(rows, valid, 1.0, _BITS, margin, np.zeros(1))


def _trim() -> None:
    """Run the kernels of smooth sensitivities on two zeros."""
    from privtail.trusted.smooth.trimmed import grid_steps, smooth_sensitivity

    zeros = np.zeros(2, np.int64)
    grid_steps(np.empty((0, 1)), 0.0, 1.0, 1.0, np.empty((1, 0), np.int64))
    smooth_sensitivity(zeros, zeros, np.ones(2), 0)


def _draw(sampler: Sampler, law: str) -> None:
    """Draw exact noise for zeros, and throw it away."""
    zeros, ones = np.zeros(2, np.int64), np.ones(2)
    if not sampler.exact:  # its draws are seeded: one more would change the others
        return
    if law in ("gaussian", "gaussian_labels"):
        sampler.gaussian(zeros, 1.0)
        sampler.gaussian(zeros, 2.0**99)  # where floating-point numbers decide nothing
    elif law in ("laplace", "laplace_max"):
        sampler.laplace(zeros, 1.0)
    elif law == "noisy_max":
        sampler.top(zeros, 1.0, 1)
    elif law == "laplace_lognormal":
        sampler.scaled_laplace_lognormal(zeros, ones, 1.0, 1.0)
    elif law == "smooth_gaussian":
        sampler.scaled_normal(zeros, ones, 1.0)
