"""Writes the tables of ``docs/ablation.md`` from the results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.ablation.report import paired, summary
from benchmarks.comparison import made

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ablation.md"
RESULTS = ROOT / "benchmarks" / "results" / "ablation.parquet"
COLUMNS = ("all", "not tuned on", "real", "d >= 50", "shifts, units", "heavy tails", "labels")
AS_IS = "as is"
ABOVE, ENOUGH = 1.05, 1000
TEXTS = ("variant", "group", "problem", "words", "task")
SINGLE = ("error", "log_loss", "seconds", "slopes")


def publish(parts: list[Path], numbers: list[Path]) -> None:
    """Replace the results of parts, or of numbers, if any are given, and fill the page."""
    rows = pd.read_parquet(RESULTS)
    for of, files in (("parts", parts), ("numbers", numbers)):
        if files:
            runs = [pd.read_parquet(file).assign(of=of) for file in files]
            rows = pd.concat([rows[rows["of"] != of], *runs], ignore_index=True)
    kinds = dict.fromkeys(("of", *TEXTS), "category") | dict.fromkeys(SINGLE, "float32")
    rows = rows.astype(kinds | {"rounds": "int16"})
    rows.to_parquet(RESULTS, compression="zstd", index=False)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


def filled(page: str, rows: pd.DataFrame) -> str:
    """The page with its parts between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` anew."""
    rows = rows.astype(dict.fromkeys(("of", *TEXTS), str))

    def make(name: str) -> Iterator[str]:
        of, part = MADE[name]
        some = rows[rows["of"] == of].drop(columns="of")
        runs = {name: some[some["variant"] == name] for name in some["variant"].unique()}
        return part(runs)

    return made.filled(page, make)


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
                if cut in found.index
                else ""
                for cut in COLUMNS
            ),
            _change(found.loc["labels", "log loss"]) if "labels" in found.index else "",
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


MADE = {
    "table": ("parts", _table), "numbers": ("numbers", _table), "untuned": ("parts", _untuned),
}  # fmt: skip
