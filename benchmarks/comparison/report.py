"""The table in words: medians, ranks, and how far the default is from the best and the constant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.comparison import runner
from benchmarks.comparison.methods import DEFAULT, METHODS, RANKED
from benchmarks.comparison.problems import problems

CLOSE = 1.05
"""First, or within five per cent."""

SEEN = 1.02
"""Medians of nine that differ by less say little."""

GAIN = 0.99
"""A fit without privacy bounds the others where its error is below this part of the constant's."""

BOUNDS = ("least squares", "logistic")
"""What the constant and the others are held against."""

KINDS = {m.name: m.kind for m in METHODS}
ORDER = [m.name for m in METHODS]
VALUES = ["error", "mae", "against_mean", "coefficient", "seconds"]
LIGHT = ("gauss, n=", "correlated, n=", "weak")
"""Laws of targets with light tails."""


def medians(folder: Path) -> pd.DataFrame:
    """Medians over repetitions: one row per problem, budget and method; runs says of how many.

    Half of the errors lie between ``low`` and ``high``.

    A fit that was refused is worse than any other; ``refused`` says where the median one was.
    Methods were run on different numbers of repetitions, whose data differ: an error counts by its
    place between those of the fit without privacy and of the constant on the same repetition, and
    beyond the constant in parts of that.
    """
    frames = [runner.read(name, folder).assign(method=name) for name in ORDER]
    rows = pd.concat([f.astype({"problem": str}) for f in frames if len(f)], ignore_index=True)
    rows["epsilon"] = rows["epsilon"].astype(float).round(3)
    rows["refused"] = rows["error"].isna()
    rows["error"] = rows["error"].astype(float).fillna(math.inf)
    rows["error"] = _placed(rows)
    order = [p.name for p in problems()]
    place = rows["problem"].map({name: i for i, name in enumerate(order)})
    rows = rows.assign(place=place.fillna(len(order))).sort_values("place", kind="stable")
    grouped = rows.groupby(["problem", "epsilon", "method"], sort=False)
    found = (
        grouped[VALUES]
        .median()
        .assign(
            runs=grouped.size(),
            refused=grouped["refused"].mean() > 0.5,
            low=grouped["error"].quantile(0.25, interpolation="higher"),
            high=grouped["error"].quantile(0.75, interpolation="lower"),
        )
    )
    found = found.reset_index()
    return found.assign(kind=found["method"].map(KINDS))


def _placed(rows: pd.DataFrame) -> pd.Series:
    """Every error as if the fit without privacy and the constant had their typical ones."""
    kept = rows[rows["method"].isin((*BOUNDS, "constant"))]
    bound = np.where(kept["method"] == "constant", "constant", "bound")
    fixed = kept.pivot_table("error", ["problem", "repetition"], bound)
    fixed = fixed.reindex(columns=["constant", "bound"]).dropna(subset="constant")
    fixed["bound"] = fixed["bound"].where(fixed["bound"] < GAIN * fixed["constant"])
    both = fixed.dropna().groupby("problem").median()
    typical = both.reindex(fixed.index.unique("problem")).fillna(fixed.groupby("problem").median())
    own = fixed.reindex(pd.MultiIndex.from_frame(rows[["problem", "repetition"]]))
    error, constant, best = rows["error"].to_numpy(), *own[["constant", "bound"]].to_numpy().T
    usual, least = typical.reindex(rows["problem"])[["constant", "bound"]].to_numpy().T
    closed = (constant - error) / (constant - best)
    parts = np.where(np.isnan(constant), error, error * usual / constant)
    between = (error <= constant) & np.isfinite(closed) & np.isfinite(least)
    return pd.Series(np.where(between, usual - closed * (usual - least), parts), index=rows.index)


def reference(problem: pd.DataFrame) -> float:
    """The better of the fits without privacy, of one problem."""
    mine = problem[(problem["kind"] == "not private") & (problem["method"] != "constant")]
    return float(mine["error"].min()) if len(mine) else math.nan


