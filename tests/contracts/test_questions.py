"""Questions are values: pickled or not, in any partitions they have the same answers."""

from __future__ import annotations

import inspect
import itertools
import math
import pickle
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from privtail.errors import InvalidInput
from privtail.linear_model import DPLinearRegression
from privtail.losses import (
    LOSSES,
    CustomLoss,
    CutLoss,
    GeneralLoss,
    LabelProbability,
    LogisticLoss,
    LogTruncatedLoss,
    RelativeHuberLoss,
    SquaredLoss,
    TruncatedLoss,
    WeightedLoss,
    WrongLabel,
)
from privtail.robust_means import BoundedMean, ClampedMean, ClippedMean, MallowsMean
from privtail.trusted import questions
from privtail.trusted.batch import Batch
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import Deal, Sample
from privtail.trusted.events import Round
from privtail.trusted.maps import FeatureMap, PredictionRanges
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.partitions import Partitions, answered, counted
from privtail.trusted.questions import Question
from privtail.trusted.records import Window, as_records
from privtail.trusted.records.targets import Labels, Numbers
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling

N, D = 600, 5
EDGES = [-1.0, 0.0, 0.5, 2.0]
SAMPLINGS = (Everyone(), PoissonBatches(0.4), DisjointParts(3))
CUTS = {1: [0, N], 2: [0, 250, N], 7: [0, 0, 1, 90, 90, 400, 599, N]}
"""Ends of partitions; some of the seven are empty, or of one row."""


def slope(margin: float, y: float) -> float:
    return math.tanh(margin - y)


def height(margin: float, y: float) -> float:
    return math.log(math.cosh(margin - y))


def cubic(w: Any, x: Any, y: float) -> Any:
    return w[: len(x)].ravel() @ x - y**3


def cubic_gradient(w: Any, x: Any, y: float) -> Any:
    return np.append(x, 1.0)[: len(w), None] * np.sign(w.ravel()[: len(x)] @ x - y**3)


@dataclass(frozen=True)
class Foreign:
    """A loss of somebody else, called record by record."""

    outputs: int = 1
    name: ClassVar[str] = "foreign"
    targets: ClassVar[str] = "real"
    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def values(self, margins: Any, y: Any) -> Any:
        return np.abs(margins[:, 0] - y) ** 1.5

    def derivatives(self, margins: Any, y: Any) -> Any:
        return np.arctan(margins - y[:, None])


OF_MARGINS: tuple[Any, ...] = (
    *LOSSES,
    CutLoss(loss=LogisticLoss(), lowest=-1.0, highest=0.5),
    LabelProbability(),
    LabelProbability(outputs=3),
    LogTruncatedLoss(scale=2.0),
    RelativeHuberLoss(threshold=1.0),
    WeightedLoss(loss=LogisticLoss(), weights=(1.0, 3.0)),
    WrongLabel(outputs=3),
    CustomLoss(value=height, derivative=slope, name="module"),
    Foreign(),
)
OF_RECORDS: tuple[Any, ...] = (
    GeneralLoss(value=cubic, gradient=cubic_gradient),
    TruncatedLoss(loss=SquaredLoss(), bound=1.5),
    TruncatedLoss(loss=Foreign(), bound=0.5),
)


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X, y = rng.standard_t(1.5, (N, D)), rng.integers(0, 3, N).astype(float)
    X[::50, 2], y[::31], X[7] = math.nan, 1e308, 1e200
    return X, y


def with_losses(b: Batch, loss: Any) -> None:
    rows, outputs = b.problem.rows, b.problem.outputs
    w = np.linspace(-1, 1, rows * outputs).reshape(rows, outputs)
    b.gradient(loss, w, ClippedMean(0.7, blocks=3))
    if loss in OF_RECORDS:
        return
    ranges = PredictionRanges.of(np.tile([-1.0, 1.0], (D, 1)), [-2.0, 2.0])
    b.gradient(loss, w, MallowsMean(0.7, 2.0))
    b.gradient(loss, w, ClampedMean(0.7, blocks=2))
    b.derivatives(loss, w, ClippedMean(0.5))
    b.derivatives(loss, w, ClippedMean(0.5), ranges)
    b.scores(loss, [w, -w], BoundedMean(2.0, blocks=2), ranges)
    b.improvement(loss, w, -w, ClampedMean(2.0), ranges)
    b.separations(loss, w, ClampedMean(1.0))
    b.derivative_norms(loss, w, [0.1, 1.0, 10.0])
    if outputs == 1:
        b.gradient_moments(loss, w, MallowsMean(0.7, 2.0))


def without_losses(b: Batch, loss: Any) -> None:
    b.means(ClampedMean(1.0, blocks=4))
    b.means(ClippedMean(1.0))
    b.moments(1.7, target=True)
    b.moments(0.3)
    b.histogram([0, 2, -1], EDGES)
    b.histogram([0, 1, 3], EDGES, pooled=True)
    b.cell_counts([0, 2], EDGES, [[1, 3]])
    b.column_moments([0, 2], [[1, 3]])
    b.invalid_rows()


