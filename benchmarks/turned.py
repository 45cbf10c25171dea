"""Features that go together: what a gradient of turned rows gains, and what it costs.

    python -m benchmarks.turned [--seeds 24] [--epsilon 0.1 0.5] [--problems NAME]

The default on problems of the table (``benchmarks/comparison/problems.py``) whose name holds NAME,
in repetitions that the table does not have, with rows as they are (`Turn` switched off) and turned:
mean errors, the mean of the logarithm of their ratio with its standard error, median seconds of a
fit. Noise is simulated; one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from unittest.mock import patch

os.environ.setdefault("PRIVTAIL_THREADS", "1")

import numpy as np

from benchmarks.comparison.methods import DEFAULT, METHODS
from benchmarks.comparison.problems import Problem, here, problems
from privtail.algorithms import turn

FIRST = 100
"""The first of the repetitions."""

WORTH = {"as they are": 0.0, "turned": turn.WORTH}


def measured(problem: Problem, epsilon: float, seeds: int) -> str:
    """A line of the table."""
    (method,) = (m for m in METHODS if m.name == DEFAULT)
    errors, seconds = np.empty((2, len(WORTH), seeds))
    for seed in range(seeds):
        sample = problem.draw(FIRST + seed)
        for k, worth in enumerate(WORTH.values()):
            with patch.object(turn, "WORTH", worth):
                start = time.perf_counter()
                fitted = method.fit(problem, sample, epsilon, FIRST + seed)
            seconds[k, seed] = time.perf_counter() - start
            errors[k, seed] = problem.scores(sample, fitted.predicted, None)["error"]
    gains = np.log(errors[1] / errors[0])
    numbers = "".join(f"{error:12.4g}" for error in errors.mean(axis=1))
    error = gains.std() / np.sqrt(seeds)
    times = "".join(f"{time:9.2f}" for time in np.median(seconds, axis=1))
    return f"{problem.name:40}{epsilon:5g}{numbers}{gains.mean():+9.2%} +-{error:.2%}{times}"


def main() -> None:
    """Print a line for every problem and budget."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--problems", default="correlated", metavar="NAME")
    asked = parser.parse_args()
    print(f"{'problem':40}{'eps':>5}" + "".join(f"{name:>12}" for name in WORTH))
    for problem in problems():
        if asked.problems in problem.name and here(problem):
            for epsilon in asked.epsilon:
                print(measured(problem, epsilon, asked.seeds), flush=True)


if __name__ == "__main__":
    main()
