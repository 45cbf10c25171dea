"""A study as a figure: curves with bands, one panel per budget or data set, as vector graphics.

Colours are Okabe and Ito's; a method keeps its colour and marker in all panels. The accounting is
the style of the line: dotted as printed, solid at the stated epsilon. Bands are the quartiles over
repetitions, lines their medians.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable
from html import escape
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from experiments.study import (
    AS_PRINTED,
    AUTO,
    ITERATION,
    NO_PRIVACY,
    STATED,
    Accounting,
    Metric,
    Study,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#5F5F5F",
)  # fmt: skip
MARKERS = ("o", "^", "D", "v", "P", "X", "<")
OURS = ("#D55E00", "s")
"""Colour and marker of the default, the same in all figures."""
BASELINE = "#000000"
STYLES = {AS_PRINTED: ":", STATED: "-", AUTO: "-.", NO_PRIVACY: "--"}
SUFFIX = {AS_PRINTED: ", as printed", STATED: "", AUTO: "", NO_PRIVACY: ", not private"}
PANEL = (4.1, 3.3)
LEGEND = 3.4
"""Inches beside a single panel."""
COLUMNS = 3
MOST_LINES = 7
"""In a panel, unless more are asked for."""
LABEL = 30
"""Letters in a line of the label of an axis."""


def lines(study: Study, most: int = MOST_LINES) -> list[tuple[str, Accounting]]:
    """Methods and accountings that a panel shows.

    The default and fits without privacy come first, then methods at the stated epsilon, then as
    printed, until there are ``most``. Where budgets are overlaid it is the first method at the
    stated epsilon, with the fits without privacy.
    """
    if study.panels == "overlay":
        free = [m.name for m in study.methods if m.accountings == (NO_PRIVACY,)]
        return [(study.methods[0].name, STATED), *((name, NO_PRIVACY) for name in free)]
    ranks = {AUTO: 0, NO_PRIVACY: 0, STATED: 1, AS_PRINTED: 2}
    every = [(m.name, a) for m in study.methods for a in m.accountings]
    shown = sorted(every, key=lambda line: ranks[line[1]])[:most]
    return [line for line in every if line in shown]


def label(study: Study, metric: Metric, most: int = MOST_LINES) -> str:
    """What a figure shows, for those who cannot see it."""
    said = f"{study.title}. {metric.label} against {study.axis.label}"
    if len(study.grid(full=False).points) == 1:
        return f"{study.title}. {metric.label}"
    return f"{said}. Lines: {'; '.join(name(*line) for line in lines(study, most))}."


def draw(study: Study, frame: pd.DataFrame, metric: Metric, most: int = MOST_LINES) -> Figure:
    """The figure of one metric of a study; a panel has at most ``most`` lines."""
    from matplotlib.figure import Figure

    rows = frame[frame["metric"] == metric.name]
    if len(study.grid(full=False).points) == 1:
        return _dots(study, rows, metric)
    rows = rows[rows["variant"] == ""]
    shown = lines(study, most)
    kept = [pair in shown for pair in zip(rows["method"], rows["accounting"], strict=True)]
    rows = rows[kept]
    layers = _panels(study, rows)
    across = _columns(len(layers), rows["dataset"].nunique())
    down = math.ceil(len(layers) / across)
    room = (LEGEND, 0.0) if across == 1 else (0.0, 1.1)
    figure = Figure(
        figsize=(PANEL[0] * across + room[0], PANEL[1] * down + room[1]), layout="constrained"
    )
    axes = figure.subplots(down, across, squeeze=False, sharey=study.panels == "epsilon")
    looks = _looks(study)
    shared = _quartiles(rows) if study.panels == "epsilon" else None
    for place, (title, part) in zip(axes.flat, layers, strict=False):
        if study.panels == "overlay":
            _overlay(study, place, part)
        else:
            _panel(study, place, part, looks)
        _dress(study, place, part)
        _scale(place, metric, _quartiles(part) if shared is None else shared)
        place.set_title(title, fontsize=10)
    for place in axes.flat[len(layers) :]:
        place.set_axis_off()
    for place in axes[:, 0]:
        place.set_ylabel(textwrap.fill(metric.label, LABEL))
    _legend(figure, axes.flat, across)
    return figure


def _columns(panels: int, datasets: int) -> int:
    """Budgets beside each other where they are two or three; no row of one below a row of three."""
    budgets = panels // datasets
    if budgets in (2, 3):
        return budgets
    return 2 if panels in (4, 8) else min(COLUMNS, panels)


def _legend(figure: Figure, axes: Iterable[Axes], across: int) -> None:
    """One for all panels: below them, beside a single one."""
    handles: dict[str, Any] = {}
    for place in axes:
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles),
        loc="outside right center" if across == 1 else "outside lower center",
        ncols=1 if across == 1 else min(across + 1, len(handles)), fontsize=8, frameon=False,
        handlelength=3.2,
    )  # fmt: skip


def _dots(study: Study, rows: pd.DataFrame, metric: Metric) -> Figure:
    """A study of one x: a row for every variation, or for every method where nothing is varied.

    Dots are medians, whiskers quartiles; a hollow dot is as printed.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    variants = [v for v in dict.fromkeys(("", *rows["variant"])) if (rows["variant"] == v).any()]
    names = [m.name for m in study.methods]
    lines = [v or "as chosen" for v in variants] if len(variants) > 1 else names
    figure = Figure(figsize=(PANEL[0] + 2 + LEGEND, 1 + 0.34 * len(lines)), layout="constrained")
    place = figure.subplots()
    looks = _looks(study)
    ways = [(m, a) for m in study.methods for a in m.accountings]
    for variant, (index, (method, accounting)) in product(variants, enumerate(ways)):
        keep = (rows["method"] == method.name) & (rows["accounting"] == accounting)
        values = rows.loc[keep & (rows["variant"] == variant), "value"].dropna()
        if not len(values):
            continue
        shift = 0.6 * (index / max(1, len(ways) - 1) - 0.5) if len(variants) > 1 else 0.0
        line = variants.index(variant) if len(variants) > 1 else names.index(method.name)
        low, middle, high = values.quantile([0.25, 0.5, 0.75])
        colour, marker = looks[method.name]
        place.errorbar(
            middle, line + shift, xerr=[[middle - low], [high - middle]], color=colour,
            marker=marker, markersize=5, linestyle="none", linewidth=1.2,
            markerfacecolor="white" if accounting == AS_PRINTED else colour,
            label=None if variant else name(method.name, accounting),
        )  # fmt: skip
    if metric.log:
        place.set_xscale("log")
        place.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        place.xaxis.set_major_formatter("{x:g}")
        place.minorticks_off()
    place.set_yticks(range(len(lines)), lines)
    place.set_ylim(len(lines) - 0.5, -0.5)
    place.set_xlabel(metric.label)
    place.grid(visible=True, which="both", axis="x", linewidth=0.3, color="#DDDDDD")
    place.tick_params(which="both", labelsize=8)
    _legend(figure, [place], 1)
    return figure


