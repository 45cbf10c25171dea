"""The picture of a fit: its coefficients beside their noise, and the plan's error against ε."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtail.errors import InvalidInput
from privtail.schema.encoding import sizes_of
from privtail.spelling import counted
from privtail.written import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privtail.model import Model

# Okabe and Ito's colours, which colour-blind people can tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#5A5A5A"

FORMATS = ("png", "pdf", "svg")
"""What the name of a picture may end in."""

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
    values, noise : (len(names),); noise is public, 0 where there is none, inf of a feature that
        is not used, and NaN where its size is not known.
    """

    names: Sequence[str]
    values: NDArray[np.float64]
    noise: NDArray[np.float64]

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Coefficients in standard deviations of their noise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = self.values / np.nan_to_num(self.noise)
        return np.where(self.values == 0, 0.0, ratios)

    @property
    def within(self) -> NDArray[np.bool_]:
        """Whether a coefficient could be noise alone."""
        return np.abs(self.ratios) < WITHIN

    def draw(self, axes: Axes) -> None:
        """One row per coefficient, strongest first, with the noise as a bar."""
        order = np.argsort(-np.abs(self.ratios), kind="stable")[:MOST_ROWS]
        strength = np.abs(self.ratios[order])
        far = float(np.max(strength, initial=10.0, where=np.isfinite(strength)))
        axes.set_xscale("function", functions=(np.arcsinh, np.sinh))
        axes.axvspan(-WITHIN, WITHIN, color=GREY, alpha=0.12, linewidth=0)
        axes.axvline(0, color=GREY, linewidth=0.8)
        for row, j in enumerate(order):
            colour = GREY if self.within[j] else BLUE
            x = float(np.clip(self.ratios[j], -far, far))
            bar = WITHIN if 0 < self.noise[j] < math.inf else 0.0
            axes.errorbar(
                x, row, xerr=bar, fmt="o", color=colour, markersize=4.5, linewidth=1.4,
                markerfacecolor="white" if self.within[j] else colour,
            )  # fmt: skip
            known = math.isfinite(self.noise[j])
            plus_minus = f" ± {_rounded(self.noise[j], 2)}" if known else ""
            axes.annotate(
                f"{_rounded(self.values[j], 3)}{plus_minus}", (1, row), (6, 0),
                xycoords=("axes fraction", "data"), textcoords="offset points",
                va="center", fontsize=8, color=colour,
            )  # fmt: skip
        axes.set_yticks(
            range(len(order)), [_plain(_short(self.names[j])) for j in order], fontsize=8
        )
        axes.set_ylim(len(order) - 0.4, -0.6)
        reach = max(10.0, 1.5 * (far + WITHIN))
        axes.set_xlim(-reach, reach)
        ticks = [t for t in (2, 10, 100, 1000, 10_000, 100_000) if t < reach]
        marks = [-t for t in reversed(ticks)] + [0, *ticks]
        axes.set_xticks(marks, [f"{t:,}" for t in marks], fontsize=8)
        axes.set_xlabel(
            "coefficient in standard deviations, at most, of its gradients' noise (bar: ± 2);\n"
            "clipping, early stopping and released scales, which bars do not show, may move it more"
        )
        axes.set_title(self._summary(len(order)), loc="left", fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)

    def _summary(self, shown: int) -> str:
        if np.isnan(self.noise).any():
            return "the size of the noise in a slope is not known: positions show the signs alone"
        if not self.noise.any():
            return "no noise was added: positions show the signs alone"
        count, lost = len(self.names), int(self.within.sum())
        text = f"{lost} of {counted(count, 'coefficient')} within noise (hollow)"
        return text if shown == count else f"{text}; the {shown} strongest are shown"


