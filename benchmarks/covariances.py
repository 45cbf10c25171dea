"""Coverage and errors of `privtail.private_covariance` and `private_correlation`.

    python -m benchmarks.covariances [RUNS] [LAW ...]

Every run draws new rows of d columns whose correlation matrix is known and adds new (simulated)
noise. ``cov`` and ``corr`` are the parts of the intervals of 95 % that hold the covariances and
correlations of the law, ``off`` the mean absolute error of correlations, ``sampled`` that of NumPy
on the same rows, without privacy, and ``wide`` the median half width. Columns have scales 1, 10,
100 and lie at 0, 1000.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail import private_correlation, private_covariance
from privtail.errors import AccuracyWarning

Doubles = NDArray[np.float64]
LAWS = ("normal", "t(3)", "lognormal(0, 1)")
ROWS, BUDGETS, COLUMNS = (2_000, 20_000), (1.0, 5.0), (2, 5)


def drawn(law: str, rng: np.random.Generator, n: int, d: int) -> tuple[Doubles, Doubles]:
    """Rows, and the covariance matrix of the law: latent correlations .6, .36, ... by distance."""
    latent = 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    z = rng.multivariate_normal(np.zeros(d), latent, n)
    if law == "t(3)":
        z, cov = z / np.sqrt(rng.chisquare(3, n) / 3)[:, None], 3 * latent
    elif law == "lognormal(0, 1)":
        z, cov = np.exp(z), np.e * (np.exp(latent) - 1)
    else:
        cov = latent
    scales, places = 10.0 ** (np.arange(d) % 3), 1000.0 * (np.arange(d) % 2)
    return places + scales * z, np.outer(scales, scales) * cov


def main(runs: int, laws: list[str]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", AccuracyWarning)
    heads = "".join(f"{head:>9}" for head in ("cov", "corr", "told", "off", "sampled", "wide"))
    print(f"{'law':<17}{'d':>3}{'n':>7}{'epsilon':>8}{heads}")
    for law in laws:
        for d in COLUMNS:
            for n in ROWS:
                for epsilon in BUDGETS:
                    found = np.array([one(law, d, n, epsilon, seed) for seed in range(runs)])
                    row = "".join(
                        f"{x:>9.3f}" for x in [*found[:, :5].mean(axis=0), np.median(found[:, 5])]
                    )
                    print(f"{law:<17}{d:>3}{n:>7,}{epsilon:>8g}{row}", flush=True)


def one(law: str, d: int, n: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """What intervals of one run hold, and how far off correlations are."""
    x, cov = drawn(law, np.random.default_rng(seed), n, d)
    chance: Any = {"noise": "simulated", "random_state": seed}
    root = np.sqrt(np.diag(cov))
    corr, upper = cov / np.outer(root, root), np.triu_indices(d, 1)
    covariance = private_covariance(x, epsilon=epsilon, **chance)
    correlation = private_correlation(x, epsilon=epsilon, **chance)
    held = (covariance.low <= cov) & (cov <= covariance.high)
    kept = (correlation.low <= corr) & (corr <= correlation.high)
    return (
        float(held[np.triu_indices(d)].mean()),
        float(kept[upper].mean()),
        float(correlation.reliable[upper].mean()),
        float(np.abs(correlation.value - corr)[upper].mean()),
        float(np.abs(np.corrcoef(x.T) - corr)[upper].mean()),
        float(np.median((correlation.high - correlation.low)[upper] / 2)),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40, sys.argv[2:] or list(LAWS))
