"""Seconds of published algorithms, beside plain NumPy transcriptions of their boxes.

``make bench`` or ``python -m benchmarks.algorithms [part ...]``; parts are ``table``, ``trimmed``
and ``net``. Two threads, best of three processes for the first two, one for the net.

``table`` is table 1 of Xie et al. (n = 10,000, p = 50, lasso, HTDP-FW logistic; epsilon 1, delta
1/n). The paper does not say which batches it timed: here n/20 for DP-SPGD, which needs more steps,
and n/6 for the other two, with its T = 5 n^2/m^2. Steps of the last two are of `from_theory`. A run
is everything after the noise was calibrated; calibration, which a simulation does once, has a
column of its own. The transcriptions add noise of the same size, and are not private.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, ndtr

from benchmarks.protocol import PROCESSES, in_a_process, machine, pairs
from privtail.algorithms import (
    HeavyTailedFrankWolfe,
    NetSearch,
    StochasticProximalGradient,
    TruncatedLasso,
)
from privtail.calibration import calibrated
from privtail.domains import L1, L1Ball, L2Ball
from privtail.losses import AbsoluteLoss, LogisticLoss, SquaredLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.smooth.questions import trimmed_gradient
from privtail.trusted.smooth.trimmed import TrimmedMean

Array = np.ndarray[Any, np.dtype[np.float64]]
N, P = 10_000, 50
ALPHA = 0.01
BUDGET = Budget(1.0, 1 / N)
PRINTED = {
    "DP-SPGD": 31.2866,
    "DP-SPGD(K)": 20.1467,
    "DP-SPGD(H)": 28.8785,
    "HTP-LASSO": 202.944,
    "HTDP-FW": 1.5017,
}
SIMULATED, EXACT = 1.0, 3.0
"""At most so many seconds of a run."""
TRIMMED = 1.5
"""At most so many sorts."""
SEARCH = 60.0
"""At most so many seconds of 1e5 points on 1e5 records in three dimensions."""


def records() -> tuple[Array, Array]:
    """Columns of unit norm, ten effects, errors of Student's t with two degrees of freedom."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    X /= np.linalg.norm(X, axis=0)
    return X, X @ np.r_[np.ones(5), -np.ones(5), np.zeros(P - 10)] + rng.standard_t(2, N)


# --- transcriptions --------------------------------------------------------------------------


def clipped(g: Array) -> Array:
    """Sum of rows clipped to norm 1."""
    lengths = np.linalg.norm(g, axis=1, keepdims=True)
    return np.asarray((g / np.maximum(lengths, 1.0)).sum(axis=0))


def median_of_means(g: Array) -> Array:
    """Sum as the median of the means of clamped groups."""
    groups = np.array_split(np.clip(g, -1, 1), 21)
    return np.asarray(np.median([group.mean(axis=0) for group in groups], axis=0) * len(g))


def catoni(g: Array, beta: float = 1.5) -> Array:
    """Sum of entries smoothed by the printed formula (Holland 2019, equation 11)."""
    a, b = g, np.abs(g) / np.sqrt(beta) + 1e-12
    low, high = (np.sqrt(2) - a) / b, (np.sqrt(2) + a) / b
    f_low, f_high = ndtr(-low), ndtr(-high)
    e_low, e_high = np.exp(-(low**2) / 2), np.exp(-(high**2) / 2)
    tau = np.sqrt(2 * np.pi)
    smoothed = (
        a * (1 - b**2 / 2) - a**3 / 6
        + 2 * np.sqrt(2) / 3 * (f_low - f_high)
        - (a - a**3 / 6) * (f_low + f_high)
        + b / tau * (1 - a**2 / 2) * (e_high - e_low)
        + a * b**2 / 2 * (f_high + f_low + (high * e_high + low * e_low) / tau)
        + b**3 / 6 / tau * ((2 + low**2) * e_low - (2 + high**2) * e_high)
    )  # fmt: skip
    return np.asarray(smoothed.sum(axis=0))


