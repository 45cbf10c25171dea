"""Short digests of many bytes, at the speed of memory: whether an array is still what it was.

Formal guarantee
----------------
Two arrays of one length that differ have equal digests with a chance of at most 2^-64 over a key
that was drawn after them, or without knowledge of them. `hashed` is NH (Black and others, UMAC,
Crypto 1999, theorem 2): of each block of words it gives two sums of products under keys that are
shifted by a word, and a block that differs has both sums equal with that chance. BLAKE2b digests
the sums of all blocks.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import functools
import hashlib

import numpy as np
from numpy.typing import NDArray

from privtail.compilation import compiled

BLOCK = 1024
"""Words of eight bytes that are summed with one set of keys."""
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)


def digested(array: NDArray[np.generic], key: bytes) -> bytes:
    """A digest of the bytes of an array, in the order of its rows, under a secret key."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(flat) - len(flat) % 8
    words = flat[:whole].view(np.uint64)
    words.flags.writeable = False  # one type for the compiler
    sums = np.zeros((-(-len(words) // BLOCK), 2), np.uint64)
    hashed(words, _keys(key), sums)
    digest = hashlib.blake2b(sums.tobytes(), key=key, digest_size=16)
    digest.update(flat[whole:].tobytes())
    return digest.digest()


@functools.lru_cache(maxsize=8)
def _keys(key: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(hashlib.shake_256(key).digest(8 * (BLOCK + 1)), np.uint64)


@compiled
def hashed(words, keys, sums):
    """Two sums of every block: of products of the halves of its words, each with a key added.

    words uint64; keys (BLOCK + 1,) uint64; sums (blocks, 2) uint64, changed in place.
    """
    for b in range(sums.shape[0]):
        part = words[b * BLOCK : (b + 1) * BLOCK]
        one, other = sums[b, 0], sums[b, 1]
        for i in range(len(part)):
            x, k, beside = part[i], keys[i], keys[i + 1]
            one += ((x + k) & _LOW) * (((x >> _HALF) + (k >> _HALF)) & _LOW)
            other += ((x + beside) & _LOW) * (((x >> _HALF) + (beside >> _HALF)) & _LOW)
        sums[b, 0], sums[b, 1] = one, other
