"""Thresholds of private means that theorems give, from what is assumed of moments."""

from __future__ import annotations

import math

from privtail.errors import InvalidInput


def truncation_threshold(
    n: int, epsilon: float, delta: float, *, moment: float, order: float = 1.0,
    failure_probability: float = 0.05,
) -> float:  # fmt: skip
    """B of Tao et al. 2022, Algorithm 1.

    For data whose (1 + order)-th raw moment is at most ``moment``: B = (u n eps / (log(1/xi)
    sqrt(log(1.25/delta))))^(1/(1 + v)).
    """
    denominator = math.log(1 / failure_probability) * math.sqrt(math.log(1.25 / delta))
    return float((moment * n * epsilon / denominator) ** (1 / (1 + order)))


def median_of_means_threshold(
    n: int, d: int, epsilon: float, delta: float, *, moment: float, order: float = 1.0,
    failure_probability: float = 0.05,
) -> tuple[float, int]:  # fmt: skip
    """Threshold tau and groups m of Tao et al. 2022, Algorithm 3.

    For (1 + order)-th moments of at most ``moment``: m = 4 log(2 d/xi), and the tau that balances
    the two terms of theorem 3 that depend on it: u/tau^v = tau (sqrt(d) + sqrt(log(1/xi)))
    log(d/xi) sqrt(log(1/delta))/(eps n).
    """
    xi = failure_probability
    noise = (math.sqrt(d) + math.sqrt(math.log(1 / xi))) * math.log(d / xi)
    noise *= math.sqrt(math.log(1 / delta))
    threshold = (moment * n * epsilon / noise) ** (1 / (1 + order))
    return float(threshold), min(n, max(1, round(4 * math.log(2 * d / xi))))


def projection_threshold(n: int, d: int, rho: float, *, order: float = 2.0) -> float:
    """Radius 4 sqrt(d)/alpha^(1/(k-1)) of Kamath, Singhal, Ullman 2020, k = ``order``.

    For k-th central moments of at most 1, with the error alpha that n records allow: n =
    d/(sqrt(rho) alpha^(k/(k-1))), the term of privacy. For ``"clipped"``.
    """
    if not order > 1:
        raise InvalidInput(f"order must be above 1, got {order!r}.")
    return float(4 * math.sqrt(d) * max(1.0, n * math.sqrt(rho) / d) ** (1 / order))