def standings(found: pd.DataFrame) -> pd.DataFrame:
    """Of every problem and budget: the default beside the best ranked method and the references.

    Columns: problem, epsilon, default, constant, reference, best (name), best_error, rank, of,
    to_best, to_constant and closed, the part of the gap between constant and reference (NaN where
    the reference gains less than a hundredth).
    """
    rows = []
    for name, problem in found.groupby("problem", sort=False):
        fixed = problem[problem["method"] == "constant"]["error"]
        constant = float(fixed.iloc[0]) if len(fixed) else math.nan
        bound = reference(problem)
        for epsilon, cell in problem[np.isfinite(problem["epsilon"])].groupby("epsilon"):
            ranked = cell[cell["kind"].isin(RANKED)].sort_values("error", kind="stable")
            ours = ranked[ranked["method"] == DEFAULT]["error"]
            others = ranked[ranked["method"] != DEFAULT]
            if not len(ours) or not len(others):
                continue
            error, best = float(ours.iloc[0]), others.iloc[0]
            rows.append({
                "problem": name, "epsilon": epsilon, "default": error, "constant": constant,
                "reference": bound, "best": best["method"], "best_error": float(best["error"]),
                "rank": 1 + int((others["error"] < error).sum()), "of": len(ranked),
                "to_best": error / min(error, float(best["error"])),
                "to_constant": error / constant,
                "closed": part(error, constant, bound),
            })  # fmt: skip
    return pd.DataFrame(rows)


def part(error: float, constant: float, bound: float) -> float:
    """Of the gap between the constant and a bound, where there is one worth the name."""
    gap = constant - bound
    return (constant - error) / gap if gap > 0.01 * constant else math.nan


def close(table: pd.DataFrame) -> pd.Series:
    """Where the default is first or within five per cent."""
    return table["to_best"] <= CLOSE


def text(found: pd.DataFrame, *, summary: bool = False) -> str:
    """All of it: a block of rows per problem, the standings, the targets."""
    table = standings(found)
    parts = [] if summary else [*_blocks(found), ""]
    return "\n".join([*parts, *_standings(table), "", *_counts(table), "", *targets(found, table)])


def _number(x: float) -> str:
    return "-" if math.isnan(x) else f"{x:.4g}"


def _blocks(found: pd.DataFrame) -> Iterator[str]:
    for name, problem in found.groupby("problem", sort=False):
        budgets = sorted(e for e in problem["epsilon"].unique() if e < math.inf)
        heads = "".join(f"{f'eps {e:g}':>11}" for e in budgets)
        yield f"\n{name:44}{heads}{'s':>9}{'runs':>5}"
        for method in ORDER:
            mine = problem[problem["method"] == method].set_index("epsilon")
            if not len(mine):
                continue
            at = [mine["error"].get(e, mine["error"].get(math.inf, math.nan)) for e in budgets]
            numbers = "".join(f"{_number(float(x)):>11}" for x in at)
            seconds, runs = float(mine["seconds"].median()), int(mine["runs"].min())
            yield f"  {method:26}{KINDS[method]:>16}{numbers}{seconds:9.2f}{runs:5}"


def _standings(table: pd.DataFrame) -> Iterator[str]:
    yield (
        f"{'problem':38}{'eps':>5}{'privtail':>10}{'best other':>26}{'error':>10}{'rank':>6}"
        f"{'/ best':>8}{'/ const':>9}{'closed':>8}"
    )
    for row in table.itertuples():
        yield (
            f"{row.problem:38}{row.epsilon:5g}{_number(row.default):>10}{row.best:>26}"
            f"{_number(row.best_error):>10}{row.rank:3}/{row.of:<2}{row.to_best:8.3f}"
            f"{row.to_constant:9.3f}{row.closed:8.2f}{'' if row.to_best <= CLOSE else '  beaten'}"
        )


