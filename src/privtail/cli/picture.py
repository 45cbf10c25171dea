"""The picture of a fit: its coefficients beside their noise, and the plan's error against ε."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtail.model import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privtail.model import Model

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#5A5A5A"

MOST_ROWS = 60
"""Coefficients in one picture; of more, those that stand out most."""

WITHIN = 2.0
"""A coefficient nearer to zero than this many standard deviations of its noise is within noise."""

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Where the error of a plan is computed."""

_LONGEST_NAME = 36


@dataclass(frozen=True)
class Coefficients:
    """Released coefficients and the standard deviation of the noise in each.

    Attributes
    ----------
    names : of the coefficients.
    values, noise : (len(names),); noise is public, and 0 where there is none.
    """

    names: Sequence[str]
    values: NDArray[np.float64]
    noise: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Coefficients in standard deviations of their noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self.values / self.noise
        return np.where(self.values == 0, 0.0, ratios)

    @property
    def within(self) -> NDArray[np.bool_]:
        """Whether a coefficient could be noise alone."""
        return np.abs(self.ratios) < WITHIN

    def draw_fit(path: Path, estimator: Any, model: Model, *, overwrite: bool) -> None:
    """Coefficients and noise error of a fitted estimator, as PNG."""
    problem = estimator.plan_.problem
    sizes = problem.n, problem.d, len(problem.indicators)
    outputs = [""] if len(model.coef) == 1 else [f" → {label}" for label in model.classes or ()]
    coefficients = Coefficients(
        names=[f"{feature}{output}" for output in outputs for feature in model.features],
        values=model.coef.ravel(),
        noise=np.atleast_2d(estimator.coef_noise_).ravel(),
    )
    title = f"{model.kind} model of {model.target!r}: {model.statement.headline}"
    with written_whole(path, overwrite=overwrite) as file:
        draw(file, title, ErrorCurve.of(estimator, sizes), coefficients)


def draw_plan(
    path: Path, estimator: Any, sizes: tuple[int, int, int], *, overwrite: bool
) -> None:  # fmt: skip
    """Noise error of a plan, as PNG; ``sizes`` are rows, features, and those that are 0 or 1."""
    rows, features, _ = sizes
    title = f"{type(estimator).__name__}, {rows:,} rows, {features:,} features"
    with written_whole(path, overwrite=overwrite) as file:
        draw(file, title, ErrorCurve.of(estimator, sizes), None)


def draw(file: IO[bytes], title: str, curve: ErrorCurve, coefficients: Coefficients | None) -> None:
    """Write the picture; without coefficients it is the curve alone."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if coefficients is None:
        figure: Any = Figure(figsize=(7, 4.4), layout="constrained")
        curve.draw(figure.add_subplot())
    else:
        rows = min(len(coefficients.names), MOST_ROWS)
        height = max(4.4, 1.5 + 0.21 * rows)
        figure = Figure(figsize=(13, height), layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=(7, 5), height_ratios=(4.3, height - 4.2))
        coefficients.draw(figure.add_subplot(grid[:, 0]))
        curve.draw(figure.add_subplot(grid[0, 1]))
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    FigureCanvasAgg(figure).print_png(file)


def _rounded(x: float, digits: int) -> str:
    return f"{float(f'{x:.{digits}g}'):g}"


def _short(name: str) -> str:
    """A name that fits beside its row: both ends of it, where it is long."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