def asked(loss: Any, ask: Any, sampling: Sampling = Everyone()) -> list[tuple[Question, Any]]:  # noqa: B008
    """Questions of a batch, and what its data set answered."""
    kept: list[tuple[Question, Any]] = []
    sums = Dataset.sums

    def keep(self: Dataset, question: Question) -> Any:
        kept.append((question, sums(self, question)))
        return kept[-1][1]

    curator = Curator(
        *data(), budget=Budget(1.0, 1e-6), random_state=3, intercept=True, noise="simulated",
        outputs=getattr(loss, "outputs", 1),
    )  # fmt: skip
    curator.open((Round(events=(), sampling=sampling),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "sums", keep)
        rounds = curator.rounds(sampling, 1, FeatureMap.of(D, np.linspace(0.5, 2, D), np.ones(D)))
        ask(next(rounds), loss)
    return kept


def divided(ends: list[int], storage: Any = as_records, X: Any = None) -> list[Window]:
    """The same rows, each part in a container of its own."""
    X, y = data() if X is None else (X, data()[1])

    def window(start: int, stop: int) -> Window:
        part = storage(X[start:stop].copy()), Numbers(y[start:stop].copy(), stop - start)
        return Window(start, stop, lambda: part)

    return [window(*pair) for pair in itertools.pairwise(ends)]


def away(question: Question, windows: list[Window]) -> Any:
    """What workers say that were handed the pickled question and rows, and nothing else."""
    sent = pickle.loads(pickle.dumps(question))  # noqa: S301
    return sum(answered(sent, window) for window in windows)


def check(loss: Any, ask: Any, sampling: Sampling = Everyone()) -> None:  # noqa: B008
    kept = asked(loss, ask, sampling)
    assert kept
    for parts, ends in CUTS.items():
        windows = divided(ends)
        for question, expected in kept:
            for _ in range(2):  # a task may be run again
                assert np.array_equal(away(question, windows), expected), (question.term, parts)


@pytest.mark.parametrize("loss", [*OF_MARGINS, *OF_RECORDS], ids=lambda loss: loss.name)
def test_every_loss_in_any_partitions(loss: Any) -> None:
    check(loss, with_losses)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_question_without_a_loss_in_any_partitions(sampling: Sampling) -> None:
    check(None, without_losses, sampling)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_every_sampling_in_any_partitions(sampling: Sampling) -> None:
    check(SquaredLoss(), with_losses, sampling)


def test_every_term_is_asked() -> None:
    named = {type(q.term).__name__ for q, _ in asked(SquaredLoss(), with_losses)}
    named |= {type(q.term).__name__ for q, _ in asked(None, without_losses)}
    kinds = inspect.getmembers(questions, inspect.isclass)
    terms = {name for name, kind in kinds if hasattr(kind, "add")}
    assert terms - named == {"Term", "GradientNorms"}


@pytest.mark.parametrize("loss", [SquaredLoss(), OF_RECORDS[0]], ids=["margins", "records"])
def test_norms_that_promise_nothing(loss: Any) -> None:
    curator = Curator(*data(), budget=Budget(math.inf), intercept=True)
    mean = ClippedMean(math.inf)
    curator.open((Round(events=(GaussianNoise(0.0).event(curator.problem.gradient(mean)),)),))
    batch, kept, sums = curator.everyone(), [], Dataset.sums
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "sums", lambda d, q: kept.append((q, sums(d, q))) or kept[-1][1])
        batch.gradient(loss, np.linspace(-1, 1, D + 1)[:, None], mean)
    assert isinstance(kept[0][0].term, questions.GradientNorms)
    for question, expected in kept:
        assert np.array_equal(away(question, divided(CUTS[7])), expected)


def test_sparse_rows_in_any_partitions() -> None:
    X, y = data()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    curator = Curator(sp.csr_matrix(X), y, budget=Budget(1.0, 1e-6), random_state=3)
    curator.open((Round(events=()),))
    kept, sums = [], Dataset.sums
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "sums", lambda d, q: kept.append((q, sums(d, q))) or kept[-1][1])
        w = np.linspace(-1, 1, D)[:, None]
        curator.everyone().gradient(SquaredLoss(), w, ClippedMean(1.0, blocks=3))
    for storage in (as_records, lambda part: as_records(sp.csr_matrix(part))):
        windows = divided(CUTS[7], storage, X)
        assert np.array_equal(away(kept[0][0], windows), kept[0][1])