def name(method: str, accounting: Accounting) -> str:
    """What a legend says."""
    said = accounting == NO_PRIVACY and method.startswith("no ")
    return method if said else method + SUFFIX[accounting]


def _panels(study: Study, rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """One panel per data set and budget, or per data set where epsilon is the axis."""
    found = []
    datasets = [d.name for d in study.data if (rows["dataset"] == d.name).any()]
    epsilons = sorted(e for e in rows["epsilon"].unique() if e < math.inf)
    split = study.panels == "epsilon" and study.axis.name != "epsilon"
    for dataset in datasets:
        here = rows[rows["dataset"] == dataset]
        said = dataset if len(datasets) > 1 else ""
        if not split:
            found += _by_budget(study, here, epsilons, said or dataset)
            continue
        for epsilon in epsilons:
            part = here[(here["epsilon"] == epsilon) | (here["epsilon"] == math.inf)]
            found.append((", ".join(x for x in (said, f"ε = {epsilon:g}") if x), part))
    return found


def _by_budget(
    study: Study, here: pd.DataFrame, epsilons: list[float], said: str
) -> list[tuple[str, pd.DataFrame]]:
    """One panel of a data set; several where several budgets would be drawn over each other."""
    if study.panels == "overlay" or study.axis.name == "epsilon" or len(epsilons) < 2:
        return [(said, here)]
    return [
        (f"{said}, ε = {e:g}", here[(here["epsilon"] == e) | (here["epsilon"] == math.inf)])
        for e in epsilons
    ]


def _looks(study: Study) -> dict[str, tuple[str, str]]:
    """Colour and marker of every method; baselines are black."""
    looks, private = {}, 0
    for index, method in enumerate(study.methods):
        if method.accountings == (NO_PRIVACY,):
            looks[method.name] = (BASELINE, MARKERS[(index + 3) % len(MARKERS)])
        elif method.accountings == (AUTO,):
            looks[method.name] = OURS
        else:
            looks[method.name] = (
                COLOURS[private % len(COLOURS)], MARKERS[private % len(MARKERS)],
            )  # fmt: skip
            private += 1
    return looks


def _overlay(study: Study, place: Axes, rows: pd.DataFrame) -> None:
    """A line for every budget, as some papers draw it."""
    spread = _quartiles(rows)
    for index, epsilon in enumerate(sorted(spread["epsilon"].unique())):
        mine = spread[spread["epsilon"] == epsilon].sort_values("x")
        kind = NO_PRIVACY if math.isinf(epsilon) else STATED
        colour = BASELINE if math.isinf(epsilon) else COLOURS[index % len(COLOURS)]
        said = "not private" if math.isinf(epsilon) else f"ε = {epsilon:g}"
        _line(study, place, mine, colour, MARKERS[index % len(MARKERS)], STYLES[kind], said)


def _panel(
    study: Study, place: Axes, rows: pd.DataFrame, looks: dict[str, tuple[str, str]]
) -> None:
    spread = _quartiles(rows)
    for method in study.methods:
        colour, marker = looks[method.name]
        for accounting in method.accountings:
            mine = spread[
                (spread["method"] == method.name) & (spread["accounting"] == accounting)
            ].sort_values("x")
            if len(mine):
                label = name(method.name, accounting)
                _line(study, place, mine, colour, marker, STYLES[accounting], label)
    _guide(study, place, rows, spread)


def _dress(study: Study, place: Axes, rows: pd.DataFrame) -> None:
    """Scale, ticks and grid of a panel."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if study.axis.log:
        place.set_xscale("log")
        points = np.unique(rows["x"][np.isfinite(rows["x"])])
        if 1 < len(points) <= 7:
            place.set_xticks(points, [_short(p) for p in points])
            place.minorticks_off()
    if study.axis.name == ITERATION and study.axis.log:
        place.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        place.xaxis.set_major_formatter("{x:g}")
        place.minorticks_off()
    elif study.axis.name == ITERATION:
        place.xaxis.set_major_locator(MaxNLocator(integer=True))
    place.set_xlabel(study.axis.label)
    place.grid(visible=True, which="both", linewidth=0.3, color="#DDDDDD")
    place.tick_params(which="both", labelsize=8)


def _scale(place: Axes, metric: Metric, spread: pd.DataFrame) -> None:
    """A logarithmic axis where the values ask for it; the same limits where panels share them."""
    values = spread["middle"].to_numpy(float)
    values = values[np.isfinite(values)]
    logarithmic = bool(
        metric.log and len(values) and values.min() > 0 and values.max() / values.min() > 4
    )
    if logarithmic:
        place.set_yscale("log")
        place.grid(visible=True, which="minor", axis="y", linewidth=0.2, color="#EEEEEE")
    place.set_ylim(*_limits(values, logarithmic=logarithmic))


def _limits(values: Any, *, logarithmic: bool) -> tuple[float | None, float | None]:
    """A curve that runs away does not flatten the others."""
    if not len(values):
        return None, None
    low, high = float(values.min()), float(values.max())
    middle = float(np.median(values))
    if logarithmic:
        return low / 1.6, min(high, middle * 1e4) * 1.6
    room = 0.08 * (min(high, middle + 20 * abs(middle)) - low) + 1e-12
    return low - room, min(high, middle + 20 * abs(middle)) + room


def _line(
    study: Study, place: Axes, mine: pd.DataFrame, colour: str, marker: str, style: str, label: str
) -> None:
    if not np.isfinite(mine["x"]).any():  # a fit that has no path, or no budget
        level = float(mine["middle"].iloc[0])
        place.plot(
            np.linspace(0, 1, 4), np.full(4, level), transform=place.get_yaxis_transform(),
            color=colour, marker=marker, markersize=4, linestyle=style, linewidth=1.4, label=label,
        )  # fmt: skip
        return
    place.fill_between(mine["x"], mine["low"], mine["high"], color=colour, alpha=0.15, linewidth=0)
    every = max(1, len(mine) // 6) if study.axis.name == ITERATION else 1
    place.plot(
        mine["x"], mine["middle"], color=colour, marker=marker, markersize=4, markevery=every,
        linestyle=style, linewidth=1.4, label=label,
    )  # fmt: skip


def _guide(study: Study, place: Axes, rows: pd.DataFrame, spread: pd.DataFrame) -> None:
    """Exponents of theorems, through the first point of the first method's last line."""
    first = study.methods[0]
    upper, least = (
        [bounds[name] for name in rows["dataset"].unique() if name in bounds][:1]
        for bounds in (study.guides, study.floors)
    )
    mine = spread[
        (spread["method"] == first.name) & (spread["accounting"] == first.accountings[-1])
    ].sort_values("x")
    if len(mine):
        x = mine["x"].to_numpy(float)
        labels = ("slope of the theorem", "slope of the lower bound")
        drawn = [(slopes[0], said, style) for slopes, said, style in
                 zip((upper, least), labels, ("-", ":"), strict=True) if slopes]  # fmt: skip
        if upper == least and drawn:
            drawn = [(upper[0], "slope of the theorem and of the lower bound", "-")]
        for slope, said, style in drawn:
            y = float(mine["middle"].iloc[0]) * (x / x[0]) ** slope
            place.plot(x, y, color="#888888", linewidth=0.9, linestyle=style, label=said)


def _quartiles(rows: pd.DataFrame) -> pd.DataFrame:
    grouped = rows.groupby(["method", "accounting", "epsilon", "x"], observed=True, dropna=False)[
        "value"
    ]
    found = pd.DataFrame(
        {"middle": grouped.median(), "low": grouped.quantile(0.25), "high": grouped.quantile(0.75)}
    )
    return found.reset_index()


def _short(number: float) -> str:
    """Tick labels: 100k for 100000."""
    if number >= 1e6:
        return f"{number / 1e6:g}M"
    if number >= 1e4:
        return f"{number / 1e3:g}k"
    return f"{number:.4g}" if number > 1 else f"{number:.2g}"


def svg(figure: Figure, name: str, said: str) -> str:
    """The figure as inline SVG, with ids of its own, a label that says it, without a date."""
    name = re.sub(r"[^a-z0-9]+", "-", name)
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif",
                         "font.sans-serif": ["DejaVu Sans"]}):  # fmt: skip
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    slim = _slim(written.getvalue(), name)
    return slim.replace("<svg", f'<svg role="img" aria-label="{escape(said)}"', 1)


