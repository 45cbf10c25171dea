"""Solutions in one unknown, and what parameters of domains must be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privtail.errors import IncompatibleParts, InvalidInput

if TYPE_CHECKING:
    from privtail.domains.protocol import Array


MEMBERSHIP_TOLERANCE = 1e-9
LARGEST_TABLE = 2**27  # entries of corners: 1 GB


def shrink(w: Array, a: Array, b: Array) -> Array:
    """Return argmin over v of ½ (v − w)² + a |v| + ½ b v², entry by entry."""
    v: Array = np.sign(w) * np.maximum(np.abs(w) - a, 0.0) / (1 + b)
    return v


def penalty(w: Array, a: Array, b: Array) -> float:
    """Return Σ a |w| + ½ Σ b w²."""
    with np.errstate(over="ignore"):
        return float(np.sum(a * np.abs(w)) + 0.5 * np.sum(b * w * w))


def fill_to(levels: Array, c: Array, b: Array, radius: float) -> Array:
    """Return v = c (levels − λ)⁺ / (1 + b) with the λ for which Σ c v = radius.

    In depths below the highest level, so that nothing cancels however high it is. An axis whose
    c² underflows stays 0: it would count for nothing in the sum.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shares = np.broadcast_to(c**2 / (1 + b), levels.shape)
        if not shares.any():
            return np.zeros_like(levels)
        levels = np.where(shares > 0, levels, -np.inf)
        depth = np.max(levels) - levels
        order = np.argsort(depth, axis=None)
        sunk = depth.reshape(-1)[order]
        share = shares.reshape(-1)[order]
        surface = (radius + np.cumsum(share * sunk)) / np.cumsum(share)
        wet = np.logical_and.accumulate((sunk < surface) & np.isfinite(surface))
        last = max(int(np.count_nonzero(wet)), 1) - 1
        return np.asarray(c * np.maximum(surface[last] - depth, 0.0) / (1 + b))


def multiplier_of(z: Array, curvature: Array, radius: float) -> Array:
    """Return λ · curvature with λ ≥ 0 least such that ‖z / (1 + λ · curvature)‖₂ ≤ radius.

    Newton's method on 1/‖·‖, which is concave in λ: from the left it never oversteps.
    """
    norm = l2_norm(z)
    if not norm > radius:
        return np.zeros(())
    top = float(np.max(np.abs(z)))
    z = z / top
    radius = max(radius / top, 1e-290)
    curvature = np.clip(np.broadcast_to(curvature, z.shape), 1e-290, 1e290)
    lam, most = ((l2_norm(z) / radius - 1) / float(f(curvature)) for f in (np.max, np.min))
    for _ in range(200):
        if not lam < most:
            break
        scale = 1 / (1 + lam * curvature)
        norm = l2_norm(z * scale)
        decay = float(np.sum(curvature * scale * (z * scale / norm) ** 2))
        step = (norm / radius - 1) / decay
        if not step > 4e-16 * lam:
            break
        lam = min(lam + step, most)
    return lam * curvature


def l2_norm(x: Array) -> float:
    """Return ‖x‖₂, without overflow on the way."""
    top = float(np.max(np.abs(x), initial=0.0))
    if top == 0 or not math.isfinite(top):
        return top
    return top * float(np.sqrt(np.sum(np.square(x / top))))


def one_length(lengths: Array) -> float:
    """The length that all corners have."""
    if np.ptp(lengths) > 0:
        raise IncompatibleParts(
            "The corners of this domain have different lengths, because its features were scaled. "
            "Multiply the features by public numbers beforehand, and take a domain without scales."
        )
    return float(lengths.reshape(-1)[0])


def axes_of(lengths: Array) -> Array:
    """Corners of these lengths on the axes."""
    require_table(float(lengths.size) ** 2)
    return np.diag(lengths.reshape(-1)).reshape(lengths.size, *lengths.shape)


def inside(excess: float, size: float) -> float:
    """The value of a set: 0 up to rounding, else infinity."""
    return 0.0 if excess <= MEMBERSHIP_TOLERANCE * size else math.inf


def require_alpha(alpha: float) -> None:
    """Refuse what is no weight of a regularizer."""
    if not 0 <= alpha < math.inf:
        raise InvalidInput(f"alpha must be at least 0 and finite, got {alpha!r}.")


def require_radius(radius: float) -> None:
    """Refuse what is no radius of a set."""
    if not 0 < radius < math.inf:
        raise InvalidInput(f"radius must be positive and finite, got {radius!r}.")


def require_table(entries: float) -> None:
    """Refuse to list more corners than memory may hold."""
    if entries > LARGEST_TABLE:
        raise InvalidInput("There are too many corners to list. Use minimize_linear.")