def descent(mean: Callable[[Array], Array], batch: int, steps: int) -> Callable[[], Any]:
    """Algorithms 1, 2 and 4 of Xie et al."""
    X, y = records()
    rng = np.random.default_rng(1)

    def run() -> Array:
        w, total = np.zeros(P), np.zeros(P)
        for t in range(steps):
            chosen = rng.random(N) < batch / N
            x = X[chosen]
            g = mean(x * (x @ w - y[chosen])[:, None]) / batch + rng.normal(0, 3 / batch, P)
            step = 1 / np.sqrt(t + 1)
            w = w - step * g
            w = np.sign(w) * np.maximum(np.abs(w) - ALPHA * step, 0)
            total += w
        return total / steps

    return run


def frank_wolfe(link: Callable[[Array], Array], steps: int, parts: bool) -> Callable[[], Any]:
    """HTP-LASSO (truncated records, all of them) and HTDP-FW (smoothed gradients of parts)."""
    X, y = records()
    rng = np.random.default_rng(1)
    corners = np.vstack([np.eye(P), -np.eye(P)])

    def run() -> Array:
        w = np.zeros(P)
        for t, part in enumerate(np.array_split(rng.permutation(N), steps), 1):
            x, target = (X[part], y[part] > 0) if parts else (np.clip(X, -5, 5), np.clip(y, -5, 5))
            rows = x * (link(x @ w) - target)[:, None]
            g = (catoni(rows) if parts else rows.sum(axis=0)) / len(rows)
            v = corners[np.argmax(-corners @ g + rng.gumbel(0, 0.1, 2 * P))]
            w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * v
        return w

    return run


# --- the table -------------------------------------------------------------------------------


def cases() -> dict[str, tuple[Any, Any, Any, Callable[[], Any]]]:
    """Name -> algorithm, loss, domain, transcription."""
    lasso, ball = HeavyTailedFrankWolfe, L1Ball(radius=10.0)
    sgd = StochasticProximalGradient
    small, large = N // 20, N // 6
    spgd = sgd.clipped(N, batch=small, threshold=1.0, step_size=1.0)
    kamath = sgd.kamath(N, P, BUDGET, batch=large, step_size=1.0, width=2.0)
    holland = sgd.holland(N, BUDGET, batch=large, second_moment=1.0, step_size=1.0)
    truncated = TruncatedLasso.from_theory(N, BUDGET, radius=10.0)
    smoothed = lasso.from_theory(N, P, BUDGET, second_moment=1.0)
    penalty = L1(alpha=ALPHA)
    return {
        "DP-SPGD": (spgd, SquaredLoss(), penalty, descent(clipped, small, spgd.steps)),
        "DP-SPGD(K)": (
            kamath, SquaredLoss(), penalty, descent(median_of_means, large, kamath.steps)
        ),
        "DP-SPGD(H)": (holland, SquaredLoss(), penalty, descent(catoni, large, holland.steps)),
        "HTP-LASSO": (
            truncated, SquaredLoss(), ball, frank_wolfe(lambda m: m, truncated.steps, False)
        ),
        "HTDP-FW": (smoothed, LogisticLoss(), ball, frank_wolfe(expit, smoothed.steps, True)),
    }  # fmt: skip