def _slim(text: str, name: str) -> str:
    """What a page needs of a drawing: short ids that are its own, tenths of a point, no blanks."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<g id=\"[^\"]*\"", "<g", text)
    short: dict[str, str] = {}
    own = "i" + hashlib.sha256(name.encode()).hexdigest()[:6]

    def renamed(found: re.Match[str]) -> str:
        return found.group(1) + short.setdefault(found.group(2), f"{own}-{len(short)}")

    text = re.sub(r'(\bid="|xlink:href="#|url\(#)([^")]+)', renamed, text)
    text = re.sub(r'\bd="[^"]*"', lambda path: _rounded(path.group(0)), text)
    return re.sub(r"\s*\n\s*", "\n", _classed(text))


def _classed(text: str) -> str:
    """Styles that repeat, said once; equal ones have one name in all figures of a page."""
    counts = Counter(re.findall(r' style="([^"]*)"', text))
    names = {
        style: "s" + hashlib.sha256(style.encode()).hexdigest()[:6]
        for style, count in counts.items() if count > 3
    }  # fmt: skip

    def named(found: re.Match[str]) -> str:
        name = names.get(found.group(1))
        return found.group(0) if name is None else f' class="{name}"'

    rules = "".join(f".{name}{{{style}}}" for style, name in names.items())
    text = re.sub(r' style="([^"]*)"', named, text)
    return text.replace("</style>", f"{rules}</style>", 1)


def _rounded(path: str) -> str:
    short = re.sub(r"(\.\d)\d+", r"\1", path).replace("\n", "")
    return re.sub(r" ?([A-Za-z]) ", r"\1", short.replace(".0 ", " "))
