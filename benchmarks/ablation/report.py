"""Compares two runs, by group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.ablation.problems import GROUPS

TINY = 1e-4
"""Smaller errors, in those of the constant, count as this: their ratio says nothing."""

USELESS = 10.0
"""Larger errors count as this: no model is of use there, and it is chance by how much."""

CUTS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "all": lambda t: t["epsilon"] > 0,
    **{name: (lambda t, name=name: t["group"] == name) for name in GROUPS},
    "not tuned on": lambda t: t["group"].isin(["drawn", "packaged"]),
    "real": lambda t: (t["group"].isin(["packaged", "0/1 undeclared"])
                       | t["problem"].str.contains("Adult|Blog|News|Covertype|Winnipeg")),
    "d >= 50": lambda t: t["d"] >= 50,
    "shifts, units": lambda t: t["words"].str.contains("shift|scales 1e|units|target [+x]"),
    "heavy tails": lambda t: t["words"].str.contains(r"lognormal|t\(|Pareto|contaminated|x 100"),
    "labels": lambda t: t["task"].str.startswith("labels"),
    "n epsilon < 1000": lambda t: t["n"] * t["epsilon"] < 1000,
}  # fmt: skip


def paired(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Cells (problem, epsilon) that are in both: geometric means over the seeds, and ratios."""
    keys = ["group", "problem", "words", "task", "n", "d", "epsilon"]
    both = before.merge(after, on=[*keys, "seed"], suffixes=("_0", "_1"))
    for column in ("error", "log_loss", "seconds", "slopes"):
        most = USELESS if column in ("error", "log_loss") else None
        for side in "01":
            both[f"{column}_{side}"] = np.log(both[f"{column}_{side}"].clip(TINY, most))
    numbers = both.columns.difference([*keys, "seed", "variant_0", "variant_1"])
    cells = both.groupby(keys, as_index=False)[list(numbers)].mean()
    for column in ("error", "log_loss", "seconds", "slopes"):
        cells[[f"{column}_0", f"{column}_1"]] = np.exp(cells[[f"{column}_0", f"{column}_1"]])
        cells[column] = cells[f"{column}_1"] / cells[f"{column}_0"]
    return cells


def summary(cells: pd.DataFrame) -> pd.DataFrame:
    """A row by group; a ratio above 1 says that what came after is larger.

    "+-" is the standard error of the logarithm of the ratio, cells taken for independent.
    """
    rows = {}
    for name, holds in CUTS.items():
        some = cells[holds(cells)]
        if len(some):
            rows[name] = {
                "cells": len(some), "error": np.exp(np.log(some["error"]).mean()),
                "+-": np.log(some["error"]).std() / np.sqrt(len(some)),
                "> 5 % worse": (some["error"] > 1.05).sum(),
                "> 5 % better": (some["error"] < 1 / 1.05).sum(),
                "> 10 % worse": (some["error"] > 1.1).sum(),
                "above constant before": (some["error_0"] > 1.05).sum(),
                "after": (some["error_1"] > 1.05).sum(),
                "slopes": np.exp(np.log(some["slopes"]).mean()),
                "log loss": np.exp(np.log(some["log_loss"]).mean()),
                "rounds before": some["rounds_0"].mean(), "rounds after": some["rounds_1"].mean(),
                "seconds": some["seconds"].median(),
            }  # fmt: skip
    return pd.DataFrame(rows).T.astype({"cells": int})


def compare(before: Path, after: Path) -> None:
    """Print the summary and the ten cells that became worst."""
    cells = paired(pd.read_parquet(before), pd.read_parquet(after))
    if cells.empty:
        raise SystemExit(f"{before} and {after} have no problem in common.")
    print(summary(cells).to_string(float_format=lambda x: f"{x:.4g}"))
    print("\nworst ten: error before and after in those of the constant, their ratio")
    for cell in cells.nlargest(10, "error").itertuples():
        print(f"{cell.error_0:8.4f} {cell.error_1:8.4f} {cell.error:7.3f}  "
              f"epsilon={cell.epsilon:g}, {cell.group}: {cell.words}")  # fmt: skip