def seconds(job: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def measured(name: str) -> dict[str, float]:
    """Least seconds of three runs after one to warm up, and of one calibration."""
    algorithm, loss, domain, plain = cases()[name]
    X, y = records()
    target = (y > 0).astype(int) if loss.targets == "binary" else y
    classes = [0, 1] if loss.targets == "binary" else None
    found: dict[str, float] = {"steps": algorithm.steps}

    def run(noise: Any) -> float:
        curator = Curator(X, target, budget=BUDGET, noise=noise, random_state=0, classes=classes)
        start = time.perf_counter()
        multiplier = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
        found.setdefault("calibrated", time.perf_counter() - start)
        return seconds(lambda: algorithm.run(curator, loss, domain, multiplier))

    for noise in ("simulated", "exact"):
        found[noise] = min([run(noise) for _ in range(3)][1:])
    found["plain"] = min(seconds(plain) for _ in range(2))
    return found


def table() -> None:
    """Table 1 of Xie et al."""
    columns = ("steps", "printed", "plain", "simulated", "exact", "calibrated")
    print(f"{'seconds':12}", *(f"{name:>11}" for name in columns), sep="")
    for name, printed in PRINTED.items():
        runs = [
            in_a_process("-m", "benchmarks.algorithms", "--measure", name) for _ in range(PROCESSES)
        ]
        best = {key: min(run[key] for run in runs) for key in runs[0]} | {"printed": printed}
        print(f"{name:12}", *(f"{best[key]:11.4g}" for key in columns), sep="", flush=True)
    print(f"{'at most':12}{'':33}{SIMULATED:11.4g}{EXACT:11.4g}")


# --- the trimmed mean ------------------------------------------------------------------------


def sorted_mean() -> dict[str, Any]:
    """One trimmed mean of a million lognormal numbers, and `numpy.sort` of the same."""
    x = np.exp(2 * np.random.default_rng(0).standard_normal(1_000_000))
    mechanism = TrimmedMean(multiplier=10.0, trim=100_000, low=0.0, high=1e4)
    curator = Curator(x[:, None], -np.ones(len(x)), budget=Budget(1e6, 1e-6))
    loss, zero, rounds = SquaredLoss(), np.zeros((1, 1)), 64
    curator.open((Round(events=(mechanism.event(curator.problem, 1),), times=rounds),))

    def released() -> Any:
        """The gradient of a squared loss at 0, where the target is -1, is the number itself."""
        return trimmed_gradient(curator.everyone(), loss, zero, mechanism)

    return pairs(released, lambda: np.sort(x))


def trimmed() -> None:
    """The trimmed mean against a sort."""
    runs = [in_a_process("-m", "benchmarks.algorithms", "--trimmed") for _ in range(PROCESSES)]
    best = min(runs, key=lambda run: float(run["ratio"]))
    print(
        f"trimmed mean, n = 1e6: {best['ours']:.4f} s, a sort {best['theirs']:.4f} s, "
        f"ratio {best['ratio']:.2f}, at most {TRIMMED}"
    )


# --- the net ---------------------------------------------------------------------------------


def searched() -> dict[str, float]:
    """1e5 points on 1e5 records in three dimensions."""
    n, rng = 100_000, np.random.default_rng(0)
    X = rng.standard_t(3, (n, 3))
    y = X @ [0.5, -0.2, 0.1] + rng.standard_t(3, n)

    def run(points: int, noise: Any) -> float:
        search = NetSearch(points=points, scale=0.05)
        curator = Curator(X, y, budget=Budget(1.0, 0.0), noise=noise, random_state=0)
        multiplier = calibrated(curator, lambda m: search.plan(m, curator.problem))
        return seconds(lambda: search.run(curator, AbsoluteLoss(), L2Ball(radius=1.0), multiplier))

    run(100, "exact")
    return {"seconds": run(100_000, "exact")}


def net() -> None:
    """The search of a net."""
    took = in_a_process("-m", "benchmarks.algorithms", "--net")["seconds"]
    print(f"net search, 1e5 points, n = 1e5, d = 3: {took:.1f} s, at most {SEARCH:g}", flush=True)


PARTS = {"table": table, "trimmed": trimmed, "net": net}


def main(parts: list[str]) -> None:
    """Print what was asked for, or everything."""
    print(machine("numba", "opendp"))
    for part in parts or PARTS:
        print()
        PARTS[part]()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--measure", name]:
            print(json.dumps(measured(name)))
        case ["--trimmed"]:
            print(json.dumps(sorted_mean()))
        case ["--net"]:
            print(json.dumps(searched()))
        case parts:
            main(parts)
