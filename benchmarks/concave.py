"""Targets that a straight line fits badly, from heavy-tailed features: error over the constant's.

    python -m benchmarks.concave [--seeds 7]

Features are exp(sigma z), z standard normal; the target is the sum of z, brought to deviation 1,
with noise of deviation .5, as it is or rounded and cut to 1, 2 .. 5. "line" is the default on the
features, "least squares" the same without privacy, "on logarithms" the default on z. Root mean
squared errors on 10,000 fresh rows over that of their mean; medians over the seeds, replace-one,
delta = 1e-6, simulated noise.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from privtail.linear_model import DPLinearRegression

Doubles = NDArray[np.float64]

TARGETS: dict[str, Callable[[Doubles], Doubles]] = {
    "logarithm": lambda y: y,
    "1 to 5": lambda y: np.clip(np.round(3 + y), 1, 5),
}
SIZES = ((1_000, 3, 1.0), (10_000, 3, 0.3), (10_000, 10, 1.0), (10_000, 10, 3.0))
TEST = 10_000


def errors(target: str, sigma: float, n: int, d: int, epsilon: float, seed: int) -> list[float]:
    """Of the three fits, over the constant's."""
    rng = np.random.default_rng([seed, n, d])
    z = rng.normal(size=(n + TEST, d))
    y = TARGETS[target](z.sum(axis=1) / np.sqrt(d) + 0.5 * rng.normal(size=n + TEST))
    heavy = np.exp(sigma * z)
    private = DPLinearRegression(epsilon=epsilon, noise="simulated", random_state=seed)
    fits = ((private, heavy), (LinearRegression(), heavy), (private, z))
    return [
        float(np.sqrt(np.mean((model.fit(x[:n], y[:n]).predict(x[n:]) - y[n:]) ** 2)))
        / float(y[n:].std())
        for model, x in fits
    ]


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=7)
    seeds = parser.parse_args().seeds
    print(f"{'target':10} sigma {'n':>6} {'d':>3} {'eps':>4} | line  least squares  on logarithms")
    for target in TARGETS:
        for sigma in (1.0, 1.5):
            for n, d, epsilon in SIZES:
                found = [errors(target, sigma, n, d, epsilon, seed) for seed in range(seeds)]
                line, plain, logs = np.median(found, axis=0)
                print(
                    f"{target:10} {sigma:5} {n:6} {d:3} {epsilon:4} | "
                    f"{line:.2f}  {plain:13.2f}  {logs:13.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
