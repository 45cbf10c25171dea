"""How often intervals of slopes hold where residuals are as in real tables.

    python -m benchmarks.populations run [FITS] [--tables TABLE ...] [--heteroscedastic]
    python -m benchmarks.populations page

A *population* is a real table, or 200,000 rows that were drawn once. Every fit has rows of it that
are drawn with replacement, and new (simulated) noise. ``run`` adds a line to
``benchmarks/results/populations.csv`` for each population, number of rows and epsilon; a line of so
many fits that is there is not measured again. Models have ``heteroscedastic=True`` if it is asked
for, of numeric targets. ``refused`` is as in `benchmarks.intervals`. ``held`` is the part of the
intervals of 95 % that hold the slopes of least squares on the whole population (of labels, those of
maximum likelihood), and ``least`` the part of the slope that does worst, among those with bounds in
half of the fits. ``clipped`` and ``clipped_least`` are the same for the slopes at which the clipped
gradient of that fit is zero on the whole population: residuals clipped at its threshold, and rows
shrunk to its length. ``width`` is as in `benchmarks.intervals`, for least squares. ``page`` fills
``docs/guide/intervals.md``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from benchmarks.comparison.made import filled, measure_missing
from benchmarks.interval_coverage import ends_of, held, refused, width
from benchmarks.intervals import PAGE, mostly_refused, shown_part, shown_width
from benchmarks.slopes import BUDGETS, SLOPES
from privtail.algorithms.result import Result
from privtail.data import ADULT
from privtail.data.catalogue import located
from privtail.default.fitted import FittedSlopes
from privtail.errors import AccuracyWarning
from privtail.linear_model import DPLinearRegression, DPLogisticRegression

Doubles = NDArray[np.float64]

RESULTS = Path(__file__).resolve().parent / "results" / "populations.csv"
ROWS, DRAWN = (2_000, 20_000), 200_000
NEWS = ["n_tokens_content", "num_hrefs", "num_imgs", "is_weekend", "global_subjectivity"]
POPULATIONS = {
    "hours": "hours a week of age, years of school, sex and log weight (Adult)",
    "school": "years of school of age, hours a week and sex (Adult)",
    "log shares": "logarithm of shares of five features (Online News Popularity)",
    "shares": "shares of the same five features",
    "elevation": "elevation of five features (Covertype)",
    "income": "label of income of the features of *hours* (Adult)",
    "spread": "normal features, normal residuals times abs(x1)",
    "growing": "normal features, normal residuals times exp(x1 / 2)",
    "heavy spread": "t(3) features, normal residuals times 1 + abs(x1)",
    "rare": "x1 is 1 in one of 100 rows and 0 in others; normal residuals, times 3 where it is 1",
    "products": "lognormal features, and a mean that is multiplied by lognormal noise",
}


class Watched(DPLinearRegression):
    """Keeps what was released of the slopes."""

    slopes_: FittedSlopes

    def _run(self, *args: Any, **options: Any) -> Result:
        result = super()._run(*args, **options)
        assert isinstance(result.slopes, FittedSlopes)
        self.slopes_ = result.slopes
        return result


@cache
def population(name: str) -> tuple[Doubles, Any, Doubles, Any]:
    """All rows, their targets, their slopes without privacy, and an estimator."""
    if name == "income":
        (X, *_), table = population("hours"), pd.read_parquet(ADULT)
        y = (table["income"] == ">50K").to_numpy(int)
        scales = X.std(axis=0)
        plain = LogisticRegression(C=np.inf, tol=1e-9, max_iter=1_000).fit(X / scales, y)
        return X, y, plain.coef_[0] / scales, partial(DPLogisticRegression, classes=[0, 1])
    X, y = _real(name) if name in list(POPULATIONS)[:5] else _drawn(name)
    joint = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    return X, y, np.linalg.lstsq(joint, y)[0][:-1], Watched


def _real(name: str) -> tuple[Doubles, Doubles]:
    if name in ("hours", "school"):
        table = pd.read_parquet(ADULT)
        table["male"], table["log"] = table["sex"] == "Male", np.log(table["fnlwgt"])
        taken = ["age", "education_num", "male", "log", "hours_per_week"]
        if name == "school":
            taken = ["age", "hours_per_week", "male", "education_num"]
    elif name == "elevation":
        table = pd.read_parquet(_file("covertype"))
        taken = [*table.columns[1:6], table.columns[0]]
    else:
        table = pd.read_parquet(_file("news-14"))
        table["log shares"] = np.log(table["shares"])
        taken = [*NEWS, name]
    values = table[taken].to_numpy(float)
    return values[:, :-1], values[:, -1]


def _file(name: str) -> Path:
    path = located(name)
    if path is None:
        raise SystemExit(f"{name} is not there: name the folder of real data in PRIVTAIL_DATA.")
    return path


def _drawn(name: str) -> tuple[Doubles, Doubles]:
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(DRAWN, 5)), rng.normal(size=DRAWN)
    if name == "products":
        X = np.exp(X)
        return X, X @ np.abs(SLOPES) * np.exp(noise / 2)
    if name == "heavy spread":
        X = rng.standard_t(3, X.shape)
        noise *= 1 + np.abs(X[:, 0])
    elif name == "rare":
        X[:, 0] = rng.random(DRAWN) < 0.01
        noise *= 1 + 2 * X[:, 0]
    else:
        noise *= np.abs(X[:, 0]) if name == "spread" else np.exp(X[:, 0] / 2)
    return X, X @ SLOPES + noise


def clipped_slopes(slopes: FittedSlopes, X: Doubles, y: Doubles) -> Doubles:
    """(d,) the slopes at which the clipped gradient of a fit is zero on these rows."""
    w, seen, clip = slopes.w[:, 0].copy(), slopes.standard.map, slopes.runs[-1].schedule.mean
    rows = np.column_stack([X * seen.scales + seen.offsets, np.ones(len(X))])
    shrunk = np.minimum(1.0, clip.row_length / np.linalg.norm(rows, axis=1))[:, None] * rows
    least = 1e-3 * shrunk.T @ rows / len(X)
    for step in range(12):
        residuals = y - rows @ w
        inside = np.abs(residuals) < clip.threshold
        moved = shrunk.T @ np.clip(residuals, -clip.threshold, clip.threshold) / len(X)
        curved = shrunk[inside].T @ rows[inside] / len(X)
        w += (0.7 if step < 8 else 1.0) * np.linalg.lstsq(curved + least, moved)[0]
    return np.asarray(w[:-1] * seen.scales)


def measured(name: str, n: int, epsilon: float, heteroscedastic: bool, fits: int) -> dict[str, Any]:
    """A line of the results."""
    X, y, w, kind = population(name)
    if heteroscedastic:
        kind = partial(kind, heteroscedastic=True)
    ends, centres, errors = [], [], []
    for seed in range(fits):
        drawn = np.random.default_rng(seed).integers(len(y), size=n)
        model = kind(epsilon=epsilon, noise="simulated", random_state=seed).fit(X[drawn], y[drawn])
        ends.append(ends_of(model))
        errors.append(np.ravel(model.coef_) - w)
        if isinstance(model, Watched):
            centres.append(clipped_slopes(model.slopes_, X, y))
    all_ends = np.array(ends)
    cell = {"table": name, "n": n, "epsilon": epsilon, "heteroscedastic": heteroscedastic}
    cell |= {"fits": fits, "refused": refused(all_ends)}
    whole = held(all_ends, w)
    if not whole:
        return cell
    cell |= {"width": width(all_ends, np.array(errors))}
    cell |= {"held": whole["held"], "least": whole["least"]}
    if centres:
        own = held(all_ends, np.array(centres))
        cell |= {"clipped": own["held"], "clipped_least": own["least"]}
    return cell


def run(fits: int, tables: list[str], heteroscedastic: bool) -> None:
    """Measure the cells that are not in the file with so many fits."""
    warnings.simplefilter("ignore", AccuracyWarning)
    cells = (
        {"table": name, "n": n, "epsilon": e, "heteroscedastic": heteroscedastic}
        for name in tables
        for n in ROWS
        for e in BUDGETS
        if not (heteroscedastic and name == "income")
    )
    measure_missing(RESULTS, cells, fits, measured)


def page(text: str, cells: pd.DataFrame) -> str:
    """The page with its tables anew."""
    equal, unequal = (cells[cells["heteroscedastic"] == own] for own in (False, True))
    text = filled(text, lambda _: _table(equal), "populations")
    return filled(text, lambda _: _beside(equal, unequal), "heteroscedastic")


def _beside(equal: pd.DataFrame, unequal: pd.DataFrame) -> Iterator[str]:
    """A row by population and number of rows: the worst slope and the width, without and with."""
    heads = [f"{what}, ε = {e:g}" for what in ("worst slope", "width") for e in BUDGETS]
    yield f"| table | rows | {' | '.join(heads)} |"
    yield "|---|" + "---|" * (1 + len(heads))
    key = ["table", "n", "epsilon"]
    both = equal.merge(unequal, on=key, suffixes=("", " with")).set_index(key)
    for name in POPULATIONS:
        for n in ROWS:
            if any((name, n, e) not in both.index for e in BUDGETS):
                continue
            lines = [both.loc[name, n, e] for e in BUDGETS]
            shown = [_change(line, "clipped_least", 100, " %") for line in lines]
            shown += [_change(line, "width", 1, "") for line in lines]
            yield f"| {name} | {n:,} | {' | '.join(shown)} |"


def _change(line: pd.Series, key: str, times: float, unit: str) -> str:
    """A number without, and with what the fit allows for."""
    digits = 0 if times > 1 else 2
    pair = (f"{times * line[k]:.{digits}f}{unit}" for k in (key, f"{key} with"))
    most = max(line["refused"], line["refused with"])
    unknown = np.isnan(line[key]) or np.isnan(line[f"{key} with"])
    return "–" if unknown or mostly_refused(most, line["fits"]) else " → ".join(pair)


def _table(cells: pd.DataFrame) -> Iterator[str]:
    """A row by population and number of rows: what holds, by epsilon."""
    heads = [f"{what}, ε = {e:g}" for what in ("clipped", "whole", "width") for e in BUDGETS]
    yield f"| table | rows | {' | '.join(heads)} |"
    yield "|---|" + "---|" * (1 + len(heads))
    for name in POPULATIONS:
        for n in ROWS:
            own = cells[(cells["table"] == name) & (cells["n"] == n)].set_index("epsilon")
            if len(own) < len(BUDGETS):
                continue
            lines = [own.loc[epsilon] for epsilon in BUDGETS]
            shown = [_part(line, key) for key in ("clipped", "held") for line in lines]
            yield f"| {name} | {n:,} | {' | '.join([*shown, *map(shown_width, lines)])} |"


def _part(cell: pd.Series, key: str) -> str:
    if np.isnan(cell[key]) and not mostly_refused(cell["refused"], cell["fits"]):
        return "–"
    part = cell["refused"] / cell["fits"] if key == "clipped" else 0.0
    return shown_part(cell, f"{100 * cell[key]:.0f} %", part)


def main() -> None:
    """One of the two commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run")
    measure.add_argument("fits", type=int, nargs="?", default=60)
    measure.add_argument("--tables", nargs="+", choices=list(POPULATIONS),
                         default=list(POPULATIONS), metavar="TABLE")  # fmt: skip
    measure.add_argument("--heteroscedastic", action="store_true")
    commands.add_parser("page")
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.fits, asked.tables, asked.heteroscedastic)
    else:
        text = page(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS))
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
