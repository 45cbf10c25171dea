"""What gradients on disjoint parts of the rows cost in accuracy, beside gradients on all rows.

    python -m benchmarks.parts [--rows 1000000] [--columns 10] [--seeds 10] [--epsilon 1.0]

Made rows, simulated noise, one budget. Least squares by clipped gradients, three ways: ``STEPS``
gradients on all rows; as many, each on a part of its own; and these followed by ``LAST`` on all
rows. Errors are distances to the true slopes, and ratios are of squared distances, pair by pair on
the same rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privtail.calibration import calibrated
from privtail.losses import SquaredLoss
from privtail.robust_means import ClippedMean
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.sampling import DisjointParts, Everyone, Sampling

STEPS, LAST = 30, 6
Doubles = NDArray[np.float64]
Rounds = tuple[tuple[Sampling, int], ...]
WAYS: dict[str, Rounds] = {
    f"{STEPS} on all rows": ((Everyone(), STEPS),),
    f"{STEPS} on parts": ((DisjointParts(STEPS), STEPS),),
    f"{STEPS} on parts, {LAST} on all": ((DisjointParts(STEPS), STEPS), (Everyone(), LAST)),
}


def slopes(X: Doubles, y: Doubles, ways: Rounds, epsilon: float, seed: int) -> Doubles:
    """Released slopes, (d,)."""
    curator = Curator(
        X, y, budget=Budget(epsilon, 0.1 / len(y)), noise="simulated", random_state=seed
    )
    mean = ClippedMean(4.0 * X.shape[1] ** 0.5)

    def plan(multiplier: float) -> Plan:
        noise = GaussianNoise(multiplier)
        return tuple(
            Round(
                sampling=sampling,
                events=(noise.event(curator.problem.sampled(sampling).gradient(mean)),),
                times=times,
            )
            for sampling, times in ways
        )

    noise, w = GaussianNoise(calibrated(curator, plan)), np.zeros((X.shape[1], 1))
    for sampling, times in ways:
        for batch in curator.rounds(sampling, times):
            w -= 0.6 * batch.gradient(SquaredLoss(), w, mean).release(noise).reshape(w.shape)
    return w[:, 0]


def errors(n: int, d: int, seeds: int, epsilon: float) -> Iterator[list[float]]:
    """Squared distances to the true slopes of every way, seed by seed."""
    truth = np.linspace(-1.0, 1.0, d)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.standard_t(6, (n, d))
        X *= np.sqrt(2 / 3)
        y = X @ truth + rng.standard_t(3, n)
        yield [
            float(((slopes(X, y, ways, epsilon, seed) - truth) ** 2).sum())
            for ways in WAYS.values()
        ]


def main() -> None:
    """Print a line for every way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    found = np.array(list(errors(options.rows, options.columns, options.seeds, options.epsilon)))
    shape = f"{options.rows:,} rows x {options.columns}"
    print(f"{shape}, epsilon {options.epsilon:g}, {len(found)} seeds")
    means = found.mean(axis=0)
    for (name, ways), squared, column in zip(WAYS.items(), means, found.T, strict=True):
        passes = sum(times / getattr(sampling, "parts", 1) for sampling, times in ways)
        doubt = np.std(column - found[:, 0] * squared / means[0]) / len(found) ** 0.5 / means[0]
        print(
            f"{name:24} {passes:5.0f} passes   error {squared**0.5:.3g}   "
            f"x {(squared / means[0]) ** 0.5:.4f} (+- {doubt / 2:.4f})"
        )


if __name__ == "__main__":
    main()
