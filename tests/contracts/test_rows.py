"""Kernels over rows: the bits of the arithmetic that they document, of one row after the other."""

from __future__ import annotations

import ctypes
import math
import mmap
from typing import Any

import numpy as np
import pytest

from privtail.trusted.kernels import ball_dense, balls, margin_of_safety, margins_dense

ODD = [0.0, -0.0, 5e-324, -1e-310, 1e-170, 1e150, 1e308, -1e308, math.nan, math.inf, -math.inf]
SIZES = [(0, 3), (1, 1), (7, 1), (9, 5), (16, 8), (17, 8), (23, 1), (40, 9), (41, 20), (64, 31)]


def hostile(rng: np.random.Generator, shape: tuple[int, ...], share: float) -> Any:
    numbers = rng.standard_t(1.5, shape)
    odd = rng.random(shape) < share
    numbers[odd] = rng.choice(ODD, np.count_nonzero(odd))
    return numbers


def of_a_row(terms: list[float]) -> float:
    """Column j in lane j % 8, lanes folded by halves, the last columns from left to right."""
    lanes, wide, rest = [0.0] * 8, len(terms) - len(terms) % 8, 0.0
    for j, term in enumerate(terms[:wide]):
        lanes[j % 8] += term
    for term in terms[wide:]:
        rest += term
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [lanes[k] + lanes[k + half] for k in range(half)]
    return lanes[0] + rest


def margins(X: Any, scales: Any, offsets: Any, w: Any, b: Any) -> tuple[Any, Any, Any]:
    found = np.empty((len(X), w.shape[1])), np.empty(len(X)), np.empty(len(X), np.bool_)
    margins_dense(X, scales, offsets, w, b, *found)
    return found


def ball(X: Any, scales: Any, offsets: Any, found: Any, residuals: Any, labels: Any,
         intercept: bool, radius: float) -> Any:  # fmt: skip
    _, squares, valid = found
    sums = np.zeros((int(labels.max(initial=0)) + 1, residuals.shape[1], X.shape[1] + intercept))
    margin = margin_of_safety(sums[0].size, 30)
    ball_dense(
        X, scales, offsets, squares, valid, residuals, labels, intercept, radius, 30, margin, sums
    )
    return sums


def row_by_row(X: Any, scales: Any, offsets: Any, found: Any, residuals: Any, labels: Any,
               intercept: bool, radius: float) -> Any:  # fmt: skip
    """As `ball`, without vectors."""
    _, squares, valid = found
    sums = np.zeros((int(labels.max(initial=0)) + 1, residuals.shape[1], X.shape[1] + intercept))
    margin = margin_of_safety(sums[0].size, 30)
    for i in np.flatnonzero(valid):
        z = np.append(X[i] * scales + offsets, np.ones(int(intercept)))
        p, q = 0.0, squares[i] + intercept
        for r in residuals[i]:
            p += r * r
        if 1e-140 <= q <= 1e140 and 1e-140 <= p <= 1e140:
            norm = math.sqrt(q * p)
            factor = (1 - margin) / norm if norm > radius * (1 - margin) else 1 / radius
            out = z[:, None] * (residuals[i] * (factor * 2.0**30))
        else:
            out = np.empty((len(z), residuals.shape[1]))
            clip = balls._clip_row
            if not clip(z, residuals[i], X.shape[1], intercept, radius, 30, margin, out):
                continue
        sums[labels[i]] += np.rint(out).T
    return sums


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize(("rows", "d"), SIZES)
def test_rows_side_by_side_have_the_bits_of_one_after_the_other(
    rows: int, d: int, outputs: int
) -> None:
    rng = np.random.default_rng([rows, d, outputs])
    for share in (0.0, 0.02, 0.2):
        for intercept, blocks in ((False, 1), (True, 1), (True, 3)):
            X, residuals = hostile(rng, (rows, d), share), hostile(rng, (rows, outputs), share)
            scales, offsets = rng.lognormal(size=d), rng.standard_normal(d)
            w, b = rng.standard_normal((d, outputs)), rng.standard_normal(outputs)
            labels = rng.integers(0, blocks, rows)
            with np.errstate(all="ignore"):
                found = margins(X, scales, offsets, w, b)
                u = w.T * scales
                shift = b.copy()
                for j in range(d):
                    shift += w[j] * offsets[j]
                for i, x in enumerate(X):
                    z = x * scales + offsets
                    expected = [of_a_row(list(x * u[k])) + shift[k] for k in range(outputs)]
                    np.testing.assert_array_equal(found[0][i], expected)
                    np.testing.assert_array_equal(found[1][i], of_a_row(list(z * z)))
                    assert found[2][i] == np.isfinite(x).all()
                for radius in (1.0, 1e-100):
                    rest = (residuals, labels, intercept, radius)
                    sums = ball(X, scales, offsets, found, *rest)
                    expected_sums = row_by_row(X, scales, offsets, found, *rest)
                    np.testing.assert_array_equal(sums, expected_sums)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 7, 8, 9, 20])
def test_nothing_is_read_behind_the_rows(d: int) -> None:
    """The page behind the last row belongs to nobody: who reads it ends the process."""
    memory = mmap.mmap(-1, 3 * mmap.PAGESIZE)
    page = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + 2 * mmap.PAGESIZE
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(page, mmap.PAGESIZE, 0) == 0
    try:
        for rows in (1, 7, 8, 9, 16, 33):
            X = np.frombuffer(memory, np.float64, rows * d, 2 * mmap.PAGESIZE - 8 * rows * d)
            X = X.reshape(rows, d)
            ones, zeros = np.ones(d), np.zeros(d)
            found = margins(X, ones, zeros, ones[:, None], np.zeros(1))
            residuals, labels = np.ones((rows, 1)), np.zeros(rows, np.int64)
            assert ball(X, ones, zeros, found, residuals, labels, True, 1.0)[0, 0, -1] > 0
    finally:
        assert protect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
