"""Writes the figures and every number of ``docs/which-method.md`` from the results.

The page is written by hand but for the parts between ``<!-- begin NAME -->`` and
``<!-- end NAME -->``, which are made here; a test compares them with the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from benchmarks.comparison import made, report
from benchmarks.comparison.figures import draw
from benchmarks.comparison.methods import DEFAULT, METHODS, RANKED
from benchmarks.comparison.problems import Problem, problems
from experiments.figures import svg

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "which-method.md"
FIGURES = ROOT / "docs" / "figures"
FAMILIES: dict[str, Callable[[Problem], bool]] = {
    "lognormal-numbers": lambda p: p.group == "lognormal" and not p.classes,
    "lognormal-labels": lambda p: p.group == "lognormal" and p.classes > 0,
    "laws": lambda p: p.group in ("laws", "shifts") and not p.classes,
    "laws-labels": lambda p: p.group == "laws" and p.classes > 0,
    "real": lambda p: p.group == "real",
}

TIGHT = {
    "diffprivlib": "diffprivlib, best bounds", "DP-EBM": "DP-EBM, best bounds",
    "AdaSSP": "AdaSSP, best bounds", "Opacus": "Opacus, best", "JAX-Privacy": "JAX-Privacy, best",
    "clipped descent": "clipped descent, best",
}  # fmt: skip
"""Methods, and the same with bounds or a step chosen by their errors on the test rows."""


def publish(results: Path) -> None:
    """The figures, then the page."""
    found = report.medians(results)
    there = set(found[found["method"] == "constant"]["problem"])
    FIGURES.mkdir(exist_ok=True)
    for name, belongs in FAMILIES.items():
        shown = [p for p in problems() if belongs(p) and p.name in there]
        if shown:
            said = f"Errors against epsilon, {len(shown)} problems: {name}"
            drawn = svg(draw(found, shown), name, said)
            (FIGURES / f"{name}.svg").write_text(drawn, encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


def filled(page: str, found: pd.DataFrame) -> str:
    """The page with its made parts made anew.

    Raises
    ------
    KeyError
        For a part that nobody makes.
    """
    return made.filled(page, lambda name: PARTS[name](found))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*cells: str) -> Iterator[str]:
    yield _row(*cells)
    yield _row(*("---" for _ in cells))


def _counts(found: pd.DataFrame) -> Iterator[str]:
    table = report.standings(found)
    near, first = int(report.close(table).sum()), int((table["rank"] == 1).sum())
    worst = table.loc[table["to_constant"].idxmax()]
    above = int((table["to_constant"] > report.CLOSE).sum())
    runs = found[found["method"] == DEFAULT]["runs"]
    repeated = f"{runs.min()}" if runs.min() == runs.max() else f"{runs.min()} to {runs.max()}"
    yield (
        f"On {len(table)} pairs of a problem and a budget ({table['problem'].nunique()} problems) "
        f"the default is first on {first}, first or within 5 % of the best on {near} "
        f"({near / len(table):.0%}). It is more than 5 % worse than the constant on {above}; the "
        f"worst is {worst['to_constant']:.2f} times ({worst['problem']}, "
        f"ε = {worst['epsilon']:g}). Repetitions of the default behind these numbers: {repeated}."
    )


def _worst(found: pd.DataFrame) -> Iterator[str]:
    """Of every method the worst error over the constant: what a wrong choice costs."""
    yield from _head("method", "median error / constant", "worst error / constant",
                     "> 5 % above the constant", "refused")  # fmt: skip
    fixed = found[found["method"] == "constant"].set_index("problem")["error"]
    for method in METHODS:
        mine = found[(found["method"] == method.name) & (found["kind"] != "not private")]
        if len(mine) and method.kind != "oracle":
            fits = mine[~mine["refused"]]
            ratio = fits["error"] / fits["problem"].map(fixed)
            above = f"{int((ratio > report.CLOSE).sum())} of {len(ratio)}"
            yield _row(method.name, f"{ratio.median():.3g}", f"{ratio.max():.3g}", above,
                       int(mine["refused"].sum()) or "")  # fmt: skip


def _tight(found: pd.DataFrame) -> Iterator[str]:
    """Methods with the bounds or the step of a user, and with those that suit the test rows."""
    yield from _head("method", "pairs", "as a user could set it", "best for the test rows",
                     "privtail's default", "best setting > 2 % below the default")  # fmt: skip
    errors = found.pivot_table(index=["problem", "epsilon"], columns="method", values="error")
    fixed = found[found["method"] == "constant"].set_index("problem")["error"]
    for name, best in TIGHT.items():
        if best in errors:
            mine = errors[[name, best, DEFAULT]].dropna(subset=[best])
            ratios = mine.div(mine.index.get_level_values("problem").map(fixed), axis=0).median()
            below = int((report.SEEN * mine[best] < mine[DEFAULT]).sum())
            yield _row(name, len(mine), *(f"{x:.3g}" for x in ratios), f"{below} of {len(mine)}")


def _beaten(found: pd.DataFrame) -> Iterator[str]:
    table = report.beaten(report.standings(found))
    yield from _head("problem", "ε", "best method", "its error", "the default's", "ratio",
                     "constant")  # fmt: skip
    for row in table.itertuples():
        yield _row(row.problem, f"{row.epsilon:g}", row.best, f"{row.best_error:.4g}",
                   f"{row.default:.4g}", f"{row.to_best:.2f}", f"{row.constant:.4g}")  # fmt: skip


def _few(found: pd.DataFrame) -> Iterator[str]:
    """The estimators with few slopes beside the default."""
    names = [m.name for m in METHODS if m.kind == "sparse"]
    yield from _head("problem", "ε", "default", *names, "constant")
    fixed = found[found["method"] == "constant"].set_index("problem")["error"]
    errors = found.pivot_table(
        index=["problem", "epsilon"], columns="method", values="error", sort=False
    )
    wide = errors[errors[names[0]].notna()] if names[0] in errors else errors.iloc[:0]
    places = {problem: i for i, problem in enumerate(wide.index.unique("problem"))}
    rows = sorted(wide.iterrows(), key=lambda cell: (places[cell[0][0]], cell[0][1]))
    for (problem, epsilon), row in rows:
        cells = [f"{row[n]:.4g}" if row.get(n) == row.get(n) else "" for n in (DEFAULT, *names)]
        yield _row(problem, f"{epsilon:g}", *cells, f"{fixed[problem]:.4g}")


def _winners(found: pd.DataFrame) -> Iterator[str]:
    """How often each ranked method is the best or within five per cent of it."""
    ranked = found[found["kind"].isin(RANKED)]
    best = ranked.groupby(["problem", "epsilon"])["error"].transform("min")
    near = ranked[ranked["error"] <= report.CLOSE * best]
    shares = near["method"].value_counts() / ranked["method"].value_counts()
    yield from _head("method", "first or within 5 %")
    for name, share in shares.sort_values(ascending=False).dropna().items():
        yield _row(name, f"{share:.0%}")


def _large(found: pd.DataFrame) -> Iterator[str]:
    """The default on 100,000 lognormal records."""
    ours = found[found["method"] == DEFAULT].set_index(["problem", "epsilon"])
    squares = found[found["method"] == "least squares"].set_index("problem")["error"]
    numbers, labels = (f"{w}, lognormal, n=100000, d=10" for w in ("numbers", "labels"))
    yield from _head("ε", "RMSE / least squares", "error of the slopes", "share of right labels",
                     "seconds")  # fmt: skip
    for (problem, epsilon), row in ours.iterrows():
        if problem == numbers and (labels, epsilon) in ours.index:
            sign = ours.loc[(labels, epsilon)]
            yield _row(
                f"{epsilon:g}", f"{row['error'] / squares.get(numbers, math.nan):.4f}",
                f"{row['coefficient']:.4f}", f"{1 - sign['error']:.4f}",
                f"{row['seconds']:.2f}, {sign['seconds']:.2f}",
            )  # fmt: skip


def _gap(found: pd.DataFrame) -> Iterator[str]:
    """Parts of the gaps on real tables."""
    table = report.standings(found)
    table = table[table["problem"].isin([p.name for p in problems() if p.group == "real"])]
    yield from _head("table", "ε", "default / constant", "gap closed", "gap closed, MAE")
    for row in table[table["epsilon"].isin([1, 2])].itertuples():
        mae = report.closed_mae(found, row.problem, row.epsilon)
        gaps = ("" if math.isnan(x) else f"{x:.2f}" for x in (row.closed, mae))
        yield _row(row.problem, f"{row.epsilon:g}", f"{row.to_constant:.3f}", *gaps)


PARTS: dict[str, Callable[[pd.DataFrame], Iterator[str]]] = {
    "counts": _counts,
    "winners": _winners,
    "worst": _worst,
    "tight": _tight,
    "beaten": _beaten,
    "few": _few,
    "large": _large,
    "gap": _gap,
}
