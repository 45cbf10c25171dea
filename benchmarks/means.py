"""How often intervals of `private_mean` hold the mean, and how wide and how far off they are.

    PYTHONPATH=src python -m benchmarks.means [RUNS] [--sizes 500x1,2000x.25] [--only NAME]
        [--real FOLDER] [--json FILE]

Every run draws a new column from a law and adds new noise. ``held`` is the share of 95 % intervals
that hold the mean of these very records (``conf_int(sampling=False)``), ``law`` that of those that
hold the mean of the law (``conf_int()``). An interval without an end holds what lies there;
``open`` is the share of intervals without one end or both, and ``told`` that of the means that are
reliable. ``width`` is the median width of the others, and ``off`` the median distance from the mean
of the records, both in standard deviations of a column of the law. "others" are of many kinds, with
some whose values hide far from all others, which no interval holds. "against the assumption" has
tails that fall too slowly, or from a distance on, and few rows far from all others, which noise
hides unless n epsilon is large. ``--real`` reads Parquet files and takes some numeric columns of
each.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtail import private_mean

Column = NDArray[np.float64]
LEVEL = 0.95
SIZES = ((1_000, 1.0), (1_000, 0.1), (5_000, 1.0), (20_000, 1.0), (20_000, 0.1))
"""Rows and epsilon."""

SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999)
"""Of the values that are zero."""

MOST = 5_000_000
"""Draws whose mean stands for that of a law that has no simple formula."""


def mixed(rng: np.random.Generator, n: int, share: float, some: Column, others: Column) -> Column:
    """``some`` in this ``share`` of the rows, ``others`` in the rest."""
    return np.where(rng.random(n) < share, some, others)


def laws() -> dict[str, dict[str, tuple[Any, float]]]:
    """By class and name: how n values are drawn, and the mean of the law."""
    pareto = 1.5
    half = math.exp(0.5)
    positive: dict[str, tuple[Any, float]] = {
        "lognormal": (lambda rng, n: 100 * rng.lognormal(0, 1, n), 100 * half),
        "Pareto(1.5)": (lambda rng, n: 100 * (1 + rng.pareto(pareto, n)), 300.0),
        "constant": (lambda _, n: np.full(n, 40.0), 40.0),
    }
    zeros = {
        f"{share:.2%} zero, {name}": (
            lambda rng, n, draw=draw, share=share: mixed(rng, n, share, np.zeros(n), draw(rng, n)),
            (1 - share) * mean,
        )
        for share in SHARES
        for name, (draw, mean) in positive.items()
    }
    return {
        "light tails": {
            "normal(0, 1)": (lambda rng, n: rng.normal(0, 1, n), 0.0),
            "normal(7, 2)": (lambda rng, n: rng.normal(7, 2, n), 7.0),
            "normal(1e6, 1)": (lambda rng, n: rng.normal(1e6, 1, n), 1e6),
            "uniform": (lambda rng, n: rng.random(n), 0.5),
            "years": (lambda rng, n: rng.integers(1990, 2026, n).astype(float), 2007.5),
            "Poisson(3)": (lambda rng, n: rng.poisson(3, n).astype(float), 3.0),
        },
        "skewed": {
            "exponential": (lambda rng, n: rng.exponential(1, n), 1.0),
            "gamma(.5)": (lambda rng, n: rng.gamma(0.5, 1, n), 0.5),
            "-lognormal(0, .5)": (lambda rng, n: -rng.lognormal(0, 0.5, n), -math.exp(0.125)),
            "lognormal(0, 1)": (lambda rng, n: rng.lognormal(0, 1, n), half),
        },
        "heavy tails": {
            "t(3)": (lambda rng, n: rng.standard_t(3, n), 0.0),
            "t(2)": (lambda rng, n: rng.standard_t(2, n), 0.0),
            "Pareto(2.5)": (lambda rng, n: rng.pareto(2.5, n), 2 / 3),
            "Pareto(1.5)": (lambda rng, n: rng.pareto(pareto, n), 2.0),
            "lognormal(3, 2)": (lambda rng, n: rng.lognormal(3, 2, n), math.exp(5)),
        },
        "spiked": {
            "1, and 2 in 10 %": (lambda rng, n: 1.0 + (rng.random(n) < 0.1), 1.1),
            "40 in 70 %, rest 10 to 60": (
                lambda rng, n: mixed(rng, n, 0.7, np.full(n, 40.0), rng.uniform(10, 60, n)), 38.5,
            ),
            "40 in 95 %, rest lognormal": (
                lambda rng, n: mixed(rng, n, 0.95, np.full(n, 40.0), rng.lognormal(4, 1, n)),
                38 + 0.05 * math.exp(4.5),
            ),
            "-3 in 80 %, rest normal(0, 10)": (
                lambda rng, n: mixed(rng, n, 0.8, np.full(n, -3.0), rng.normal(0, 10, n)), -2.4,
            ),
            "constant 2020": (lambda _, n: np.full(n, 2020.0), 2020.0),
        },
        "others": {
            "Weibull(.4)": (lambda rng, n: rng.weibull(0.4, n), math.gamma(3.5)),
            "5 + t(2.2)": (lambda rng, n: 5 + rng.standard_t(2.2, n), 5.0),
            "10 in 80 %, 5000 in 20 %": (
                lambda rng, n: mixed(rng, n, 0.8, rng.normal(10, 1, n), rng.normal(5e3, 10, n)),
                1008.0,
            ),
            "lognormal(0, 2)": (lambda rng, n: rng.lognormal(0, 2, n), math.exp(2)),
            "lognormal(0, .6), 3 % x Pareto(1.8)": (
                lambda rng, n: rng.lognormal(0, 0.6, n)
                * mixed(rng, n, 0.97, np.ones(n), 1 + rng.pareto(1.8, n)),
                math.exp(0.18) * 1.0375,
            ),
            "geometric(.3)": (lambda rng, n: rng.geometric(0.3, n) - 1.0, 7 / 3),
            "80 % zero, rest negative binomial": (
                lambda rng, n: mixed(rng, n, 0.8, np.zeros(n), rng.negative_binomial(1, 0.05, n)),
                3.8,
            ),
            "lognormal in 60 %, -lognormal": (
                lambda rng, n: mixed(
                    rng, n, 0.6, rng.lognormal(3, 1, n), -rng.lognormal(2, 1.5, n)
                ),
                0.6 * math.exp(3.5) - 0.4 * math.exp(3.125),
            ),
            "1000 + gamma(2)": (lambda rng, n: 1000 + rng.gamma(2, 5, n), 1010.0),
            "9.99 in 60 %, rest lognormal": (
                lambda rng, n: mixed(rng, n, 0.6, np.full(n, 9.99), rng.lognormal(2.5, 0.8, n)),
                0.6 * 9.99 + 0.4 * math.exp(2.82),
            ),
            "-1 in 90 %, rest exponential(50)": (
                lambda rng, n: mixed(rng, n, 0.9, np.full(n, -1.0), rng.exponential(50, n)), 4.1,
            ),
        },
        "against the assumption": {
            "lognormal(0, 1), 5 % x Pareto(1.3)": (
                lambda rng, n: rng.lognormal(0, 1, n)
                * mixed(rng, n, 0.95, np.ones(n), 1 + rng.pareto(1.3, n)),
                half * (1 + 0.05 / 0.3),
            ),
            "lognormal(0, 2.5)": (lambda rng, n: rng.lognormal(0, 2.5, n), math.exp(3.125)),
            "Pareto(1.1)": (lambda rng, n: rng.pareto(1.1, n), 10.0),
            "normal, 1 % exponential(20)": (
                lambda rng, n: mixed(
                    rng, n, 0.99, rng.normal(0, 1, n), rng.exponential(20, n)
                ),
                0.2,
            ),
            "normal(10, 1), 10 % lognormal(4, 1)": (
                lambda rng, n: mixed(rng, n, 0.9, rng.normal(10, 1, n), rng.lognormal(4, 1, n)),
                9 + 0.1 * math.exp(4.5),
            ),
            "exponential, 5 % 20 x Pareto(1.5)": (
                lambda rng, n: mixed(
                    rng, n, 0.95, rng.exponential(1, n), 20 * (1 + rng.pareto(pareto, n))
                ),
                3.95,
            ),
        },
        "zeros": zeros,
    }  # fmt: skip


def measured(
    draw: Any, mean: float, runs: int, size: tuple[int, float], method: Any
) -> dict[str, float]:
    """What intervals of so many runs held, and how far off the means were."""
    n, epsilon = size
    rows = []
    for seed in range(runs):
        column = draw(np.random.default_rng(seed), n)
        found = private_mean(
            column, epsilon=epsilon, method=method, noise="simulated", random_state=seed
        )
        low, high = found.conf_int(LEVEL, sampling=False)
        try:
            lower, upper = found.conf_int(LEVEL)
        except ValueError:  # an interval without ends, once
            lower, upper = -math.inf, math.inf
        truth = column.mean()
        rows.append((
            low <= truth <= high, lower <= mean <= upper, math.isinf(high - low),
            bool(found.reliable), high - low, abs(found.value - truth),
        ))  # fmt: skip
    held, law, open_, told, widths, off = np.array(rows, dtype=np.float64).T
    shut = widths[np.isfinite(widths)]
    unit = float(np.std(draw(np.random.default_rng(1), 100_000))) or 1.0
    return {
        "held": held.mean(), "law": law.mean(), "open": open_.mean(), "told": told.mean(),
        "width": float(np.median(shut)) / unit if len(shut) else math.nan,
        "off": float(np.median(off)) / unit,
    }  # fmt: skip


def columns(folder: Path, rows: int) -> dict[str, tuple[Any, float]]:
    """Every numeric column of the Parquet files of a folder: how rows of it are drawn; its mean."""
    import pandas as pd

    found = {}
    for path in sorted(folder.rglob("*.parquet")):
        frame = pd.read_parquet(path).select_dtypes("number")
        for name in frame.columns[:: max(1, len(frame.columns) // rows)]:
            values = frame[name].dropna().to_numpy(dtype=np.float64)
            found[f"{path.stem}: {name}"] = (
                lambda rng, n, values=values: rng.choice(values, n), float(values.mean()),
            )  # fmt: skip
    return found


def main() -> None:
    """Print a line a law, and a line a class."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("runs", nargs="?", type=int, default=100)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--method", default="clipped")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", help="rows x epsilon, between commas")
    asked = parser.parse_args()
    given = (size.split("x") for size in asked.sizes.split(",")) if asked.sizes else ()
    sizes = tuple((int(n), float(epsilon)) for n, epsilon in given) or SIZES
    classes = {"real": columns(asked.real, 12)} if asked.real else laws()
    table = []
    for kind, group in classes.items():
        for size in sizes:
            lines = []
            for name, (draw, mean) in group.items():
                if asked.only not in f"{kind}: {name}":
                    continue
                facts = measured(draw, mean, asked.runs, size, asked.method)
                lines.append(facts)
                table.append(
                    {"class": kind, "name": name, "n": size[0], "epsilon": size[1], **facts}
                )
                show(f"{kind}: {name}", size, facts)
            if lines:
                whole = {key: float(np.nanmean([line[key] for line in lines])) for key in lines[0]}
                show(f"{kind}: ALL", size, whole)
    if asked.json:
        asked.json.write_text(json.dumps(table, indent=1))


def show(title: str, size: tuple[int, float], facts: dict[str, float]) -> None:
    """One line."""
    numbers = "  ".join(f"{key} {value:6.3g}" for key, value in facts.items())
    print(f"{title:<44} n={size[0]:>6,} ε={size[1]:<4g} {numbers}", flush=True)


if __name__ == "__main__":
    main()
