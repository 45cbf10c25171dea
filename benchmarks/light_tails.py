"""Where nothing is heavy: the default beside AdaSSP that is told the true bounds.

    python -m benchmarks.light_tails [--seeds 9] [--rows 100000]

AdaSSP (Wang 2018) releases X'X and X'y of rows clipped to norms that it is told, with Gaussian
noise that is calibrated for both together, and takes its ridge from the level of that noise. The
default is told nothing. Both protect the replacement of one record at delta = 1e-6. "error" is the
length of the error of the slopes (root mean square of the predictions that they miss), medians of
the seeds; "excess" is what test RMSE exceeds that of least squares by, in percent.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.baselines import Bounds, adassp, of_sklearn
from benchmarks.comparison.problems import Problem, Sample
from privtail.linear_model import DPLinearRegression

Doubles = NDArray[np.float64]
DELTA = 1e-6


def records(design: str, n: int, d: int, seed: int) -> tuple[Doubles, Doubles, Doubles]:
    """Features, target, slopes; unit noise, and slopes of length sqrt(d)/2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) if design == "gaussian" else rng.uniform(-1, 1, (n, d))
    w = np.where(np.arange(d) % 2 == 0, 0.5, -0.5)
    return X, X @ w + 1 + rng.normal(size=n), w


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--rows", type=int, default=100_000)
    asked = parser.parse_args()
    print(f"{'design':<10}{'n':>8}{'d':>4}{'eps':>6}{'AdaSSP error':>14}{'ours':>9}{'ratio':>8}"
          f"{'AdaSSP excess %':>17}{'ours':>9}{'RMSE ratio':>12}")  # fmt: skip
    for design in ("gaussian", "uniform"):
        for n in (1_000, 10_000, 100_000):
            for d in (5, 20):
                if n > asked.rows:
                    continue
                X, y, w = records(design, n, d, 0)
                test, target, _ = records(design, 20_000, d, 1)
                sample = Sample(X=X, y=y, X_test=test, y_test=target)
                problem = Problem(
                    name=design, group="laws", draw=lambda _, s=sample: s, n=n, d=d, delta=DELTA
                )
                row = float(np.quantile(np.linalg.norm(X, axis=1), 0.999))
                bounds = Bounds(np.ones(d), row, float(np.quantile(np.abs(y), 0.999)))
                A = np.hstack([X, np.ones((n, 1))])
                best = np.linalg.lstsq(A, y, rcond=None)[0]
                scale = float(X.std())
                for epsilon in (0.1, 0.5, 1.0, 3.0):
                    rows: dict[str, list[tuple[float, float]]] = {"ada": [], "ours": []}
                    for seed in range(asked.seeds):
                        found = adassp(problem, sample, epsilon, seed, bounds)
                        model: Any = DPLinearRegression(
                            epsilon=epsilon, delta=DELTA, noise="simulated", random_state=seed
                        ).fit(X, y)
                        for name, v in (
                            ("ada", found.w[:, 0]), ("ours", of_sklearn(model).w[:, 0])
                        ):  # fmt: skip
                            wrong = test @ v[:d] + v[d] - target
                            error = scale * float(np.linalg.norm(v[:d] - w))
                            rows[name].append((error, math.sqrt(np.mean(wrong**2))))
                    least = math.sqrt(np.mean((test @ best[:d] + best[d] - target) ** 2))
                    (a, b), (p, q) = (np.median(rows[k], axis=0) for k in ("ada", "ours"))
                    print(f"{design:<10}{n:>8}{d:>4}{epsilon:>6g}{a:>14.4f}{p:>9.4f}{p / a:>8.2f}"
                          f"{100 * (b / least - 1):>17.2f}{100 * (q / least - 1):>9.2f}"
                          f"{q / b:>12.3f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
