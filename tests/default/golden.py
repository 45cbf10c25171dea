"""Seeded simulated fits of the defaults, and the file of what they released and found.

    python -m tests.default.golden --write

makes ``golden.json`` anew. A change of behaviour that is wanted does so in its own commit, which
says which fits changed and why; a move or a new name changes no number.

Of every fit the file holds the plan and the releases of the statement as text, and the parameters.
Numbers of releases have twelve digits, and parameters are compared to seven: the last bits of
``log``, ``exp`` and of LAPACK's decompositions differ between machines.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from privtail import linear_model as models
from privtail import open_table
from privtail.domains import L2Ball
from privtail.trusted.events import Event, Round

FILE = Path(__file__).with_name("golden.json")
CLOSE = 1e-7
"""Parameters are the same up to this part of them."""

SHARE = re.compile(r", [.0-9]+% of the cost(?=:$)")
"""What a plan prints beside a stage. It follows from the releases."""

WIDE = {
    "selection": ("squares", "lasso", "huber", "few slopes"),
    "short": ("squares", "quantile", "labels 2", "labels 3", "few slopes, labels"),
}
"""Where there are many features, these estimators; else all of them."""

JOBS = ["clerk", "cook", "nurse"]


class Regime(NamedTuple):
    """Public numbers that decide how the default goes about it."""

    n: int
    d: int
    epsilon: float


REGIMES = {
    "fine": Regime(700, 3, 8.0), "noisy": Regime(700, 3, 1.0), "constant": Regime(400, 3, 0.02),
    "selection": Regime(900, 60, 2.0), "short": Regime(900, 60, 1.0),
}  # fmt: skip

ESTIMATORS: dict[str, Callable[..., Any]] = {
    "squares": models.DPLinearRegression,
    "ridge": partial(models.DPRidge, alpha=0.1),
    "lasso": partial(models.DPLasso, alpha=0.05),
    "elastic net": partial(models.DPElasticNet, alpha=0.05),
    "ball": partial(models.DPGeneralizedLinearEstimator, domain=L2Ball(radius=1.0)),
    "huber": models.DPHuberRegressor,
    "absolute": models.DPLADRegressor,
    "quantile": partial(models.DPQuantileRegressor, quantile=0.9),
    "few slopes": partial(models.DPSparseRegressor, sparsity=2),
    "counts": models.DPPoissonRegressor,
    "labels 2": partial(models.DPLogisticRegression, classes=[0, 1]),
    "labels 3": partial(models.DPLogisticRegression, classes=[0, 1, 2]),
    "few slopes, labels": partial(models.DPSparseClassifier, sparsity=2, classes=[0, 1]),
}


def records(task: str, n: int, d: int) -> tuple[Any, Any]:
    """Features of heavy tails, in units of their own, and a target that three of them tell."""
    rng = np.random.default_rng(n + d)
    Z = rng.standard_t(3, (n, d))
    X = Z * np.resize([1.0, 1e3, 1e-3], d) + np.resize([0.0, 10.0, 1.0], d)
    score = Z[:, :3] @ [1.0, -0.7, 0.4]
    if task == "counts":
        return X, rng.poisson(np.exp(np.clip(score / 2, -3, 3) + 1)).astype(float)
    if "labels" in task:
        y = (score + rng.logistic(size=n) > 0).astype(int)
        return X, y + (score + rng.logistic(size=n) > 2) if task.endswith("3") else y
    return X, 20 + score + 0.5 * rng.standard_t(3, n)


def of_arrays(task: str, regime: Regime, **options: Any) -> tuple[Any, str]:
    """The model, and the plan as text."""
    X, y = records(task, regime.n, regime.d)
    model = _model(task, regime.epsilon, **options)
    return model.fit(X, y), str(model.plan(*X.shape))


def of_sparse(task: str) -> tuple[Any, str]:
    """Features of which most are zero."""
    regime = REGIMES["fine"]
    X, y = records(task, regime.n, regime.d)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.4, X, 0.0)
    model = _model(task, regime.epsilon)
    return model.fit(csr_array(X), y), str(model.plan(*X.shape))


def of_persons(task: str) -> tuple[Any, str]:
    """Two rows of a person count."""
    regime = REGIMES["fine"]
    X, y = records(task, regime.n, regime.d)
    model = _model(task, regime.epsilon, max_rows=2)
    return model.fit(X, y, groups=np.arange(len(y)) // 3), str(model.plan(*X.shape))


def of_a_table(task: str, kind: str) -> tuple[Any, str]:
    """A frame or a file with categories and gaps."""
    regime = REGIMES["fine"]
    X, y = records(task, regime.n, regime.d)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.loc[::50, "b"] = np.nan
    frame["job"] = np.resize(JOBS, len(y))
    model = _model(task, regime.epsilon, categories={"job": JOBS})
    plan = str(model.plan(len(y), X.shape[1] + len(JOBS), len(JOBS)))
    if kind == "frame":
        return model.fit(frame, y), plan
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"records.{kind}"
        frame["y"] = y
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        return model.fit(open_table(path, categories={"job": JOBS}), "y"), plan


def _model(task: str, epsilon: float, **options: Any) -> Any:
    options = {"delta": 1e-6, "noise": "simulated", "random_state": 7} | options
    return ESTIMATORS[task](epsilon=epsilon, **options)


FITS: dict[str, Callable[[], tuple[Any, str]]] = {
    **{
        f"{task}, {name}": partial(of_arrays, task, regime)
        for name, regime in REGIMES.items()
        for task in WIDE.get(name, ESTIMATORS)
    },
    **{f"{task}, sparse": partial(of_sparse, task) for task in ("squares", "labels 2", "counts")},
    **{f"{task}, persons": partial(of_persons, task) for task in ("squares", "labels 2", "counts")},
    "squares, frame": partial(of_a_table, "squares", "frame"),
    "squares, CSV": partial(of_a_table, "squares", "csv"),
    "labels 3, Parquet": partial(of_a_table, "labels 3", "parquet"),
    "squares, zero-out": partial(
        of_arrays, "squares", REGIMES["noisy"], neighbours="zero_out", count_invalid=0.02
    ),
    "squares, through the origin": partial(
        of_arrays, "squares", REGIMES["noisy"], fit_intercept=False
    ),
    "huber, heteroscedastic": partial(of_arrays, "huber", REGIMES["fine"], heteroscedastic=True),
    "labels 2, undeclared": partial(
        of_arrays, "labels 2", REGIMES["fine"], classes=None, class_weight="balanced"
    ),
}


def taken(name: str) -> dict[str, Any]:
    """What is kept of one fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, plan = FITS[name]()
    return {
        "plan": [SHARE.sub("", line) for line in plan.splitlines()],
        "releases": [line for part in model.privacy_.plan for line in _round(part)],
        "coef": _rounded(model.coef_),
        "intercept": _rounded(model.intercept_),
    }


