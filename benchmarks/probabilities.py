"""Random labels in units that nobody knows: what probabilities of the default are worth.

    python -m benchmarks.probabilities [--problems 120]

Drawn are rows (500 to 5,000), features (3 to 100; normal, lognormal, or t with 3 degrees of
freedom), how many of them matter, how much, units (a hundredth to a hundred), and epsilon (.03 to
.5).
"log loss" is that of the test rows over the log loss of the training frequencies, "error" the part
of wrong labels over that of the rarer label.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from privtail.errors import NoiseWarning
from privtail.linear_model import DPLogisticRegression

Doubles = NDArray[np.float64]

TESTED = 4_000
WORSE = 1.05


def problem(number: int) -> tuple[float, Doubles, Doubles]:
    """Its epsilon, and its records, the last `TESTED` of which are for the test."""
    rng = np.random.default_rng(number)
    rows, d = int(10 ** rng.uniform(2.7, 3.7)) + TESTED, int(10 ** rng.uniform(0.5, 2))
    laws: dict[str, Callable[[], Doubles]] = {
        "normal": lambda: rng.normal(size=(rows, d)),
        "lognormal": lambda: rng.lognormal(0, rng.uniform(0.3, 1.2), (rows, d)),
        "t": lambda: rng.standard_t(3, (rows, d)),
    }
    X = laws[str(rng.choice(list(laws)))]()
    score = (X - np.median(X, axis=0)) @ (
        rng.normal(size=d) * (rng.random(d) < rng.uniform(0.1, 1))
    )
    score *= rng.uniform(0.3, 3) / (np.quantile(np.abs(score), 0.7) + 1e-9)
    y = rng.random(rows) < 1 / (1 + np.exp(-score.clip(-50, 50)))
    X = X * 10 ** rng.uniform(-2, 2, d)
    return float(rng.choice([0.03, 0.1, 0.2, 0.3, 0.5])), X, y.astype(np.float64)


def fitted(number: int) -> tuple[float, float]:
    """Log loss and error, over those of the constant."""
    epsilon, X, y = problem(number)
    n = len(y) - TESTED
    model = DPLogisticRegression(
        epsilon=epsilon, delta=n**-1.1, classes=[0.0, 1.0], noise="simulated", random_state=number
    ).fit(X[:n], y[:n])
    p, often, tested = model.predict_proba(X[n:])[:, 1], y[:n].mean(), y[n:]
    wrong = np.mean((p > 0.5) != tested) / min(often, 1 - often)
    lost = log_loss(tested, p) / log_loss(tested, np.full(TESTED, often))
    return float(lost), float(wrong)


def main() -> None:
    """Print what came of all problems."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=120)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", NoiseWarning)
    losses, errors = np.array([fitted(number) for number in range(asked.problems)]).T
    mean, wrong = (np.exp(np.log(x).mean()) for x in (losses, errors))
    print(f"log loss over the constant's: geometric mean {mean:.3f}, largest {losses.max():.3f}")
    print(f"more than {WORSE - 1:.0%} above it: {np.mean(losses > WORSE):.1%} of {len(losses)}")
    print(f"error over the constant's: geometric mean {wrong:.3f}")


if __name__ == "__main__":
    main()