@dataclass(frozen=True)
class ErrorCurve:
    """Expected noise error of a plan against ε, from public numbers alone.

    Attributes
    ----------
    epsilons, errors : the curve.
    epsilon, error : of the fit; it is marked if its epsilon is finite.
    delta : of all of them.
    """

    epsilons: Sequence[float]
    errors: Sequence[float]
    epsilon: float
    error: float
    delta: float

    @classmethod
    def of(cls, estimator: Any, sizes: tuple[Any, ...]) -> ErrorCurve:
        """The curve of the estimator's plans for these sizes, around its own epsilon."""
        from sklearn.base import clone

        here = estimator.epsilon
        epsilons = sorted({*EPSILONS, here} - {math.inf})
        planned = clone(estimator)
        errors = {e: planned.set_params(epsilon=e).plan(*sizes).noise_error for e in epsilons}
        return cls(epsilons, list(errors.values()), here, errors.get(here, 0.0), estimator.delta)

    def draw(self, axes: Axes) -> None:
        """Both axes logarithmic; the fit is marked."""
        axes.set_xscale("log")
        axes.set_yscale("log")
        if not math.isfinite(self.error):
            alone = math.isinf(self.error)
            why = (
                "at this budget only a constant is fitted"
                if alone
                else "the plan's noise follows the data"
            )
            axes.set_title(why, loc="left", fontsize=10)
            axes.set_axis_off()
            return
        axes.plot(self.epsilons, self.errors, color=BLUE, linewidth=2)
        if math.isfinite(self.epsilon):
            axes.plot([self.epsilon], [self.error], marker="D", markersize=8, color=ORANGE)
            axes.annotate(
                f"ε = {self.epsilon:g}: {_rounded(self.error, 2)}", (self.epsilon, self.error),
                (10, 2), textcoords="offset points", color=ORANGE,
            )  # fmt: skip
        low, high = self.epsilons[0], self.epsilons[-1]
        ticks = [t for t in (0.01, 0.1, 0.5, 1, 2, 5, 10, 100) if low <= t <= high]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel(f"ε at δ = {self.delta:g} (more privacy to the left)")
        axes.set_ylabel("expected noise of a\nstandardized coefficient")
        axes.set_title("what the plan's noise costs", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)


def require_drawable(path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before work is done for it; None is no picture.

    Raises
    ------
    InvalidInput
        If its name does not say a known format, or Matplotlib is missing.
    """
    if path is None:
        return
    if _format(path) not in FORMATS:
        known = ", ".join(f".{one}" for one in FORMATS)
        raise InvalidInput(f"The name of a picture must end in one of {known}; {path} does not.")
    if importlib.util.find_spec("matplotlib") is None:
        raise InvalidInput("Pictures need Matplotlib: pip install 'privtail[plot]'")


def draw_fit(path: Path, estimator: Any, model: Model, *, overwrite: bool) -> None:
    """Coefficients and noise error of a fitted estimator."""
    problem = estimator.plan_.problem
    exposed = (True,) if problem.exposure else ()
    indicators = sizes_of(problem.categories, problem.indicators)
    sizes = problem.n, problem.d, indicators, *exposed
    outputs = [""] if len(model.coef) == 1 else [f" → {label}" for label in model.classes or ()]
    coefficients = Coefficients(
        names=[f"{feature}{output}" for output in outputs for feature in model.features],
        values=model.coef.ravel(),
        noise=np.broadcast_to(estimator.coef_noise_std_, model.coef.shape).ravel(),
    )
    title = f"{model.kind} model of {model.target!r}: {model.statement.headline}"
    with written_whole(path, overwrite=overwrite) as file:
        draw(file, title, ErrorCurve.of(estimator, sizes), coefficients, _format(path))


def draw_plan(
    path: Path, estimator: Any, sizes: tuple[Any, ...], *, overwrite: bool
) -> None:  # fmt: skip
    """Noise error of a plan; ``sizes`` are rows, features, and declared indicators."""
    rows, features, *_ = sizes
    title = f"{type(estimator).__name__}, {counted(rows, 'row')}, {counted(features, 'feature')}"
    with written_whole(path, overwrite=overwrite) as file:
        draw(file, title, ErrorCurve.of(estimator, sizes), None, _format(path))


def draw(
    file: IO[bytes], title: str, curve: ErrorCurve, coefficients: Coefficients | None, kind: str
) -> None:  # fmt: skip
    """Write the picture; without coefficients it is the curve alone."""
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
    figure.suptitle(_plain(title), x=0.01, ha="left", fontsize=12)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # drawn as boxes
        figure.savefig(file, format=kind, dpi=120)


def _format(path: Path) -> str:
    return path.suffix.lower().lstrip(".")


def _rounded(x: float, digits: int) -> str:
    return f"{float(f'{x:.{digits}g}'):g}"


def _short(name: str) -> str:
    """A name that fits beside its row: both ends of it, where it is long."""
    if len(name) <= _LONGEST_NAME:
        return name
    half = (_LONGEST_NAME - 1) // 2
    return f"{name[:half]}…{name[-half:]}"


def _plain(text: str) -> str:
    """Text in which Matplotlib finds no formula."""
    return text.replace("$", r"\$")
