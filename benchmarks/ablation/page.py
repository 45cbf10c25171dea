"""Writes the table of ``docs/ablation.md`` from the results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.ablation.report import paired, summary
from benchmarks.ablation.variants import VARIANTS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ablation.md"
RESULTS = ROOT / "benchmarks" / "results" / "ablation.parquet"
COLUMNS = ("all", "not tuned on", "real", "d >= 50", "shifts, units", "heavy tails", "labels")
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
    """The page with its table made anew."""
    body = "\n".join(table(rows))
    pattern = r"(<!-- begin table -->\n).*?(\n<!-- end table -->)"
    return re.sub(pattern, lambda match: match[1] + body + match[2], page, flags=re.DOTALL)


def table(rows: pd.DataFrame) -> Iterator[str]:
    """A row by variant: changes beside "as is" in per cent, + is worse."""
    rows = rows.astype({"variant": str, "group": str, "problem": str, "words": str, "task": str})
    runs = dict(list(rows.groupby("variant")))
    head = ["variant", *COLUMNS, "log loss", "cells > 5 % worse / better",
            "> 5 % above the constant (before: after)", "rounds"]  # fmt: skip
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for name in VARIANTS:
        if name == "as is" or name not in runs:
            continue
        found = summary(paired(runs["as is"], runs[name]))
        whole = found.loc["all"]
        cells = [
            name,
            *(_change(found["error"].get(cut, np.nan)) for cut in COLUMNS),
            _change(found.loc["labels", "log loss"]),
            f"{whole['> 5 % worse']:.0f} / {whole['> 5 % better']:.0f} of {whole['cells']:.0f}",
            f"{whole['above constant before']:.0f} : {whole['after']:.0f}",
            f"{whole['rounds after']:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}" if np.isfinite(ratio) else ""