def _round(part: Round) -> Iterator[str]:
    yield f"{part.times} x {part.stage}, {part.sampling}"
    for event in part.events:
        yield "  " + ", ".join(f"{name} {value}" for name, value in _fields(event))


def _fields(event: Event) -> Iterator[tuple[str, Any]]:
    """What differs from one release to another."""
    usual = {"picks": 1, "one_signed": False, "trials": 1, "recipe": ()}
    for name in event.__dataclass_fields__:
        value = getattr(event, name)
        if value != usual.get(name, 0.0):
            yield name, f"{value:.12g}" if isinstance(value, float) else value


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.10g}") for value in np.ravel(values)]


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Names of what is not the same."""
    found = [part for part in ("plan", "releases") if old[part] != new[part]]
    for part in ("coef", "intercept"):
        a, b = np.array(old[part]), np.array(new[part])
        least = CLOSE * 1e-3 * np.abs(a).max(initial=0.0)
        if a.shape != b.shape or not np.allclose(a, b, rtol=CLOSE, atol=least):
            found.append(part)
    return found


def main() -> None:
    """Print what changed; with --write make the file anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="make golden.json anew")
    asked = parser.parse_args()
    old = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    new = {name: taken(name) for name in FITS}
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            print(f"{name}: {'gone' if name in old else 'new'}")  # noqa: T201
        elif changed := differences(old[name], new[name]):
            print(f"{name}: {', '.join(changed)}")  # noqa: T201
    if asked.write:
        FILE.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
