"""Watching a fit: public numbers, once a round, and never at the cost of a release."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest

from privtail import progress
from privtail.calibration import calibrated
from privtail.default import ScaledDescent, Tuning
from privtail.domains import Unconstrained
from privtail.linear_model import DPLinearRegression
from privtail.losses import SquaredLoss
from privtail.mean import METHODS, private_mean
from privtail.robust_means import ClippedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sampling import DisjointParts, Everyone, PoissonBatches, Sampling

X, Y = np.ones((12, 2)), np.arange(12.0)
MEAN, NOISE = ClippedMean(1.0), GaussianNoise(50.0)


def curate(times: int, sampling: Sampling | None = None, releases: int = 1, **o: Any) -> Curator:
    sampling = sampling or Everyone()
    curator = Curator(X, o.pop("y", Y), budget=Budget(50.0, 1e-6), random_state=0, **o)
    event = NOISE.event(curator.problem.sampled(sampling).means(MEAN))
    curator.open((Round(sampling=sampling, events=(event,) * releases, times=times),))
    return curator


def fit(times: int = 3, sampling: Sampling | None = None) -> list[Any]:
    curator = curate(times, sampling)
    return [b.means(MEAN).release(NOISE) for b in curator.rounds(sampling or Everyone(), times)]


@pytest.mark.parametrize("sampling", [Everyone(), PoissonBatches(0.5), DisjointParts(3)])
def test_every_round_is_told_once_and_in_order(sampling: Sampling) -> None:
    seen: list[tuple[int, int]] = []
    with progress.watching(lambda *told: seen.append(told[:2])):
        fit(4, sampling)
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    fit()
    assert len(seen) == 4  # nobody watches any more


def test_a_round_is_done_when_its_last_release_was_made_or_it_is_closed() -> None:
    seen: list[tuple[int, int]] = []
    with progress.watching(lambda *told: seen.append(told[:2])):
        curator = curate(3, releases=2)
        first = curator.everyone()
        first.means(MEAN).release(NOISE)
        assert seen == []
        first.means(MEAN).release(NOISE)
        assert seen == [(1, 3)]
        curator.everyone()
        curator.everyone()
        assert seen == [(1, 3), (2, 3)]
        assert list(curator.rounds(Everyone(), 0)) == []
        assert seen == [(1, 3), (2, 3), (3, 3)]


def test_every_stage_of_the_default_has_a_name_and_is_told() -> None:
    told: list[str] = []
    rng = np.random.default_rng(0)
    model = DPLinearRegression(epsilon=20.0, noise="simulated", random_state=0)
    with progress.watching(lambda done, planned, stage: told.append(stage)):
        model.fit(rng.normal(size=(500, 2)), rng.normal(size=500))
    assert told == [r.stage for r in model.privacy_.plan for _ in range(r.times)]
    assert "" not in told
    assert {"column summaries", "preconditioner", "descent", "acceptance test"} <= set(told)
    for stage in set(told):
        assert stage in model.plan_.to_text()
        assert stage in model.privacy_.to_text()


def test_buying_labels_is_a_round() -> None:
    seen: list[tuple[int, int]] = []
    mechanism = StabilityHistogram(5.0, 1e-7)
    curator = Curator(X, Y, budget=Budget(5.0, 1e-6), classes=())
    curator.open((Round(events=(mechanism.event(curator.problem.labels()),)),))
    with progress.watching(lambda *told: seen.append(told[:2])):
        curator.everyone().labels(mechanism)
    assert seen == [(1, 1)]


@pytest.mark.parametrize("method", METHODS)
def test_a_whole_job_ends_at_its_plan(method: Any) -> None:
    seen: list[tuple[int, int]] = []
    with progress.watching(lambda *told: seen.append(told[:2])):
        found = private_mean(X, epsilon=20.0, method=method)
    planned = sum(r.times for r in found.privacy_.plan)
    assert seen == [(t, planned) for t in range(1, planned + 1)]


def test_what_is_told_does_not_depend_on_the_records() -> None:
    told = []
    for x, y in ((X, Y), (np.full_like(X, np.nan), np.full_like(Y, 1e308))):
        seen: list[tuple[int, int]] = []
        curator = Curator(x, y, budget=Budget(5.0, 1e-6), random_state=0)
        algorithm = ScaledDescent(tuning=Tuning(steps=4))
        m = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))  # noqa: B023
        with progress.watching(lambda *told: seen.append(told[:2])):  # noqa: B023
            algorithm.run(curator, SquaredLoss(), Unconstrained(), m)
        told.append(seen)
    assert told[0] == told[1]
    assert told[0][-1][0] == told[0][-1][1]


def test_a_failing_display_costs_no_release_and_is_named_once() -> None:
    calls: list[int] = []

    def fails(done: int, planned: int, stage: str) -> None:
        calls.append(done)
        raise ZeroDivisionError("display")

    with (
        pytest.warns(RuntimeWarning, match="ZeroDivisionError") as caught,
        progress.watching(fails),
    ):
        assert len(fit(3)) == 3
    assert calls == [1]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_warnings_that_are_errors_come_after_the_fit() -> None:
    releases: list[Any] = []

    def watched_fit() -> None:
        with progress.watching(lambda *numbers: 1 / 0):
            releases.extend(fit(3))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="display"):
            watched_fit()
    assert len(releases) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_passes_through(error: type[BaseException]) -> None:
    def interrupt(done: int, planned: int, stage: str) -> None:
        raise error

    with pytest.raises(error), progress.watching(interrupt):
        fit(3)
    assert progress._WATCHED.get() is None


def test_the_error_of_a_fit_is_not_hidden() -> None:
    def failing_fit() -> None:
        with progress.watching(lambda *numbers: 1 / 0):
            fit(1)
            raise LookupError("fit")

    with pytest.raises(LookupError, match="fit"):
        failing_fit()


def test_nested_watches_and_nested_curators() -> None:
    outer: list[tuple[int, int]] = []
    inner: list[tuple[int, int]] = []
    with progress.watching(lambda *told: outer.append(told[:2])):
        curator = curate(2)
        for batch in curator.rounds(Everyone(), 2):
            batch.means(MEAN).release(NOISE)
            fit(1)
            with progress.watching(lambda *told: inner.append(told[:2])):
                fit(1)
    assert outer == [(1, 2), (1, 1), (2, 2), (1, 1)]
    assert inner == [(1, 1), (1, 1)]


def test_a_display_may_use_the_curator_that_it_watches() -> None:
    curator = curate(2)

    def meddle(done: int, planned: int, stage: str) -> None:
        if done == 1:
            curator.everyone()

    with progress.watching(meddle):
        curator.everyone().means(MEAN).release(NOISE)


def test_threads_watch_their_own_fits() -> None:
    seen: dict[int, list[tuple[int, int]]] = {t: [] for t in range(4)}

    def work(t: int) -> None:
        with progress.watching(lambda *told: seen[t].append(told[:2])):
            fit(t + 1)

    with progress.watching(lambda *numbers: pytest.fail("another thread's fit")):
        threads = [threading.Thread(target=work, args=(t,)) for t in seen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    for t, numbers in seen.items():
        assert numbers == [(i, t + 1) for i in range(1, t + 2)]