def test_labels_in_any_partitions() -> None:
    y = np.array(["a", "b", None, "a", "c", 1, 1.0, True], dtype=object)
    curator = Curator(np.ones((8, 1)), y, classes=(), budget=Budget(1.0, 1e-6))
    curator.open((Round(events=()),))
    batch = curator.everyone()
    seen = pickle.loads(pickle.dumps(batch._sample))  # noqa: S301
    whole = batch._data.counts(seen)
    assert whole == {"a": 2, "b": 1, "c": 1, 1: 3}
    parts: Counter[Any] = Counter()
    for start, stop in ((0, 3), (3, 3), (3, 8)):
        part = Labels(y[start:stop], stop - start)
        parts.update(counted(seen, Window(start, stop, lambda part=part: (None, part))))
    assert parts == whole


@dataclass(frozen=True)
class Divided:
    """Another implementation of `Partitions`: every question is pickled for every part."""

    windows: tuple[Window, ...]

    def sums(self, question: Question) -> Any:
        return away(question, list(self.windows))

    def counts(self, sample: Sample) -> Counter[Any]:
        return sum((counted(sample, window) for window in self.windows), Counter())


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
@pytest.mark.parametrize("ends", CUTS.values(), ids=CUTS)
def test_a_whole_fit_in_any_partitions(
    ends: list[int], epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data()
    X[:, 0] += y.clip(0, 3)

    def fitted() -> list[float]:
        model = DPLinearRegression(epsilon=epsilon, noise="simulated", random_state=0)
        model.fit(X, y)
        return [*model.coef_, float(model.intercept_)]

    here = fitted()
    held: Partitions = Divided(tuple(divided(ends, X=X)))
    monkeypatch.setattr(Dataset, "sums", lambda self, question: held.sums(question))
    assert fitted() == here


WORKER = """
import pickle, sys
import numpy as np
from privtail.trusted.partitions import answered
from privtail.trusted.records import Window, as_records
from privtail.trusted.records.targets import Numbers

question, X, y, start = pickle.load(sys.stdin.buffer)
part = as_records(X), Numbers(y, len(y))
sums = answered(question, Window(start, start + len(y), lambda: part))
sys.stdout.buffer.write(pickle.dumps(sums))
assert "privtail.trusted.ledger" not in sys.modules
assert "privtail.trusted.curator" not in sys.modules
assert "privtail.trusted.mechanisms.samplers" not in sys.modules
"""


def test_another_process_that_knows_nothing_else() -> None:
    """It imports neither the ledger nor what draws noise."""
    X, y = data()
    ((question, expected), *_) = asked(SquaredLoss(), with_losses)
    total = 0
    for start, stop in ((0, 250), (250, N)):
        sent = pickle.dumps((question, X[start:stop], y[start:stop], start))
        command = [sys.executable, "-c", WORKER]
        run = subprocess.run(command, input=sent, capture_output=True, check=False)
        assert run.returncode == 0, run.stderr.decode()
        total = total + pickle.loads(run.stdout)  # noqa: S301
    assert np.array_equal(total, expected)


def test_a_question_holds_no_record() -> None:
    """It is as long as its public parts, however many rows it is asked of."""
    for question, _ in (*asked(SquaredLoss(), with_losses), *asked(None, without_losses)):
        for part in (question.term, question.map, question.problem):
            assert len(pickle.dumps(part)) < 20_000
            assert not isinstance(part, Batch | Curator | Dataset)


def test_a_map_arrives_checked_and_read_only() -> None:
    """So kernels that were compiled for the one are those for the other."""
    sent = FeatureMap.of(2, [1.0, 2.0], [0.5, 0.0])
    found = pickle.loads(pickle.dumps(sent))  # noqa: S301
    for one, other in ((sent.scales, found.scales), (sent.offsets, found.offsets)):
        assert one.tolist() == other.tolist()
        assert not other.flags.writeable


# Sabotage


def test_a_row_that_depends_on_the_rows_beside_it_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = questions.contribute

    def together(rows: Any, squares: Any, valid: Any, residuals: Any, *others: Any) -> None:
        longest = np.abs(np.nan_to_num(residuals[valid])).max(initial=1e-9)
        honest(rows, squares, valid, residuals / longest, *others)

    monkeypatch.setattr(questions, "contribute", together)
    with pytest.raises(AssertionError):
        check(SquaredLoss(), with_losses)


def test_ids_that_begin_anew_in_every_partition_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Deal.labels
    monkeypatch.setattr(Deal, "labels", lambda self, start, stop: honest(self, 0, stop - start))
    with pytest.raises(AssertionError):
        check(SquaredLoss(), with_losses)


def test_rows_outside_a_window_are_refused() -> None:
    """Not read: kernels trust the length of labels."""
    (question, _), *_ = asked(SquaredLoss(), with_losses)
    window = divided([0, N])[0]
    short = Window(0, 10, window.open)
    with pytest.raises(InvalidInput, match="must hold the rows"):
        answered(question, short, slice(5, 15))
