"""The measured number that is nearest to sizes somebody asks about, for `privtail theory`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from experiments.papers import studies
from experiments.runner import RESULTS, read
from experiments.study import STATED, Metric, Study

SIZES = ["n", "d", "epsilon"]


def nearest(
    names: Iterable[str], line: str, quantity: str, asked: dict[str, float], results: Path = RESULTS
) -> str:
    """What a method reached at the stated epsilon, nearest in the logarithms of n, d and epsilon.

    Parameters
    ----------
    names : studies; a full grid comes before a quick one.
    line : the method, as their figures call it.
    quantity : a study's metric whose label this is; else its first.
    asked : n, d and epsilon.

    Returns
    -------
    str
        The median over repetitions with its sizes, or nothing without results.
    """
    found = []
    for name in names:
        study = studies()[name]
        full = read(study, results, full=True)
        rows = read(study, results) if full is None else full
        if rows is None:
            continue
        metric = _metric(study, quantity)
        rows = rows[(rows["variant"] == "") & (rows["method"] == line)]
        rows = rows[(rows["accounting"] == STATED) & (rows["metric"] == metric.name)]
        for (data, n, d, epsilon), part in rows.groupby(["dataset", *SIZES], observed=True):
            here = np.array([n, d, epsilon], dtype=float)
            away = float(np.abs(np.log(here / [asked[size] for size in SIZES])).sum())
            said = (
                f"{metric.label} {part['value'].median():.3g} at n = {n:,}, d = {d}, "
                f"ε = {epsilon:g} ({data}; {line} in {name})"
            )
            found.append((away, said))
    return min(found, key=lambda one: one[0])[1] if found else ""


def _metric(study: Study, quantity: str) -> Metric:
    return next((m for m in study.metrics if m.label == quantity), study.metrics[0])