def _counts(table: pd.DataFrame) -> Iterator[str]:
    cells, near = len(table), int(close(table).sum())
    yield f"first: {int((table['rank'] == 1).sum())} of {cells} problems and budgets"
    yield f"first or within 5 %: {near} of {cells} ({near / max(cells, 1):.0%})"
    above = table[table["to_constant"] > CLOSE]
    worst = table.loc[table["to_constant"].idxmax()]
    yield (
        f"more than 5 % worse than the constant: {len(above)}; worst {worst['to_constant']:.3f} "
        f"({worst['problem']}, eps {worst['epsilon']:g})"
    )


def beaten(table: pd.DataFrame) -> pd.DataFrame:
    """Where another method is better by more than is `SEEN`, the worst first."""
    return table[table["to_best"] > SEEN].sort_values("to_best", ascending=False)


def targets(found: pd.DataFrame, table: pd.DataFrame) -> Iterator[str]:
    """The numbers that were aimed at, one by one."""
    ours = found[found["method"] == DEFAULT].set_index(["problem", "epsilon"])
    squares = found[found["method"] == "least squares"].set_index("problem")["error"]
    yield "n = 100,000, d = 10: RMSE / least squares <= 1.01, coefficients, accuracy >= .890"
    limits = {0.1: 0.020, 0.5: 0.010, 1.0: 0.008}
    numbers, labels = (f"{w}, lognormal, n=100000, d=10" for w in ("numbers", "labels"))
    for epsilon, limit in limits.items():
        if (numbers, epsilon) in ours.index and (labels, epsilon) in ours.index:
            row, sign = ours.loc[(numbers, epsilon)], ours.loc[(labels, epsilon)]
            ratio = row["error"] / squares[numbers] if numbers in squares else math.nan
            yield (
                f"  eps {epsilon:<5g} {ratio:.4f}  {row['coefficient']:.4f} (<= {limit:g})  "
                f"{1 - sign['error']:.4f}  {row['seconds']:.2f} s, {sign['seconds']:.2f} s"
            )
    yield "n = 1,000, d = 100: RMSE < 13 and accuracy > .75 at .5; <= 1.05 x the constant at .1"
    for name in (DEFAULT, "privtail, ten slopes", "privtail, lasso"):
        yield from _wide(found[found["method"] == name], table, name)
    oracle = found[found["method"] == "AdaSSP, true bounds"].set_index(["problem", "epsilon"])
    yield "light tails: error / AdaSSP with the true bounds <= 1.10"
    for key, row in ours.iterrows():
        if key[0].startswith("numbers") and any(x in key[0] for x in LIGHT) and key in oracle.index:
            yield f"  {key[0]:34} eps {key[1]:<5g} {row['error'] / oracle.loc[key, 'error']:.3f}"
    yield "real tables, eps = 2: part of the gap closed >= .80; the same in MAE beside Huber"
    for row in table[table["epsilon"] == 2].itertuples():
        yield f"  {row.problem:34} {row.closed:6.2f}  {_number(closed_mae(found, row.problem))}"


def _wide(mine: pd.DataFrame, table: pd.DataFrame, name: str) -> Iterator[str]:
    constants = table.set_index(["problem", "epsilon"])["constant"]
    for row in mine[mine["problem"].str.endswith("n=1000, d=100")].itertuples():
        constant = constants.get((row.problem, row.epsilon), math.nan)
        yield (
            f"  {name:22} {row.problem.split(',')[0]:8} eps {row.epsilon:<5g} "
            f"{row.error:8.4g}  {row.error / constant:.3f} x the constant"
        )


def closed_mae(found: pd.DataFrame, problem: str, epsilon: float = 2) -> float:
    """Part of the gap in mean absolute error between the constant and Huber's fit."""
    mine = found[found["problem"] == problem].set_index(["method", "epsilon"])["mae"]
    keys = ((DEFAULT, epsilon), ("constant", math.inf), ("Huber", math.inf))
    ours, constant, huber = (float(mine.get(key, math.nan)) for key in keys)
    return part(ours, constant, huber)
