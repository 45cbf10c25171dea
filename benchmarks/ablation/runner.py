"""Fits the default to every problem, resumably, with the same seeds in every run."""

from __future__ import annotations

import os
import re
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.ablation.problems import GROUPS
from benchmarks.ablation.variants import OTHER_SEEDS, changed
from benchmarks.drawn import Drawn
from privtail import linear_model

ESTIMATORS = {
    "squares": "DPLinearRegression", "huber": "DPHuberRegressor", "lad": "DPLADRegressor",
    "labels": "DPLogisticRegression", "counts": "DPPoissonRegressor",
}  # fmt: skip


def fitted(records: Drawn, epsilon: float, seed: int) -> dict[str, Any]:
    """What is measured of one fit."""
    labels = records.task.startswith("labels")
    options: dict[str, Any] = {
        "epsilon": epsilon, "delta": 1e-6, "noise": "simulated", "random_state": seed
    }  # fmt: skip
    if labels:
        options["classes"] = np.arange(float(records.task.split()[1])).tolist()
    elif records.task in ("huber", "counts"):
        options["alpha"] = 0.0
    model = getattr(linear_model, ESTIMATORS[records.task.split()[0]])(**options)
    begun = time.process_time()
    model.fit(records.X, records.y)
    row: dict[str, Any] = {
        "seconds": time.process_time() - begun, "n": records.n, "d": records.X.shape[1],
        "task": records.task, "rounds": sum(part.times for part in model.privacy_.plan),
        "constant": not np.any(model.coef_), "log_loss": np.nan, "slopes": np.nan,
    }  # fmt: skip
    row["error"] = records.error(model.predict(records.X_test)) / records.constant()
    if labels:
        y = records.y_test.astype(int)
        shares = np.bincount(records.y.astype(int), minlength=len(model.classes_)) / records.n
        told = model.predict_proba(records.X_test)[np.arange(len(y)), y]
        row["log_loss"] = _log_loss(told) / _log_loss(shares[y])
    elif getattr(records, "slopes", None) is not None:
        row["slopes"] = float(np.linalg.norm(np.ravel(model.coef_) - records.slopes))
    return row


def _log_loss(told: NDArray[np.float64]) -> float:
    """Of the probabilities that were told of what came."""
    return -float(np.mean(np.log(np.maximum(told, 1e-9))))


def run(
    out: Path, groups: list[str], *, every: int, named: str, seeds: int, variant: str
) -> None:  # fmt: skip
    """Fit what is missing in ``out``, which is written after every problem."""
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = pd.read_parquet(out).to_dict("records") if out.exists() else []
    there = {(r["group"], r["problem"], r["epsilon"], r["seed"]) for r in rows}
    begun, other = time.perf_counter(), 1_000 if variant == OTHER_SEEDS else 0
    for problem in (p for group in groups for p in list(GROUPS[group]())[::every]):
        cells = [
            (epsilon, seed) for epsilon in problem.epsilons for seed in range(seeds)
            if (problem.group, problem.name, epsilon, seed) not in there
        ]  # fmt: skip
        if not cells or not re.search(named, problem.name):
            continue
        records = problem.make()
        words = f"{problem.name}: {records}" if problem.group == "drawn" else problem.name
        key = {"variant": variant, "group": problem.group, "problem": problem.name, "words": words}
        with warnings.catch_warnings(), np.errstate(all="ignore"), changed(variant):
            warnings.simplefilter("ignore")
            rows += [
                key | {"epsilon": epsilon, "seed": seed} | fitted(records, epsilon, seed + other)
                for epsilon, seed in cells
            ]
        draft = out.with_suffix(f".{os.getpid()}")
        pd.DataFrame(rows).to_parquet(draft, compression="zstd", index=False)
        draft.replace(out)
        spent = time.perf_counter() - begun
        print(f"{spent:6.0f} s  {problem.group}: {words}", flush=True)
