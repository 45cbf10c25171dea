"""Writes the tables of ``docs/ablation.md`` from the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.ablation.report import paired, summary

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ablation.md"
RESULTS = ROOT / "benchmarks" / "results" / "ablation.parquet"
COLUMNS = ("all", "not tuned on", "real", "d >= 50", "shifts, units", "heavy tails", "labels")
AS_IS = "as is"
ABOVE, ENOUGH = 1.05, 1000
SINGLE = ("error", "log_loss", "seconds", "slopes")


def publish(runs: list[Path]) -> None:
    """Join runs of several variants into one file, if any are given, and fill the page."""
    if runs:
        rows = pd.concat([pd.read_parquet(run) for run in runs], ignore_index=True)
        words = dict.fromkeys(("variant", "group", "problem", "words", "task"), "category")
        rows = rows.astype({**words, **dict.fromkeys(SINGLE, "float32"), "rounds": "int16"})
        rows.to_parquet(RESULTS, compression="zstd", index=False)
    PAGE.write_text(
        filled(PAGE.read_text(encoding="utf-8"), pd.read_parquet(RESULTS)), encoding="utf-8"
    )


def filled(page: str, rows: pd.DataFrame) -> str:
    """The page with its parts between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` anew."""
    rows = rows.astype({"variant": str, "group": str, "problem": str, "words": str, "task": str})
    runs = {name: rows[rows["variant"] == name] for name in rows["variant"].unique()}

    def make(match: re.Match[str]) -> str:
        body = "\n".join(MADE[match["name"]](runs))
        return f"<!-- begin {match['name']} -->\n{body}\n<!-- end {match['name']} -->"

    pattern = r"<!-- begin (?P<name>[a-z]+) -->\n.*?<!-- end (?P=name) -->"
    return re.sub(pattern, make, page, flags=re.DOTALL)


def _table(runs: dict[str, pd.DataFrame]) -> Iterator[str]:
    """A row by variant: changes beside "as is" in per cent, + is worse."""
    head = ["variant", *COLUMNS, "log loss", "cells > 5 % worse / better",
            "> 5 % above the constant, before / after", "rounds"]  # fmt: skip
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for name, run in runs.items():
        if name == AS_IS:
            continue
        found = summary(paired(runs[AS_IS], run))
        whole = found.loc["all"]
        cells = [
            name,
            *(
                f"{_change(found.loc[cut, 'error'])} ± {100 * found.loc[cut, '+-']:.1f}"
                for cut in COLUMNS
            ),
            _change(found.loc["labels", "log loss"]),
            f"{whole['> 5 % worse']:.0f} / {whole['> 5 % better']:.0f} of {whole['cells']:.0f}",
            f"{whole['above constant before']:.0f} / {whole['after']:.0f}",
            f"{whole['rounds after']:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}"


def _untuned(runs: dict[str, pd.DataFrame]) -> Iterator[str]:
    """What the default reaches on problems that it was not tuned on."""
    cells = paired(runs[AS_IS], runs[AS_IS])
    head = (
        "group",
        "problems",
        "cells",
        "error, geometric mean",
        "> 5 % above the constant",
        "of these at n ε ≥ 1000",
    )
    yield f"| {' | '.join(head)} |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for group in ("drawn", "packaged"):
        some = cells[cells["group"] == group]
        above = some[some["error_0"] > ABOVE]
        enough = int((above["n"] * above["epsilon"] >= ENOUGH).sum())
        mean = float(np.exp(np.log(some["error_0"]).mean()))
        problems = some["problem"].nunique()
        yield f"| {group} | {problems} | {len(some)} | {mean:.3f} | {len(above)} | {enough} |"


MADE = {"table": _table, "untuned": _untuned}
