"""What gradients on disjoint parts of the rows cost in accuracy, beside gradients on all rows.

    python -m benchmarks.parts [--rows 1000000] [--columns 10] [--seeds 10] [--epsilon 1.0]

Made rows of three laws, simulated noise, one budget. Least squares by clipped gradients, three
ways: ``STEPS`` gradients on all rows; as many, each on a part of its own; and these followed by
``LAST`` on all rows. Errors are distances to the true slopes, ratios are of squared distances, pair
by pair on the same rows, and seconds are processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

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
Draw = Callable[[np.random.Generator, tuple[int, ...]], Doubles]


def gaussian(rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
    """Of variance 1."""
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
    """Of variance 1, with five finite moments (Student's t)."""
    found = rng.standard_t(6, shape)
    found *= np.sqrt(2 / 3)
    return found


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Doubles:
    """Of mean 0 and variance 1: logarithms of half a standard deviation."""
    found = rng.lognormal(0.0, 0.5, shape)
    found -= np.exp(1 / 8)
    found /= np.sqrt(np.expm1(1 / 4) * np.exp(1 / 4))
    return found


LAWS: dict[str, tuple[Draw, Draw]] = {
    "gaussian": (gaussian, gaussian),
    "heavy tails": (heavy, lambda rng, shape: rng.standard_t(3, shape)),
    "skewed": (skewed, lambda rng, shape: 2 * skewed(rng, shape)),
}
"""Of features, and of what is beside the slopes in a target."""


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


def errors(
    law: tuple[Draw, Draw], n: int, d: int, seeds: int, epsilon: float
) -> Iterator[list[tuple[float, float]]]:
    """Squared distances to the true slopes of every way, and processor time, seed by seed."""
    truth = np.linspace(-1.0, 1.0, d)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = law[0](rng, (n, d))
        y = X @ truth + law[1](rng, (n,))
        found = []
        for ways in WAYS.values():
            start = time.process_time()
            off = slopes(X, y, ways, epsilon, seed) - truth
            found.append((float((off**2).sum()), time.process_time() - start))
        yield found


def main() -> None:
    """Print a line for every way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    shape = f"{options.rows:,} rows x {options.columns}"
    print(f"{shape}, epsilon {options.epsilon:g}, {options.seeds} seeds")
    for name, law in LAWS.items():
        given = options.rows, options.columns, options.seeds, options.epsilon
        show(name, np.array(list(errors(law, *given))))


def show(law: str, measured: Doubles) -> None:
    """Lines of one law, of errors and times (seeds, ways, 2)."""
    print(law)
    found, seconds = measured[..., 0], measured[..., 1].mean(axis=0)
    means = found.mean(axis=0)
    for (name, ways), squared, column, took in zip(
        WAYS.items(), means, found.T, seconds, strict=True
    ):
        passes = sum(times / getattr(sampling, "parts", 1) for sampling, times in ways)
        doubt = np.std(column - found[:, 0] * squared / means[0]) / len(found) ** 0.5 / means[0]
        print(
            f"{name:24} {passes:5.0f} passes   error {squared**0.5:.3g}   "
            f"x {(squared / means[0]) ** 0.5:.4f} (+- {doubt / 2:.4f})   {took:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
