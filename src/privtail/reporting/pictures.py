"""Pictures of a report as inline SVG: the budget, and curves. Colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from privtail.views import short, svg

WIDTH = 720


def budget(shares: Sequence[tuple[str, float]]) -> str:
    """A bar of the budget, cut into its purposes, with a legend."""
    parts, x, height = [], 0.0, 60 + 24 * math.ceil(len(shares) / 2)
    for i, (name, share) in enumerate(shares):
        wide = share * WIDTH
        parts.append(f'<rect class="c{i % 8}" x="{x:.1f}" y="6" width="{wide:.1f}" height="30">'
                     f"<title>{escape(name)}: {share:.1%}</title></rect>")  # fmt: skip
        x += wide
        left, y = 360 * (i % 2), 62 + 24 * (i // 2)
        parts.append(f'<rect class="c{i % 8}" x="{left}" y="{y - 11}" width="14" height="14"/>')
        parts.append(f'<text x="{left + 22}" y="{y + 1}">{short(name)}, {share:.1%}</text>')
    said = "; ".join(f"{name} {share:.1%}" for name, share in shares)
    return svg(WIDTH, height, "The budget by purpose", said, parts)


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
        '<div class="pair">' + svg(340, 340, "ROC curve", said, first)
        + svg(340, 340, "Calibration", shown, second) + "</div>"
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
