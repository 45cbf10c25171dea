"""Coverage and errors of the means of `privtail.summarize`, and of counts and shares of zeros.

    python -m benchmarks.summaries [RUNS] [LAW ...]

Every run draws a new column and adds new (simulated) noise. ``held`` is the part of the intervals
of 95 % for the mean that hold that of the law, ``told`` the part that is reliable, ``std`` the part
of those for the deviation that hold that of the law, and ``alone`` how many times as far off the
means of the records are, in the median, as those of `privtail.private_mean` with the part of the
budget that the summary has for means.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privtail import private_mean, summarize
from privtail.describe.summary import QUARTILE_FRACTION
from privtail.errors import AccuracyWarning

Draw = Callable[[np.random.Generator, int], Any]
LAWS: dict[str, tuple[Draw, float, float, float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0, 1.0, 0.0),
    "t(2.5)": (lambda rng, n: rng.standard_t(2.5, n), 0.0, math.sqrt(5), 0.0),
    "lognormal(0, 1)": (
        lambda rng, n: rng.lognormal(0, 1, n), math.exp(0.5), math.sqrt(math.exp(2) - math.e), 0.0,
    ),
    "lognormal(3, 2)": (
        lambda rng, n: rng.lognormal(3, 2, n), math.exp(5), math.exp(5) * math.sqrt(math.expm1(4)),
        0.0,
    ),
    "pareto(1.5)": (lambda rng, n: rng.pareto(1.5, n), 2.0, math.inf, 0.0),
    "80 % zeros": (
        lambda rng, n: np.where(rng.random(n) < 0.8, 0.0, rng.exponential(size=n)), 0.2, 0.6, 0.8,
    ),
    "0/1": (lambda rng, n: (rng.random(n) < 0.3).astype(float), 0.3, math.sqrt(0.21), 0.7),
    "counts": (lambda rng, n: rng.poisson(4, n).astype(float), 4.0, 2.0, math.exp(-4)),
    "times": (
        lambda rng, n: 1.7e9 + rng.uniform(0, 1e5, n), 1.7e9 + 5e4, 1e5 / math.sqrt(12), 0.0,
    ),
    "constant": (lambda rng, n: np.full(n, 7.0), 7.0, 0.0, 0.0),
}  # fmt: skip
ROWS, BUDGETS = (200, 2_000, 20_000), (0.2, 1.0, 5.0)


def main(runs: int, laws: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", AccuracyWarning)
    heads = "".join(f"{head:>7}" for head in ("held", "told", "std", "count", "zeros", "alone"))
    print(f"{'law':<17}{'n':>7}{'epsilon':>8}{heads}")
    for law in laws:
        for n in ROWS:
            for epsilon in BUDGETS:
                found = np.array([one(law, n, epsilon, seed) for seed in range(runs)])
                off = np.median(found[:, 5:], axis=0)
                with np.errstate(all="ignore"):
                    shown = [*found[:, :5].mean(axis=0), off[0] / off[1]]
                row = "".join(f"{x:>7.2f}" for x in shown)
                print(f"{law:<17}{n:>7,}{epsilon:>8g}{row}", flush=True)


def one(law: str, n: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """What one summary holds, and how far its mean, and a mean alone, are off."""
    draw, mean, deviation, zeros = LAWS[law]
    column, slack = draw(np.random.default_rng(seed), n), 1e-6 * abs(mean)
    chance: Any = {"noise": "simulated", "random_state": seed}
    seen = summarize({"a": column}, epsilon=epsilon, **chance)["a"]
    part = math.sqrt(1 - QUARTILE_FRACTION)  # the square root of a part of the squared parameter mu
    alone = private_mean(column, epsilon=part * epsilon, **chance)
    truth = float(column.mean())
    return (
        seen["mean"].low - slack <= mean <= seen["mean"].high + slack,
        seen["mean"].reliable,
        seen["std"].low <= deviation <= seen["std"].high,
        seen["count"].low <= n <= seen["count"].high,
        seen["zeros"].low <= zeros <= seen["zeros"].high,
        abs(seen["mean"].value - truth),
        abs(alone.value - truth),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, sys.argv[2:] or list(LAWS))
