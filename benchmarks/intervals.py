"""How often intervals hold what they promise, and how wide they are.

    python -m benchmarks.intervals run [FITS] [--rows ROWS ...] [--laws LAW ...]
    python -m benchmarks.intervals page
    python -m benchmarks.intervals bounds [FITS]
    python -m benchmarks.intervals others [RUNS]

``run`` measures `conf_int` for the slopes of the population, with new rows and new (simulated)
noise in every fit. It adds a line to ``benchmarks/results/intervals.csv`` for each law, number of
rows and epsilon; a line of so many fits that is there is not measured again. ``refused`` counts
fits without intervals; a slope without bounds counts as its part of a fit. The rest is of the other
intervals. ``held`` is the part of the intervals of 95 % that hold the true slopes, ``held_error``
the standard error of that by chance, and ``least`` the part of the slope that does worst, among
those with bounds in half of the fits. ``width`` is the median of half an interval over 1.96 times
the root mean square error of the slope, the median over slopes: 1 where an interval is as wide as
it should be. ``page`` fills ``docs/guide/intervals.md`` from the file.

``bounds`` prints how many slopes of normal features have bounds, as a table for that page.

``others`` prints the coverage of `DPMean`, for tables drawn anew, and of ``conf_int(kind="noise")``
for one table, where the centre is the mean of all runs that use the feature, which is what the
releases lead to without noise.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.comparison.made import filled, measure_missing
from benchmarks.interval_coverage import LEVEL, Doubles, ends_of, held, refused, width
from benchmarks.slopes import BUDGETS, LAWS, ROWS, drawn
from privtail.errors import AccuracyWarning
from privtail.linear_model import DPHuberRegressor, DPLinearRegression, DPLogisticRegression, DPMean

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "intervals.csv"
PAGE = ROOT / "docs" / "guide" / "intervals.md"

MOSTLY = 0.95
"""A cell of which this part is refused has no other numbers in the tables."""


def measured(law: str, n: int, epsilon: float, fits: int) -> dict[str, Any]:
    """A line of the results."""
    ends, errors = [], []
    for seed in range(fits):
        X, y, w, kind = drawn(law, n, np.random.default_rng(seed))
        model = kind(epsilon=epsilon, noise="simulated", random_state=seed).fit(X, y)
        ends.append(ends_of(model))
        errors.append(np.ravel(model.coef_) - w)
    all_ends = np.array(ends)
    cell = {"law": law, "n": n, "epsilon": epsilon, "fits": fits, "refused": refused(all_ends)}
    found = held(all_ends, w)
    return cell | found | ({"width": width(all_ends, np.array(errors))} if found else {})


def run(fits: int, rows: list[int], laws: list[str]) -> None:
    """Measure the cells that are not in the file with so many fits."""
    warnings.simplefilter("ignore", AccuracyWarning)
    cells = (
        {"law": law, "n": n, "epsilon": epsilon}
        for n in rows
        for law in laws
        for epsilon in BUDGETS
    )
    measure_missing(RESULTS, cells, fits, measured)


def page(text: str, cells: pd.DataFrame) -> str:
    """The page with its table anew."""
    return filled(text, lambda _: _table(cells), "slopes")


def _table(cells: pd.DataFrame) -> Iterator[str]:
    """A row by law and number of rows, with the parts that hold and the widths by epsilon."""
    heads = [f"{what}, ε = {epsilon:g}" for what in ("held", "width") for epsilon in BUDGETS]
    yield f"| data | rows | fits | {' | '.join(heads)} |"
    yield "|---|" + "---|" * (2 + len(heads))
    for law in LAWS:
        for n in ROWS:
            own = cells[(cells["law"] == law) & (cells["n"] == n)].set_index("epsilon")
            if len(own) < len(BUDGETS):
                continue
            shown = [_held(own.loc[epsilon]) for epsilon in BUDGETS]
            shown += [shown_width(own.loc[epsilon]) for epsilon in BUDGETS]
            yield f"| {law} | {n:,} | {own['fits'].min():,} | {' | '.join(shown)} |"


def _held(cell: pd.Series) -> str:
    return shown_part(cell, f"{100 * cell['held']:.1f} %", cell["refused"] / cell["fits"])


def shown_part(cell: pd.Series, held: str, part: float) -> str:
    """How often intervals held, with the part of them that is refused."""
    if mostly_refused(cell["refused"], cell["fits"]):
        return "refused"
    percents = f"{100 * part:.0f}" if part >= 0.01 else "under 1"
    return f"{held} ({percents} % refused)" if part else held


def mostly_refused(without: float, fits: int) -> bool:
    """Whether too few intervals are left to say how often they hold."""
    return bool(without >= MOSTLY * fits)


def shown_width(cell: pd.Series) -> str:
    """The width, or a dash."""
    return "–" if mostly_refused(cell["refused"], cell["fits"]) else f"{cell['width']:.2f}"


FEATURES, SIZES = (2, 5, 10, 20, 50), (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


def bounds(fits: int) -> None:
    """Print the share of slopes with bounds, by number of features and rows, at epsilon 1."""
    warnings.simplefilter("ignore", AccuracyWarning)
    print(f"| normal features | {' | '.join(f'n ε = {n:,}' for n in SIZES)} |")
    print("|---|" + "---|" * len(SIZES))
    for d in FEATURES:
        parts = [1 - refused(_ends(d, n, fits)) / fits for n in SIZES]
        print(f"| {d} | {' | '.join(f'{100 * part:.0f} %' for part in parts)} |", flush=True)


def _ends(d: int, n: int, fits: int) -> Doubles:
    """(fits, d, 2) ends of intervals where every feature has the same effect."""
    found = []
    for seed in range(fits):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        y = X.sum(axis=1) / np.sqrt(d) + rng.normal(size=n)
        model = DPLinearRegression(epsilon=1.0, noise="simulated", random_state=seed).fit(X, y)
        found.append(ends_of(model))
    return np.array(found)


def means(runs: int, n: int, epsilon: float, method: Any) -> dict[str, float]:
    """Share of the intervals of `DPMean` that hold the true mean."""
    laws: dict[str, Any] = {
        "normal": (lambda rng: rng.normal(7, 2, n), 7.0),
        "t(3)": (lambda rng: rng.standard_t(3, n), 0.0),
        "exponential": (lambda rng: rng.exponential(1, n), 1.0),
        "lognormal(0, 1)": (lambda rng: rng.lognormal(0, 1, n), float(np.exp(0.5))),
    }
    inside = np.zeros(len(laws))
    truth = np.array([mean for _, mean in laws.values()])
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = np.column_stack([draw(rng) for draw, _ in laws.values()])
        model = DPMean(method, epsilon=epsilon, noise="simulated", random_state=seed).fit(X)
        low, high = model.conf_int(LEVEL).T
        inside += (low <= truth) & (truth <= high)
    return dict(zip(laws, inside / runs, strict=True))


def correlated(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """t(3) features of which two are nearly the same."""
    X = rng.standard_t(3, size)
    X[:, 1] = 0.9 * X[:, 0] + 0.3 * X[:, 1]
    return X


def very_rare(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """Normal features, and two that are 1 in 1 % of the rows."""
    X = rng.normal(size=size)
    X[:, 3:] = rng.binomial(1, 0.01, (size[0], 2))
    return X


def alike(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """Normal features of which two are the same."""
    X = rng.normal(size=size)
    X[:, 4] = X[:, 3]
    return X


def one_hot(rng: np.random.Generator, size: tuple[int, int]) -> Any:
    """A normal feature and all indicators of a category, which add up to the intercept's."""
    X, rows = rng.normal(size=size), size[0]
    X[:, 1:] = np.eye(size[1] - 1)[rng.choice(size[1] - 1, rows, p=[0.4, 0.3, 0.2, 0.1])]
    return X


