"""Pictures of a report as inline SVG: intervals, the budget, curves. Colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from privtail.reporting.contents import Row, shown

_ROW, _LEFT, _WIDTH, _RIGHT = 26, 220, 720, 100


def intervals(rows: Sequence[Row], title: str, *, zero: bool) -> str:
    """A line for each number, from end to end, with a dot at the value; one scale for all."""
    known = [x for row in rows for x in (row.value, row.low, row.high) if x is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    if zero:
        least, most = min(least, 0.0), max(most, 0.0)
    if least == most:
        least, most = least - 1, most + 1
    span, wide = most - least, _WIDTH - _LEFT - _RIGHT

    def at(x: float) -> float:
        return _LEFT + 10 + (wide - 20) * (x - least) / span

    parts = []
    height = _ROW * len(rows) + 34
    if zero:
        parts.append(f'<line class="axis" x1="{at(0):.1f}" x2="{at(0):.1f}" y1="4" '
                     f'y2="{height - 30}"/>')  # fmt: skip
    for i, row in enumerate(rows):
        y = _ROW * i + 18
        parts.append(f'<text x="{_LEFT}" y="{y + 4}" text-anchor="end">{_short(row.name)}</text>')
        if row.value is None:
            parts.append(f'<text class="soft" x="{_LEFT + 10}" y="{y + 4}">not known</text>')
            continue
        low, high = (
            (least if row.low is None else row.low),
            (most if row.high is None else row.high),
        )
        open_ = "" if row.low is not None and row.high is not None else ' stroke-dasharray="4 4"'
        if not row.base:
            parts.append(f'<line class="bar" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y}" '
                         f'y2="{y}"{open_}/>')  # fmt: skip
        parts.append(f'<circle class="dot" cx="{at(row.value):.1f}" cy="{y}" r="4.5"/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{y + 4}">{shown(row.value, 4)}</text>')
    for x, anchor in ((least, "start"), (most, "end")):
        parts.append(f'<text class="soft" x="{at(x):.1f}" y="{height - 10}" '
                     f'text-anchor="{anchor}">{shown(x, 4)}</text>')  # fmt: skip
    said = "; ".join(_said(row) for row in rows)
    return _svg(_WIDTH, height, title, said, parts)


def budget(shares: Sequence[tuple[str, float]]) -> str:
    """A bar of the budget, cut into its purposes, with a legend."""
    parts, x, height = [], 0.0, 60 + 24 * math.ceil(len(shares) / 2)
    for i, (name, share) in enumerate(shares):
        wide = share * _WIDTH
        parts.append(f'<rect class="c{i % 8}" x="{x:.1f}" y="6" width="{wide:.1f}" height="30">'
                     f"<title>{escape(name)}: {share:.1%}</title></rect>")  # fmt: skip
        x += wide
        left, y = 360 * (i % 2), 62 + 24 * (i // 2)
        parts.append(f'<rect class="c{i % 8}" x="{left}" y="{y - 11}" width="14" height="14"/>')
        parts.append(f'<text x="{left + 22}" y="{y + 1}">{_short(name)}, {share:.1%}</text>')
    said = "; ".join(f"{name} {share:.1%}" for name, share in shares)
    return _svg(_WIDTH, height, "The budget by purpose", said, parts)


def curves(found: Mapping[str, Sequence[float | None]]) -> str:
    """ROC curve, and calibration with its intervals."""
    roc = list(zip(found["false_positive_rate"], found["true_positive_rate"], strict=True))
    line = [(x, y) for x, y in roc if x is not None and y is not None]
    points = [
        (x, y, low, high)
        for x, y, low, high in zip(
            found["predicted"], found["observed"], found["observed_low"], found["observed_high"],
            strict=True,
        )
        if None not in (x, y, low, high)
    ]  # fmt: skip
    first = _square("ROC curve", "false positive rate", "true positive rate")
    path = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in line)
    first.append(f'<polyline class="curve" points="{path}"/>')
    second = _square("Calibration", "predicted probability", "observed share")
    for x, y, low, high in points:
        second.append(f'<line class="bar" x1="{_x(x):.1f}" x2="{_x(x):.1f}" '
                      f'y1="{_y(low):.1f}" y2="{_y(high):.1f}"/>'
                      f'<circle class="dot" cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="4"/>')  # fmt: skip
    said = "ROC: " + ", ".join(f"({x:.2f}, {y:.2f})" for x, y in line)
    shown = "Calibration: " + ", ".join(f"{x:.2f} predicted, {y:.2f} seen" for x, y, *_ in points)
    return (
        '<div class="pair">' + _svg(340, 340, "ROC curve", said, first)
        + _svg(340, 340, "Calibration", shown, second) + "</div>"
    )  # fmt: skip


def _square(title: str, across: str, up: str) -> list[str]:
    turned = 'transform="rotate(-90 16 160)"'
    return [
        f'<text x="190" y="18" text-anchor="middle">{title}</text>',
        '<rect class="frame" x="50" y="30" width="280" height="260"/>',
        f'<line class="axis" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>',
        f'<text class="soft" x="190" y="330" text-anchor="middle">{across}</text>',
        f'<text class="soft" x="16" y="160" text-anchor="middle" {turned}>{up}</text>',
        *(f'<text class="soft" x="{_x(v):.0f}" y="308" text-anchor="middle">{v:g}</text>'
          f'<text class="soft" x="44" y="{_y(v) + 4:.0f}" text-anchor="end">{v:g}</text>'
          for v in (0.0, 0.5, 1.0)),
    ]  # fmt: skip


def _x(x: float | None) -> float:
    return 50 + 280 * (x or 0.0)


def _y(y: float | None) -> float:
    return 290 - 260 * (y or 0.0)


def _said(row: Row) -> str:
    if row.value is None:
        return f"{row.name} is not known"
    if row.base:
        return f"{row.name} is a base level, 0"
    low, high = ("open" if end is None else shown(end, 4) for end in (row.low, row.high))
    return f"{row.name} {shown(row.value, 4)}, from {low} to {high}"


def _short(name: str) -> str:
    return escape(name if len(name) <= 30 else f"{name[:29]}…")


def _svg(width: int, height: int, title: str, said: str, parts: Sequence[str]) -> str:
    """A picture that says the same in words to whoever cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}: '
        f'{escape(said)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )
