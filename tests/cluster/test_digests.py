"""Whether partitions changed: a digest under a key, and what makes it one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from privtail.trusted.kernels import digests
from privtail.trusted.kernels.digests import BLOCK, digested

KEY = bytes(range(32))


def naive(words: list[int], key: bytes) -> list[int]:
    """NH as it is printed: sums modulo 2^64 of products of halves, each with a key modulo 2^32."""
    told = hashlib.shake_256(key).digest(8 * (BLOCK + 1))
    keys = [int.from_bytes(told[i : i + 8], "little") for i in range(0, len(told), 8)]
    half, sums = 2**32, []
    for first in range(0, len(words), BLOCK):
        for shift in (0, 1):
            total = 0
            for i, x in enumerate(words[first : first + BLOCK]):
                k = keys[i + shift]
                total += ((x + k) % half) * ((x // half + k // half) % half)
            sums.append(total % 2**64)
    return sums


@pytest.mark.parametrize("count", [0, 1, 5, BLOCK, 2 * BLOCK + 3])
def test_the_digest_is_the_published_one(count: int) -> None:
    words = np.random.default_rng(count).integers(0, 2**64, count, dtype=np.uint64)
    sums = np.array(naive([int(word) for word in words], KEY), dtype="<u8")
    expected = hashlib.blake2b(sums.tobytes(), key=KEY, digest_size=16).digest()
    assert digested(words, KEY) == expected
    assert digested(words, bytes(32)) != expected or count == 0


def unlike(digest: Callable[[Any, bytes], bytes], array: Any, place: int, bit: int) -> None:
    """Another digest for one bit that flips, the same for the same cells in another layout."""
    before = digest(array, KEY)
    after = array.copy()
    after.view(np.uint8).reshape(-1)[place % after.nbytes] ^= 1 << bit
    assert digest(after, KEY) != before
    assert digest(np.asfortranarray(array), KEY) == before
    assert digest(np.repeat(array, 2, axis=0)[::2], KEY) == before


@settings(max_examples=100)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int8, np.bool_, np.int64]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=40),
    ),
    st.integers(0, 2**30),
    st.integers(0, 7),
)
def test_a_bit_that_flips_is_found(array: Any, place: int, bit: int) -> None:
    unlike(digested, array, place, bit)


def test_cells_that_change_places_are_found() -> None:
    cells = np.random.default_rng(0).standard_normal(3 * BLOCK)
    for one, other in ((0, 1), (5, BLOCK + 5), (7, 3 * BLOCK - 1)):
        swapped = cells.copy()
        swapped[[one, other]] = cells[[other, one]]
        assert digested(swapped, KEY) != digested(cells, KEY)
    turned = cells.view(np.uint32).reshape(-1, 2)[:, ::-1].copy().view(np.float64).ravel()
    assert digested(turned, KEY) != digested(cells, KEY)


def test_a_digest_without_a_key_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of bare halves are the same where cells change places, or their halves do."""
    monkeypatch.setattr(digests, "_keys", lambda _: np.zeros(BLOCK + 1, np.uint64))
    with pytest.raises(AssertionError):
        test_cells_that_change_places_are_found()


def test_a_digest_of_half_of_each_cell_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = digests.hashed
    monkeypatch.setattr(
        digests, "hashed", lambda words, *rest: honest(words >> np.uint64(32), *rest)
    )
    with pytest.raises(AssertionError):
        unlike(digested, np.ones((3, 3)), 0, 0)