DESIGNS: dict[str, Any] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "t(3)": lambda rng, size: rng.standard_t(3, size),
    "t(3), correlated": correlated,
    "lognormal(0, 1.5)": lambda rng, size: rng.lognormal(0, 1.5, size),
    "rare binary": lambda rng, size: rng.binomial(1, 0.1, size).astype(float),
    "very rare binary": very_rare,
    "two alike": alike,
    "one-hot": one_hot,
}


def slopes(runs: int, kind: Any, design: str, epsilon: float) -> tuple[float, float]:
    """Coverage of ``conf_int(kind="noise")``, and stated over actual deviation.

    A feature that is zero in nearly all rows is not used in every run.
    """
    rng = np.random.default_rng(0)
    X = DESIGNS[design](rng, (20_000, 5))
    signal = X @ [1.0, -1.0, 0.5, 0.0, 2.0]
    y = signal + signal.std() / 3 * rng.standard_t(3, 20_000)
    labels = kind is DPLogisticRegression
    options: dict[str, Any] = {"classes": [0, 1]} if labels else {}
    target = (y > np.median(y)).astype(int) if labels else y
    models = [
        kind(epsilon=epsilon, noise="simulated", random_state=seed, **options).fit(X, target)
        for seed in range(runs)
    ]
    found = np.array([model.coef_.ravel() for model in models])
    ends = np.array([model.conf_int(LEVEL, kind="noise").reshape(-1, 2) for model in models])
    stated = np.array([model.coef_noise_std_ for model in models])
    used = np.isfinite(stated)
    found, stated = (np.where(used, x, np.nan) for x in (found, stated))
    centre = np.nanmean(found, axis=0)
    inside = (ends[..., 0] <= centre) & (centre <= ends[..., 1])
    ratio = np.nanmean(stated, axis=0).mean() / np.nanstd(found, axis=0, ddof=1).mean()
    return float(inside[used].mean()), float(ratio)


def others(runs: int) -> None:
    """Print the coverage of means, and of intervals for the noise of slopes."""
    warnings.simplefilter("ignore")
    print(f"coverage of {LEVEL:.0%} intervals, {runs} runs")
    for method in ("clamped", "clipped", "coinpress"):
        for n, epsilon in ((2_000, 1.0), (50_000, 0.5)):
            cells = means(runs, n, epsilon, method).items()
            text = ", ".join(f"{law} {share:.3f}" for law, share in cells)
            print(f"mean, {method:<9} n={n:>6,} ε={epsilon:g}: {text}", flush=True)
    for kind in (DPLinearRegression, DPHuberRegressor, DPLogisticRegression):
        for design in DESIGNS:
            covered, ratio = slopes(max(runs // 10, 10), kind, design, 1.0)
            title = f"{kind.__name__}, {design}"
            print(f"slopes, {title}: {covered:.3f}, stated/actual noise {ratio:.1f}", flush=True)


def main() -> None:
    """One of the four commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run")
    measure.add_argument("fits", type=int, nargs="?", default=1_000)
    measure.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    measure.add_argument("--laws", nargs="+", choices=LAWS, default=list(LAWS), metavar="LAW")
    commands.add_parser("page")
    commands.add_parser("bounds").add_argument("fits", type=int, nargs="?", default=20)
    commands.add_parser("others").add_argument("runs", type=int, nargs="?", default=200)
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.fits, asked.rows, asked.laws)
    elif asked.command == "page":
        text = page(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS))
        PAGE.write_text(text, encoding="utf-8")
    elif asked.command == "bounds":
        bounds(asked.fits)
    else:
        others(asked.runs)


if __name__ == "__main__":
    main()
