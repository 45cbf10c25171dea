"""An exposure is private like any column, and moves an answer no farther than its bound.

Argument: the logarithm of an exposure is added to a record's margin, so what the record adds is
still a function of that record alone, and the range of the mean is enforced on it afterwards. No
bound knows of exposures, so none may depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtail.errors import IncompatibleParts, InvalidInput
from privtail.linear_model import DPGammaRegressor, DPPoissonRegressor
from privtail.losses import GeneralLoss, PoissonLoss, SquaredLoss, TweedieLoss
from privtail.robust_means import BoundedMean, ClampedMean, ClippedMean, SmoothedCatoniMean
from privtail.trusted import kernels, questions
from privtail.trusted.batch import Batch
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.records.targets import Numbers

N, D = 40, 2
HOSTILE = [
    0.0, -0.0, 5e-324, 1e-310, 1e-30, 0.5, 1.0, 365.0, 1e30, 1e308, -1.0, -1e308, np.nan, np.inf,
    -np.inf,
]  # fmt: skip
W = np.array([[0.3], [-0.7], [0.2]])
CELLS = 2.0 ** np.arange(-4, 5)
LOSSES = [PoissonLoss(), PoissonLoss(mean=0.1), TweedieLoss(power=1.5, mean=2.0), SquaredLoss()]
MEANS = [
    ClippedMean(0.5), ClippedMean(2.0, blocks=4), ClampedMean(1.0),
    SmoothedCatoniMean(scale=1.0, smoothing=1.0),
]  # fmt: skip


def table(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_t(2, (N, D)), rng.poisson(2.0, N).astype(float), rng.lognormal(0, 2, N)


def asked(X: np.ndarray, y: np.ndarray, exposure: np.ndarray | None) -> Batch:
    curator = Curator(
        X, y, exposure=exposure, intercept=True, budget=Budget(5.0, 1e-6), random_state=0
    )
    event = GaussianNoise(50.0).event(curator.problem.invalid_rows())
    curator.open((Round(events=(event,)),))
    return curator.everyone()


def answers(batch: Batch) -> Iterator[Any]:
    for loss in LOSSES:
        for mean in MEANS:
            yield batch.gradient(loss, W, mean)
        yield batch.derivatives(loss, W, ClippedMean(1.5))
        yield batch.improvement(loss, W, -W, ClampedMean(0.5))
        yield batch.separations(loss, W, ClampedMean(0.5))
        yield batch.scores(loss, [W, -W], BoundedMean(2.0))
        yield batch.derivative_norms(loss, W, CELLS)
        yield batch.gradient_moments(loss, W, ClippedMean(1.5))
    yield batch.histogram((-1, -2), CELLS)
    yield batch.histogram((0, -2), CELLS)
    yield batch.invalid_rows()


def too_far(first: Batch, second: Batch, norms: str) -> list[str]:
    """The questions whose answers differ by more than the bound, in l2 or any coordinate."""
    found = []
    for one, other in zip(answers(first), answers(second), strict=True):
        bounds = getattr(one.sensitivity, norms)
        moved = (one._value - other._value).astype(float)
        if np.linalg.norm(moved) > bounds.l2 or np.abs(moved).max() > bounds.linf:
            found.append(one.sensitivity.question)
    return found


number = st.sampled_from([*HOSTILE, 3.0, 1e16, -2.0])
record = st.tuples(number, number, number, number)


@given(old=record, new=record, at=st.integers(0, N - 1))
@settings(max_examples=60, deadline=None)
def test_a_record_moves_no_answer_farther_than_its_bound(
    old: tuple[float, ...], new: tuple[float, ...], at: int
) -> None:
    """Replaced, and emptied: a slot of missing numbers, which adds nothing."""
    batches = []
    for a, b, count, share in (old, new, (np.nan,) * 4):
        X, y, exposure = table()
        X[at], y[at], exposure[at] = (a, b), count, share
        batches.append(asked(X, y, exposure))
    assert too_far(batches[0], batches[1], "diameter") == []
    counted = [q for q in too_far(batches[0], batches[2], "radius") if q != "invalid rows"]
    assert counted == []


def test_a_weight_in_its_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sabotaged twin: what a record adds is multiplied by its exposure, after the range."""
    honest = questions.Derivatives.add

    def weighted(self: questions.Derivatives, block: questions.Block, sums: np.ndarray) -> None:
        before = sums.copy()
        honest(self, block, sums)
        assert block.exposures is not None
        sums[:] = before + (sums - before) * block.exposures.max()

    X, y, exposure = table()
    batches = []
    for share in (0.5, 1e6):
        exposure = exposure.copy()
        exposure[3] = share
        batches.append(asked(X, y, exposure))
    assert too_far(*batches, "diameter") == []
    monkeypatch.setattr(questions.Derivatives, "add", weighted)
    assert "derivatives" in too_far(*batches, "diameter")


