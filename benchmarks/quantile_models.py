"""Which part of new targets lies below the predictions of private quantile models.

    PYTHONPATH=src python -m benchmarks.quantile_models [RUNS]

Targets are x @ [1, -2, .5] plus noise of a law, of standard normal features. ``model`` is the root
mean square of coverage less quantile of `DPQuantileRegressor`, ``bias`` its mean, both on 50,000
new rows; ``column`` that of `private_quantile` of the noise alone, which knows the slopes and
spends all of epsilon on one number; and ``open`` that of a quantile of so many numbers without
privacy. ``loss`` is the mean pinball loss over that of the true slopes and quantile, less 1.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privtail import private_quantile
from privtail.linear_model import DPQuantileRegressor

Column = NDArray[np.float64]
QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
LAWS: dict[str, Callable[[np.random.Generator, int], Column]] = {
    "gauss": lambda chance, n: chance.normal(size=n),
    "t(2.5)": lambda chance, n: chance.standard_t(2.5, n),
    "lognormal": lambda chance, n: chance.lognormal(0, 1, n),
}
SLOPES = np.array([1.0, -2.0, 0.5])
NEW = 50_000


def main(runs: int) -> None:
    """Print one line for each law, quantile, number of rows and epsilon."""
    warnings.simplefilter("ignore")
    names = f"{'model':>7} {'bias':>7} {'column':>7} {'open':>7} {'loss':>7}"
    print(f"{'law':10} {'q':>4} {'n':>6} {'eps':>4} {names}")
    for name, law in LAWS.items():
        for q in QUANTILES:
            for n in (1_000, 4_000, 20_000):
                for epsilon in (0.5, 1.0, 5.0):
                    found = np.array([_one(law, q, n, epsilon, seed) for seed in range(runs)])
                    model, column, loss = found.T
                    print(
                        f"{name:10} {q:4} {n:6} {epsilon:4} {_size(model):7.4f} "
                        f"{np.mean(model):7.4f} {_size(column):7.4f} "
                        f"{np.sqrt(q * (1 - q) / n):7.4f} {np.median(loss):7.4f}",
                        flush=True,
                    )


def _one(
    law: Callable[[np.random.Generator, int], Column], q: float, n: int, epsilon: float, seed: int
) -> tuple[float, float, float]:
    """Coverage less q of a model and of a column; and how much larger the loss of the model is."""
    chance = np.random.default_rng(seed)
    X, noise = chance.normal(size=(n + NEW, 3)), law(chance, n + NEW)
    y = X @ SLOPES + noise
    model = DPQuantileRegressor(q, epsilon=epsilon, noise="simulated", random_state=seed)
    away = y[n:] - model.fit(X[:n], y[:n]).predict(X[n:])
    best = noise[n:] - np.quantile(noise[n:], q)
    column = private_quantile(
        noise[:n], q, epsilon=epsilon, noise="simulated", random_state=seed
    ).value
    losses = [np.mean(np.maximum(q * r, (q - 1) * r)) for r in (away, best)]
    return (
        float(np.mean(away <= 0) - q), float(np.mean(noise[n:] <= column) - q),
        float(losses[0] / losses[1] - 1),
    )  # fmt: skip


def _size(off: Column) -> float:
    return float(np.sqrt(np.mean(off**2)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
