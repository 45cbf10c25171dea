"""Error against epsilon, one panel per problem, with the constant and the fit without privacy.

Colours are Okabe and Ito's, a method keeps its colour and marker everywhere. The nine published
algorithms are drawn as one line, the best of them at every budget: a user would have to know which.
Dotted lines with hollow markers are methods whose bounds or steps were chosen by their errors on
the test rows, beside the same methods with guessed ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.comparison.methods import DEFAULT
from benchmarks.comparison.problems import Problem
from benchmarks.comparison.report import reference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (3.5, 2.7)
ACROSS = 3
BEYOND = 2.5
"""Others leave a panel at so many times the constant, or earlier; the default is always in it.

A hollow triangle at the upper edge marks each error that is beyond it.
"""

PUBLISHED = "best published algorithm of nine"


@dataclass(frozen=True)
class Look:
    """Of a line."""

    colour: str
    marker: str
    width: float = 1.2
    line: str = "-"
    face: str | None = None


LOOKS = {
    DEFAULT: Look("#0072B2", "o", 2.4),
    "privtail, ten slopes": Look("#56B4E9", "s"),
    PUBLISHED: Look("#D55E00", "^"),
    "Opacus": Look("#009E73", "D"),
    "JAX-Privacy": Look("#332288", "*"),
    "diffprivlib": Look("#CC79A7", "v"),
    "DP-EBM": Look("#8C564B", "P"),
    "clipped descent": Look("#E69F00", "X"),
    "AdaSSP": Look("#5F5F5F", "<"),
    **{
        name: Look(colour, marker, 1.0, ":", "white")
        for name, colour, marker in (
            ("Opacus, best", "#009E73", "D"),
            ("JAX-Privacy, best", "#332288", "*"),
            ("diffprivlib, best bounds", "#CC79A7", "v"),
            ("DP-EBM, best bounds", "#8C564B", "P"),
            ("clipped descent, best", "#E69F00", "X"),
            ("AdaSSP, best bounds", "#5F5F5F", "<"),
        )
    },
}


def lines(problem: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Name, and error, low and high by epsilon, of all that is drawn, of one problem's medians."""
    private = problem[np.isfinite(problem["epsilon"])]
    for name in LOOKS:
        kept = private[private["method"] == name]
        if name == PUBLISHED:
            papers = private[(private["kind"] == "paper") & np.isfinite(private["error"])]
            kept = papers.loc[papers.groupby("epsilon")["error"].idxmin()]
        if len(kept):
            yield name, kept.set_index("epsilon")[["error", "low", "high"]].sort_index()


def draw(found: pd.DataFrame, shown: Sequence[Problem]) -> Figure:
    """A panel per problem."""
    from matplotlib.figure import Figure

    down = math.ceil(len(shown) / ACROSS)
    size = (PANEL[0] * ACROSS, PANEL[1] * down + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, ACROSS, squeeze=False)
    for place, problem in zip(axes.flat, shown, strict=False):
        _panel(place, problem, found[found["problem"] == problem.name])
    for place in axes.flat[len(shown) :]:
        place.set_axis_off()
    labels: dict[Any, Any] = {}
    for place in axes.flat:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            labels.setdefault(label, handle)
    order = [*LOOKS, "constant", "without privacy"]
    names = sorted(labels, key=order.index)
    figure.legend(
        [labels[n] for n in names], names, loc="outside lower center", ncols=4, fontsize=8,
        frameon=False, handlelength=4,
    )  # fmt: skip
    return figure


def _panel(place: Axes, problem: Problem, mine: pd.DataFrame) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    constant = float(mine[mine["method"] == "constant"]["error"].iloc[0])
    bound = reference(mine)
    ours = mine[mine["method"] == DEFAULT]["error"]
    lowest, highest = min(bound or constant, constant), max([bound, constant, *ours]) * 1.02
    drawn = list(lines(mine))
    for name, found in reversed(drawn):
        look, inside = LOOKS[name], found[found["error"] <= 100 * BEYOND * constant]
        error = inside["error"]
        lowest = min([lowest, *error[error > 0]])
        half = np.array([error - inside["low"], inside["high"] - error]).clip(0)
        place.errorbar(
            error.index, error, half, color=look.colour, marker=look.marker, markersize=4,
            linewidth=look.width, linestyle=look.line, markerfacecolor=look.face or look.colour,
            elinewidth=0.6, label=name,
        )  # fmt: skip
    place.axhline(constant, color="black", linestyle=":", linewidth=1.2, label="constant")
    place.axhline(bound, color="black", linestyle="--", linewidth=1.2, label="without privacy")
    place.set_xscale("log")
    place.set_xticks(problem.epsilons, [f"{e:g}" for e in problem.epsilons])
    place.minorticks_off()
    top = BEYOND * constant if not problem.classes else min(1.0, 1.3 * constant)
    scale = "log" if max(top, highest) / max(lowest, 1e-12) > 6 else "not from 0"
    if scale == "log":
        place.set_yscale("log")
        place.set_ylim(lowest / 1.2, max(top, highest))
        place.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        place.yaxis.set_major_formatter("{x:g}")
        place.yaxis.set_minor_formatter(NullFormatter())
    else:
        top = min(top, constant + 0.8 * (constant - lowest) + 0.05 * constant)
        top = max(top, highest)
        place.set_ylim(lowest - 0.08 * (top - lowest), top)
    _mark(place, drawn)
    place.set_title(problem.name, fontsize=8)
    place.set_xlabel("ε", fontsize=9)
    place.set_ylabel(f"{problem.metric} ({scale})", fontsize=8)
    place.grid(visible=True, linewidth=0.3, color="#DDDDDD")
    place.tick_params(labelsize=8)


def _mark(place: Axes, drawn: Sequence[tuple[str, pd.DataFrame]]) -> None:
    """A triangle at the upper edge for every error that is beyond it, side by side."""
    from matplotlib.transforms import ScaledTranslation

    top = place.get_ylim()[1]
    for i, (name, found) in enumerate(drawn):
        beyond = found.index[found["error"] > top]
        across = ScaledTranslation((i - len(drawn) / 2) / 30, 0, place.figure.dpi_scale_trans)
        place.plot(
            beyond, np.ones(len(beyond)), "^", color=LOOKS[name].colour, markerfacecolor="none",
            markersize=4, clip_on=False, in_layout=False,
            transform=place.get_xaxis_transform() + across,
        )  # fmt: skip
