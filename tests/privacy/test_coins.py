"""Poisson batches: an id's coin is fixed by the round's key, whoever asks, and how often."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privtail.robust_means import ClampedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.dataset import Dataset
from privtail.trusted.deals import RUN, Coins
from privtail.trusted.events import Round
from privtail.trusted.mechanisms.samplers import ExactSampler
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.partitions import answered
from privtail.trusted.sampling import PoissonBatches

N = 3 * RUN + 100
KEY = bytes(range(32))
RATE = 0.3


def heads(coins: Coins, n: int = N) -> list[int]:
    ids = coins.within(0, n)
    assert not isinstance(ids, slice)
    return ids.tolist()


def test_the_stream_is_the_standard_s() -> None:
    """The value that NIST publishes for the empty message, and the coins as FIPS 202 gives them."""
    published = "46b9dd2b0ba88d13233b3feb743eeb243fcd52ea62b81b82b50c27646ed5762f"
    assert hashlib.shake_256(b"").hexdigest(32) == published

    def stream(number: int, mark: bytes = b"") -> Any:
        return hashlib.shake_256(KEY + number.to_bytes(8, "little") + mark)

    runs = [stream(run).digest(2 * RUN) for run in range(N // RUN + 1)]
    for rate in (RATE, 0.001, 2.0**-10, 2.0**-17):
        found = []
        for i in range(N):
            word = int.from_bytes(runs[i // RUN][2 * (i % RUN) :][:2], "little") << 48
            word += int.from_bytes(stream(i, b"low").digest(6), "little")
            found += [i] if word < int(rate * 2**64) else []
        assert heads(Coins(rate, KEY)) == found


@pytest.mark.parametrize("ends", [[0, N], [0, 0, 1, RUN - 1, RUN, RUN + 1, N - 1, N]])
def test_coins_are_the_same_in_any_partitions(ends: list[int]) -> None:
    coins = Coins(RATE, KEY)
    parts = [coins.within(*pair) for pair in itertools.pairwise(ends)]
    assert np.concatenate(parts).tolist() == heads(coins)


def test_ends_of_the_rate() -> None:
    assert Coins(1.0, KEY).within(2, 9) == slice(2, 9)
    assert heads(Coins(2.0**-63, KEY)) == []
    assert len(heads(Coins(1 - 2.0**-53, KEY))) == N


def test_small_rates_are_not_rounded() -> None:
    """Binomial test at 1e-9; 16 bits alone, which are caught, round this rate up to 2^-16."""
    rate, n = 2.0**-19, 2**23
    few = len(heads(Coins(rate, KEY), n))
    assert stats.binomtest(few, n, rate).pvalue > 1e-9
    assert stats.binomtest(len(heads(Coins(2.0**-16, KEY), n)), n, rate).pvalue < 1e-9


def test_neighbours_in_the_stream_are_independent() -> None:
    """Pairs of ids, and of rounds; binomial tests at 1e-6 in all. The same key twice is caught."""

    def p_value(one: Coins, other: Coins) -> float:
        found = np.zeros((2, N), dtype=bool)
        for row, coins in zip(found, (one, other), strict=True):
            row[heads(coins)] = True
        pairs = [(found[0] & found[1]), *(found[0][:-k] & found[0][k:] for k in (1, 2, 8, RUN))]
        return min(
            len(pairs) * stats.binomtest(int(p.sum()), len(p), RATE**2).pvalue for p in pairs
        )

    assert p_value(Coins(RATE, KEY), Coins(RATE, KEY[::-1])) > 1e-6
    assert p_value(Coins(RATE, KEY), Coins(RATE, KEY)) < 1e-6


def test_keys_are_of_the_operating_system_and_new_in_every_round() -> None:
    """Whatever ``random_state``; simulated ones repeat."""
    batches: dict[str, list[list[int]]] = {"exact": [], "simulated": []}
    for noise in ("exact", "simulated"):
        for _ in range(2):
            curator = Curator(
                np.ones((N, 1)), budget=Budget(9.0, 1e-6), random_state=0, noise=noise  # type: ignore[arg-type]
            )  # fmt: skip
            sampling = PoissonBatches(RATE)
            curator.open((Round(events=(), sampling=sampling, times=2),))
            rounds = curator.rounds(sampling, 2)
            batches[noise] += [b._sample.within(0, N).tolist() for b in rounds]  # type: ignore[union-attr]
    a, b, c, d = batches["exact"]
    assert len({tuple(x) for x in (a, b, c, d)}) == 4
    a, b, c, d = batches["simulated"]
    assert [a, b] == [c, d]
    assert a != b
    keys = {ExactSampler().coins(RATE).key for _ in range(9)}
    assert {len(key) for key in keys} == {32}
    assert len(keys) == 9
    assert SimulatedSampler(1).coins(RATE).key == SimulatedSampler(1).coins(RATE).key


def one_batch() -> bool:
    """Whether two releases of a batch, and a task that is run again, see the same records."""
    X = np.random.default_rng(0).normal(size=(N, 2))
    curator = Curator(X, budget=Budget(9.0, 1e-6), noise="simulated", random_state=0)
    sampling = PoissonBatches(RATE)
    curator.open((Round(events=(), sampling=sampling),))
    asked: list[Any] = []
    sums = Dataset.sums
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dataset, "sums", lambda d, q: asked.append((d, q)) or sums(d, q))
        batch = next(curator.rounds(sampling, 1))
        first, second = (batch.means(ClampedMean(1.0))._value.tolist() for _ in range(2))
    data, question = asked[0]
    again = [answered(question, window) for window in data.windows(False) for _ in range(3)]
    return all(one.ravel().tolist() == first for one in again) and first == second


def test_a_batch_is_one_batch_for_every_release_and_every_retry() -> None:
    assert one_batch()


def test_coins_that_are_drawn_again_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Coins.within
    fresh = ExactSampler()
    monkeypatch.setattr(Coins, "within", lambda self, *w: honest(fresh.coins(self.rate), *w))
    assert not one_batch()
