"""Deals of ids: balanced bijections that a key decides, the same in any partitions."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privtail.errors import InvalidInput
from privtail.trusted import deals
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.deals import Deal, Part

KEYS = [bytes([k]) * 32 for k in range(3)]
SIZES = [1, 2, 3, 5, 60, 255, 256, 257, 1000, 4097]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("key", KEYS, ids=lambda key: str(key[0]))
def test_a_shuffle_is_a_bijection(n: int, key: bytes) -> None:
    assert sorted(Deal(n, n, key).labels(0, n).tolist()) == list(range(n))


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("ids", [(0, 61), (-1, 5), (70, 80), (9, 8)])
def test_other_ids_are_refused(blocks: int, ids: tuple[int, int]) -> None:
    """A walk from one of these need never come to a place below n."""
    with pytest.raises(InvalidInput, match="among the 60 of this deal"):
        Deal(60, blocks, KEYS[0]).labels(*ids)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("blocks", [1, 2, 3, 7, 50])
def test_blocks_are_balanced(n: int, blocks: int) -> None:
    sizes = np.bincount(Deal(n, blocks, KEYS[0]).labels(0, n), minlength=blocks)
    expected = [len(range(b, n, blocks)) for b in range(blocks)]
    assert sizes.tolist() == expected


@pytest.mark.parametrize("blocks", [1, 3, 60])
def test_labels_are_the_same_in_any_partitions(blocks: int) -> None:
    n = 1000
    deal = Deal(n, blocks, KEYS[1])
    whole = deal.labels(0, n).tolist()
    for ends in ([0, 0, 1, 500, 999, n], [0, 333, n]):
        away = pickle.loads(pickle.dumps(deal))  # noqa: S301
        parts = [away.labels(*pair) for pair in itertools.pairwise(ends)]
        assert np.concatenate(parts).tolist() == whole
        for label in range(min(blocks, 4)):
            ids = [Part(away, label).within(*pair) for pair in itertools.pairwise(ends)]
            assert np.concatenate(ids).tolist() == [i for i in range(n) if whole[i] == label]


def test_a_deal_travels_without_its_labels() -> None:
    deal = Deal(10**5, 7, KEYS[0])
    deal.labels(0, 10**5)
    assert len(pickle.dumps(deal)) < 200


def test_a_deal_is_its_key_s_and_its_number_s() -> None:
    n = 500
    found = {tuple(Deal(n, blocks, key).labels(0, n) % 2) for blocks in (2, 4, 6) for key in KEYS}
    assert len(found) == 9


def chi_square(n: int, draws: int = 20_000) -> float:
    """Of all orders of n ids under random keys; its law is that of chi-square, n! - 1."""
    rng = np.random.default_rng(0)
    orders = Counter(tuple(Deal(n, n, rng.bytes(32)).labels(0, n)) for _ in range(draws))
    expected = draws / len(list(itertools.permutations(range(n))))
    missing = len(list(itertools.permutations(range(n)))) - len(orders)
    value = sum((c - expected) ** 2 / expected for c in orders.values()) + missing * expected
    return float(stats.chi2.sf(value, len(orders) + missing - 1))


def test_every_order_of_a_few_ids_is_as_likely() -> None:
    """A false alarm has probability 1e-6 for each."""
    assert min(map(chi_square, (2, 3, 4, 5))) > 1e-6


def test_too_few_rounds_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deals, "ROUNDS", 2)
    assert min(map(chi_square, (2, 3, 4, 5))) < 1e-6


def test_pairs_of_ids_meet_in_a_block_as_by_chance() -> None:
    """Sorted files: neighbours, and ids a power of two apart. Binomial tests at 1e-6 in all."""
    n, blocks, draws = 3000, 5, 400
    rng = np.random.default_rng(1)
    gaps = (1, 2, 32, 64, 256, 1024)
    met = np.zeros(len(gaps))
    for _ in range(draws):
        labels = Deal(n, blocks, rng.bytes(32)).labels(0, n)
        first = int(rng.integers(n - 1024))
        met += [labels[first] == labels[first + gap] for gap in gaps]
    rate = (n / blocks - 1) / (n - 1)
    assert min(stats.binomtest(int(m), draws, rate).pvalue for m in met) > 1e-6 / len(gaps)


def test_deals_follow_the_seed_of_public_choices() -> None:
    def deal(seed: Any) -> tuple[list[int], list[int]]:
        curator = Curator(np.ones((90, 1)), budget=Budget(1.0), random_state=seed)
        return curator.blocks(3).tolist(), curator._fresh(3).labels(0, 90).tolist()

    assert deal(1) == deal(1)
    assert deal(1) != deal(2)
    assert deal(None) != deal(None)
    blocks, fresh = deal(1)
    assert blocks != fresh