@pytest.mark.parametrize("share", [0.0, -1.0, np.nan, np.inf, -np.inf])
def test_where_an_exposure_is_not_positive_and_finite_the_row_counts_for_nothing(
    share: float,
) -> None:
    X, y, exposure = table()
    exposure[3], missing = share, y.copy()
    missing[3] = np.nan
    for one, other in zip(
        answers(asked(X, y, exposure)), answers(asked(X, missing, table()[2])), strict=True
    ):
        np.testing.assert_array_equal(one._value, other._value)


def test_an_exposure_of_one_changes_nothing() -> None:
    X, y, _ = table()
    for loss in LOSSES:
        found = [
            asked(X, y, exposure).gradient(loss, W, ClippedMean(0.5))._value
            for exposure in (np.ones(N), None)
        ]
        np.testing.assert_array_equal(*found)


def test_logarithms_are_exact_and_each_by_itself() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [10 ** rng.uniform(-323, 308, 5_000), [5e-324, 1.0, 1.7e308], 1 + rng.random(999)]
    )
    whole, alone = np.empty(len(x)), np.empty(1)
    kernels.logarithms(x, whole)
    np.testing.assert_allclose(whole, np.log(x), rtol=1e-15)
    for i in range(0, len(x), 97):
        kernels.logarithms(x[i : i + 1].copy(), alone)
        assert alone[0] == whole[i]


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_cell_of_a_list_that_is_no_number_is_no_exposure(kind: Any) -> None:
    target = Numbers([1.0, 2.0, 3.0, 4.0], 4, kind([1.0, "x", None, [2.0]]))
    np.testing.assert_array_equal(target.rows(slice(0, 4)), [1.0, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(target.exposures(slice(0, 4)), np.ones(4))


def test_what_knows_no_margin_is_refused_before_the_charge() -> None:
    X, y, exposure = table()
    whole = GeneralLoss(value=lambda w, x, y: 0.0, gradient=lambda w, x, y: np.zeros(w.size))
    with pytest.raises(IncompatibleParts, match="auto"):
        Curator(X, y, exposure=exposure, budget=Budget(5.0, 1e-6)).open((), whole)
    with pytest.raises(IncompatibleParts, match="all numbers of a row"):
        asked(X, y, exposure).gradient(whole, W, ClippedMean(1.0))
    batch = asked(X, y, None)
    with pytest.raises(InvalidInput, match="no exposure"):
        batch.histogram((-2,), CELLS)


@pytest.mark.parametrize("share", HOSTILE)
def test_no_exposure_is_an_error_or_a_warning(share: float) -> None:
    """Shapes, types and the number of releases are those of any other exposure, too."""
    X, y, exposure = table()
    for make in (DPPoissonRegressor, DPGammaRegressor):
        fitted = []
        for value in (1.0, share):
            exposure[:3] = value
            model = make(epsilon=1e6, noise="simulated", random_state=0)
            fitted.append(model.fit(X, y, exposure=exposure))
        assert len(fitted[0].plan_) == len(fitted[1].plan_)
        assert np.isfinite(fitted[1].coef_).all()
        assert fitted[0].coef_.shape == fitted[1].coef_.shape
