"""Test accuracy with and without privacy, measured and drawn for the demonstration.

All of it is computed from public data; on private rows every number here would cost budget.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from privtail.cli.picture import BLUE, EPSILONS, GREY, ORANGE
from privtail.errors import AccuracyWarning, PrivacyWarning
from privtail.model import Model, load
from privtail.trusted.tables import column_blocks, is_file

Columns = dict[str, NDArray[Any]]


@dataclass(kw_only=True)
class AcceptanceTest:
    """A model's training and test data, and what was measured on them.

    Attributes
    ----------
    train, test : columns, and their labels.
    categories : declared categories of the columns of text.
    open_accuracy : of scikit-learn's logistic regression on the same features, standardised.
    majority : of always answering the majority class of the training rows.
    curve : ε -> lowest, median and highest accuracy of the private fits.
    """

    classes: tuple[Any, ...]
    delta: float
    train: tuple[Columns, NDArray[Any]]
    test: tuple[Columns, NDArray[Any]]
    categories: dict[str, tuple[Any, ...]]
    open_accuracy: float
    majority: float
    repeats: int = 3
    curve: dict[float, tuple[float, float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Path, train: Path, test: Path) -> AcceptanceTest:
        """Read both tables as the model does, and fit without privacy."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        fitted = load(model)
        (rows, y), (test_rows, y_test) = (_columns(fitted, path) for path in (train, test))
        X, X_test = fitted.design(rows), fitted.design(test_rows)
        without = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky"))
        without.fit(X, y)
        labels, counts = np.unique(y, return_counts=True)
        return cls(
            classes=fitted.classes or (),
            delta=fitted.statement.delta,
            train=(rows, y),
            test=(test_rows, y_test),
            categories=fitted.categories,
            open_accuracy=float(without.score(X_test, y_test)),
            majority=float(np.mean(y_test == labels[counts.argmax()])),
        )

    @property
    def rows(self) -> int:
        """Number of test rows."""
        return len(self.test[1])

    def score_file(self, predictions: Path) -> float:
        """Accuracy of the predictions that a file holds for the test rows."""
        columns = read_columns(predictions, [], {"prediction": self.classes})
        return float(np.mean(columns["prediction"] == self.test[1]))

    def measure(self) -> None:
        """Fit ``repeats`` times for every ε, with simulated noise."""
        from privtail.linear_model import DPLogisticRegression

        scores: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
        runs = [(epsilon, seed) for seed in range(self.repeats) for epsilon in EPSILONS]
        for epsilon, seed in track(runs, "fitting", console=Console(stderr=True), transient=True):
            estimator = DPLogisticRegression(
                epsilon=epsilon,
                delta=self.delta,
                classes=self.classes,
                categories=self.categories,
                noise="simulated",
                random_state=seed,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)  # the curve shows the noise itself
                warnings.simplefilter("ignore", AccuracyWarning)
                estimator.fit(*self.train)
            scores[epsilon].append(float(estimator.score(*self.test)))
        self.curve = {
            epsilon: (min(found), float(np.median(found)), max(found))
            for epsilon, found in scores.items()
        }

    def draw(self, file: IO[bytes], private: float) -> None:
        """Write the picture as PNG; ``private`` is the accuracy of the model with exact noise."""
        from matplotlib.figure import Figure

        epsilons = list(self.curve)
        low, median, high = (100 * np.array(s) for s in zip(*self.curve.values(), strict=True))
        figure = Figure(figsize=(8, 4.8), layout="constrained")
        axes = figure.add_subplot(xscale="log")
        axes.fill_between(epsilons, low, high, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(epsilons, median, color=BLUE, marker="o", linewidth=2)
        axes.plot([1], [100 * private], marker="D", markersize=9, color=ORANGE, linestyle="none")
        for level, style, text in (
            (self.open_accuracy, "--", "without privacy (scikit-learn)"),
            (self.majority, ":", "always the majority class"),
        ):
            axes.axhline(100 * level, color=GREY, linestyle=style, linewidth=1.6)
            above = level > self.majority
            axes.annotate(
                f"{text}: {level:.1%}",
                (epsilons[0] if above else epsilons[-1], 100 * level),
                xytext=(0, 6 if above else -6),
                textcoords="offset points",
                ha="left" if above else "right",
                va="bottom" if above else "top",
                color=GREY,
            )
        axes.annotate(
            f"model.json, exact noise: {private:.1%}", (1, 100 * private), color=ORANGE,
            xytext=(10, -22), textcoords="offset points",
        )  # fmt: skip
        axes.annotate(
            f"private, simulated noise:\nmedian and range of {self.repeats} fits",
            (epsilons[3], median[3]), color=BLUE, xytext=(4, -30), textcoords="offset points",
            va="top",
        )  # fmt: skip
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_xlabel(f"ε at δ = {self.delta:g} (more privacy to the left)")
        axes.set_ylabel("test accuracy, %")
        axes.set_title(
            f"Private logistic regression on Adult, fitted on {len(self.train[1]):,} rows",
            loc="left",
        )
        span = 100 * (self.open_accuracy - self.majority)
        axes.set_ylim(100 * self.majority - 0.15 * span, 100 * self.open_accuracy + 0.15 * span)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(file, format="png", dpi=160)


def _columns(model: Model, path: Path) -> tuple[Columns, NDArray[Any]]:
    """Feature columns and labels of a table."""
    labels = {**model.categories, model.target: model.classes}
    columns = read_columns(path, model.numeric, labels)
    target = columns.pop(model.target)
    return {column.name: columns[column.name] for column in model.columns}, target.astype(str)


def read_columns(
    path: Any, numbers: Sequence[str], labels: Mapping[str, Any] | None = None
) -> Columns:
    """Whole columns of a file, or of its path: numbers as doubles, labels as objects."""
    from privtail.trusted.files import TableFile

    file = path if is_file(path) else TableFile(path)
    blocks = list(column_blocks(file, numbers, labels or {}))
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in numbers}
    for name in labels or ():
        cells = [np.array(b[name].values, object)[b[name].positions] for b in blocks]
        columns[name] = np.concatenate(cells)
    return columns
