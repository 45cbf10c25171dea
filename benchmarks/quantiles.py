"""How often intervals of `private_quantile` hold the quantiles of a law, and how wide they are.

    PYTHONPATH=src python -m benchmarks.quantiles [RUNS]

Every run draws a new column and adds new noise; quartiles of one column share epsilon. ``held`` is
the share of 95 % intervals that hold the quartile of the law, an open end holding all beyond it;
``told`` that of the reliable ones; ``off`` the median distance of the median from that of the law.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privtail import private_quantile

Column = NDArray[np.float64]
LEVELS = [0.25, 0.5, 0.75]
LAWS: dict[str, Callable[[np.random.Generator, int], Column]] = {
    "gauss": lambda chance, n: chance.normal(size=n),
    "t(2.5)": lambda chance, n: chance.standard_t(2.5, n),
    "lognormal": lambda chance, n: chance.lognormal(3, 2, n),
    "constant": lambda _, n: np.full(n, 7.0),
    "zeros": lambda chance, n: np.where(chance.random(n) < 0.8, 0.0, chance.exponential(size=n)),
    "0 or 1": lambda chance, n: (chance.random(n) < 0.3) * 1.0,
    "counts": lambda chance, n: chance.poisson(4, n) * 1.0,
    "times": lambda chance, n: 1.7e9 + chance.uniform(0, 1e5, n),
}


def main(runs: int) -> None:
    """Print one line for each law, number of rows and epsilon."""
    warnings.simplefilter("ignore")
    print(f"{'law':10} {'n':>6} {'eps':>4} {'held':>6} {'told':>6} {'width':>10} {'off':>10}")
    for name, law in LAWS.items():
        chance = np.random.default_rng(0)
        true = np.quantile(law(chance, 400_000), LEVELS, method="inverted_cdf")
        slack = 1e-9 * np.abs(true)
        for n in (200, 2_000, 20_000):
            for epsilon in (0.2, 1.0, 5.0):
                found = [
                    private_quantile(
                        law(chance, n), LEVELS, epsilon=epsilon, noise="simulated", random_state=k
                    )
                    for k in range(runs)
                ]
                held = [(q.low <= true + slack) & (true - slack <= q.high) for q in found]
                width = np.median([q.high[1] - q.low[1] for q in found])
                off = np.median([abs(q.value[1] - true[1]) for q in found])
                told = np.mean([q.reliable for q in found])
                print(
                    f"{name:10} {n:6} {epsilon:4} {np.mean(held):6.3f} {told:6.2f} {width:10.3g} "
                    f"{off:10.3g}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
