"""Coverage of the intervals of `privtail.summarize`: means, counts and shares of zeros.

    python -m benchmarks.summaries [RUNS] [LAW ...]

Every run draws a new column and adds new (simulated) noise. ``held`` is the part of the intervals
of 95 % for the mean that hold that of the law, ``told`` the part that is reliable.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privtail import summarize
from privtail.errors import AccuracyWarning

Draw = Callable[[np.random.Generator, int], Any]
LAWS: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, 0.0),
    "t(2.5)": (lambda rng, n: rng.standard_t(2.5, n), 0.0, 0.0),
    "lognormal(3, 2)": (lambda rng, n: rng.lognormal(3, 2, n), float(np.exp(5)), 0.0),
    "80 % zeros": (
        lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.exponential(size=n)), 0.2, 0.8,
    ),
    "0/1": (lambda rng, n: (rng.random(n) < 0.3).astype(float), 0.3, 0.7),
    "counts": (lambda rng, n: rng.poisson(4, n).astype(float), 4.0, float(np.exp(-4))),
    "times": (lambda rng, n: 1.7e9 + rng.uniform(0, 1e5, n), 1.7e9 + 5e4, 0.0),
    "constant": (lambda rng, n: np.full(n, 7.0), 7.0, 0.0),
}  # fmt: skip
ROWS, BUDGETS = (200, 2_000, 20_000), (0.2, 1.0, 5.0)


def main(runs: int, laws: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", AccuracyWarning)
    print(f"{'law':<17}{'n':>7}{'epsilon':>8}{'held':>7}{'told':>7}{'count':>7}{'zeros':>7}")
    for law in laws:
        draw, mean, zeros = LAWS[law]
        for n in ROWS:
            for epsilon in BUDGETS:
                found = np.zeros(4)
                for seed in range(runs):
                    column = draw(np.random.default_rng(seed), n)
                    seen = summarize(
                        {"a": column}, epsilon=epsilon, noise="simulated", random_state=seed
                    )["a"]
                    slack = 1e-6 * abs(mean)
                    found += [
                        seen["mean"].low - slack <= mean <= seen["mean"].high + slack,
                        seen["mean"].reliable,
                        seen["count"].low <= n <= seen["count"].high,
                        seen["zeros"].low <= zeros <= seen["zeros"].high,
                    ]
                row = "".join(f"{share:>7.2f}" for share in found / runs)
                print(f"{law:<17}{n:>7,}{epsilon:>8g}{row}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, sys.argv[2:] or list(LAWS))
