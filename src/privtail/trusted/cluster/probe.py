"""Whether two workers compute alike: the sums of a public probe, to the bit.

Formal guarantee
----------------
The lemma of `means` needs each record's contribution to be a function of that record. Did a worker
round ``exp`` in another way than its neighbour, the contributions of a whole partition would depend
on where it is; and where it is may depend on how long something took, so on records. So every
worker sums made-up rows, with all kernels and losses, and if the sums of one differ by a bit, or
its libraries have other versions, the fit is refused. A probe finds what differs at its points, and
no more. The driver sums no rows and is not compared.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Iterator
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

import privtail
from privtail.losses import LOSSES, HuberLoss, LogisticLoss
from privtail.schema.encoding import Encoding
from privtail.schema.features import Bins, Cross, Log, Spline
from privtail.trusted import callbacks, questions
from privtail.trusted.callbacks import CoreLoss
from privtail.trusted.deals import Deal, Listed
from privtail.trusted.maps import FeatureMap
from privtail.trusted.means import CATONI, FRACTION_DEGREE, Ball, CheckedMean, Interval
from privtail.trusted.partitions import answered
from privtail.trusted.problem import Problem
from privtail.trusted.questions import Question
from privtail.trusted.records import Window, as_records
from privtail.trusted.records.tables import Table
from privtail.trusted.records.targets import Numbers

N, D, POINTS, RECORDS = 1000, 5, 4096, 64
DIFFERS = (
    "A Dask worker computes other bits than another, so sums would differ. The workers have "
    "different versions of privtail, NumPy or Numba, or different processors or C libraries. Give "
    "all workers one environment on one kind of machine."
)
ENCODING = Encoding(
    features=(Log("a"), Bins("b", (0.0,)), Spline("c", (-2.0, 0.0, 2.0)), Cross("d", "e"))
)
COEFFICIENTS = tuple(0.5**k for k in range(2 * FRACTION_DEGREE))
SHORT = tuple(c if k % FRACTION_DEGREE < 8 else 0.0 for k, c in enumerate(COEFFICIENTS))
MEANS = (
    CheckedMean(Ball(1.5), 3), CheckedMean(Ball(3.0, 2.0), 1), CheckedMean(Interval(1.5), 1),
    CheckedMean(Interval(2.0, CATONI, SHORT), 1),
    CheckedMean(Interval(2.0, CATONI, COEFFICIENTS), 1),
)  # fmt: skip


@functools.cache
def probed() -> bytes:
    """A digest of the answers of this process to the probe; the first call compiles all kernels."""
    digest = hashlib.blake2b(digest_size=16)
    names = ("numpy", "numba", "llvmlite")
    digest.update(repr((privtail.__version__, *map(version, names))).encode())
    X, y = _points(N * D).reshape(N, D), _points(N)
    part = as_records(X), Numbers(y, N)
    for question in _questions():
        digest.update(answered(question, Window(0, N, lambda: part)).tobytes())
    for loss in LOSSES:
        digest.update(probed_loss(callbacks.core_loss(loss), D, (D, loss.outputs)))
    features = Table(dict(zip("abcde", X.T, strict=True)), {}, ENCODING)
    one, zero = np.ones(features.d), np.zeros(features.d)
    rows = features.rows(slice(0, N)).transformed(one, zero)
    digest.update(np.where(np.isnan(rows), 0.0, rows).tobytes())
    return digest.digest()


def probed_loss(called: CoreLoss, d: int, shape: tuple[int, ...]) -> bytes:
    """Values of a loss at public margins and targets, or at public rows and a w of ``shape``."""
    with np.errstate(all="ignore"):
        if called.gradients:
            rows = _points(RECORDS * d).reshape(RECORDS, d)
            w = _points(math.prod(shape)).reshape(shape)
            found = [called.gradients(w, rows, _points(RECORDS))]
        else:
            margins = _points(POINTS * shape[1]).reshape(POINTS, shape[1])
            targets = (np.arange(POINTS) % max(2, shape[1])).astype(float)
            found = [called.values(margins, targets), called.derivatives(margins, targets)]
    digest = hashlib.blake2b(digest_size=16)
    for numbers in found:
        digest.update(np.where(np.isnan(numbers), 0.0, numbers).tobytes())
    return digest.digest()


def _points(count: int) -> NDArray[np.float64]:
    """Numbers of all signs and of many sizes, with all their digits."""
    places = np.arange(1, count + 1) * 0.6180339887498949 % 1.0 - 0.5
    return np.asarray(places / (0.2501 - places**2))


def _questions() -> Iterator[Question]:
    problem = Problem(n=N, d=D, outputs=1, intercept=True)
    everyone, map_ = Listed(slice(0, N)), FeatureMap.of(D, np.linspace(0.5, 2.0, D), np.ones(D))
    w = np.linspace(-1.0, 1.0, D + 1)[:, None]
    edges = np.tile(np.linspace(-2.0, 2.0, 9), (D + 1, 1))

    def question(term: questions.Term, *shape: int) -> Question:
        deal = Deal(N, shape[0], bytes(32))
        return Question(term, shape, map_, problem, everyone, deal)

    box, losses = Interval(1.0), (LogisticLoss(), HuberLoss(threshold=1.0))
    for loss in (callbacks.core_loss(one) for one in losses):
        for mean in MEANS:
            term = questions.Gradient(loss, w, mean.range)
            yield question(term, mean.blocks, D + 1, 1)
        yield question(questions.Derivatives(loss, w, box, None), 1, 1, 1)
        yield question(questions.Scores(loss, (w, -w), box, None), 1, 2, 1)
        yield question(questions.Improvement(loss, w, -w, box, None), 1, 1, 1)
        yield question(questions.Separations(loss, w, box), 1, D, 1)
        yield question(questions.DerivativeNorms(loss, w, edges[0]), 1, 1, 10)
    for mean in MEANS:
        yield question(questions.Means(mean.range), mean.blocks, D, 1)
    yield question(questions.Moments(1.7, target=True), 1, (D + 2) * (D + 3) // 2, 1)
    yield question(questions.CellCounts((0, 1), edges[:2], ()), 1, 1, 2, 10)
    yield question(questions.ColumnMoments((0, 1), ()), 1, 1, 2, 2)
    yield question(questions.Histogram((*range(D), -1), edges, pooled=False), 1, D + 1, 10)
