"""Released numbers as HTML: a table, and pictures as inline SVG, in notebooks and on pages.

A picture has colours of its own, which the style of a page may replace, and says in words what it
shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from privtail.spelling import digits

MOST = 25
"""Numbers in one picture."""

_ROW, _LEFT, _WIDTH, _RIGHT = 26, 220, 720, 100
_STROKES = {
    "axis": 'stroke="#8c959f" stroke-width="1.5"',
    "bar": 'stroke="#0072b2" stroke-width="2.5"',
    "end": 'stroke="currentColor" stroke-width="1.5"',
}
_LABELS = 6
"""Edges of a histogram that are written below it, at most."""


@dataclass(frozen=True)
class Row:
    """A number with the ends of its interval; None where one is not known.

    ``base``: it is a base level, which is zero by declaration and has no interval.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    base: bool = False

    @classmethod
    def of(cls, name: str, value: float, low: float, high: float) -> Row:
        """The same of numbers, of which those that are not finite are not known."""
        value_, low_, high_ = (float(x) if math.isfinite(x) else None for x in (value, low, high))
        return cls(name, value_, low_, high_)

    def digits(self, least: int) -> int:
        """How many digits tell the ends of its interval apart."""
        return digits(least, self.value, self.low, self.high)


def bins(edges: Sequence[float]) -> list[str]:
    """What every bin is called: its edges, with digits that tell the nearest two apart."""
    return [f"{start} to {end}" for start, end in pairwise(_edges(edges))]


def outside(edges: Sequence[float]) -> tuple[str, str]:
    """What the values before the first bin are called, and those after the last.

    A value on an edge belongs to the bin above it, so one on the last edge is after the last bin.
    """
    first, *_, last = _edges(edges)
    return f"below {first}", f"{last} or more"


def said_of_outside(edges: Sequence[float], below: float, above: float) -> str:
    """A sentence on the counts of what no bin holds."""
    first, last = outside(edges)
    return f"Rows {first}: about {max(below, 0):,.0f}; of {last}: about {max(above, 0):,.0f}."


def _edges(edges: Sequence[float]) -> list[str]:
    many = max(digits(6, *pair) for pair in pairwise(edges))
    return [f"{edge:.{many}g}" for edge in edges]


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], below: Iterable[str] = (), caption: str = ""
) -> str:
    """A table whose first column names the rows, and paragraphs below it."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    said = "".join(f"<p>{escape(text)}</p>" for text in below if text)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{said}"


def numbers(rows: Iterable[Row], below: Iterable[str] = (), caption: str = "") -> str:
    """A table of numbers with the ends of their intervals."""
    cells = (
        (row.name, *(missing if x is None else shown(x, row.digits(4)) for x, missing in zip(
            (row.value, row.low, row.high), ("not known", "open", "open"), strict=True,
        )))
        for row in rows
    )  # fmt: skip
    return table(("", "value", "from", "to"), cells, below, caption)


def shown(x: float, digits: int) -> str:
    """A number with ``digits`` digits, or with all digits before its point if these are more."""
    return f"{x:z,.0f}" if 10**digits <= abs(x) < 1e9 else f"{x:z.{digits}g}"


def framed(picture: str) -> str:
    """A picture in a notebook: no larger than it need be, and rolled where there is no room."""
    return (
        '<div style="overflow-x:auto"><div style="min-width:30rem;max-width:45rem;'
        f'font:13px system-ui,sans-serif">{picture}</div></div>'
        if picture
        else ""
    )


def intervals(rows: Sequence[Row], title: str, *, zero: bool) -> str:
    """A line for each number, from end to end, with a dot at the value; one scale for all."""
    known = [x for row in rows for x in (row.value, row.low, row.high) if x is not None]
    if not known:
        return ""
    least, most = min(known), max(known)
    if zero:
        least, most = min(least, 0.0), max(most, 0.0)
    if least == most:
        least, most = least - max(1.0, abs(least) / 8), most + max(1.0, abs(most) / 8)
    wide = _WIDTH - _LEFT - _RIGHT

    def at(x: float) -> float:  # halves do not overflow
        return _LEFT + 10 + (wide - 20) * ((x / 2 - least / 2) / (most / 2 - least / 2))

    parts = []
    height = _ROW * len(rows) + 34
    if zero:
        parts.append(_line("axis", at(0), at(0), 4, height - 30))
    for i, row in enumerate(rows):
        y = _ROW * i + 18
        parts.append(f'<text x="{_LEFT}" y="{y + 4}" text-anchor="end">{short(row.name)}</text>')
        if row.value is None:
            parts.append(f'<text class="soft" x="{_LEFT + 10}" y="{y + 4}">not known</text>')
            continue
        low, high = (
            (least if row.low is None else row.low),
            (most if row.high is None else row.high),
        )
        open_ = "" if row.low is not None and row.high is not None else ' stroke-dasharray="4 4"'
        if not row.base:
            parts.append(_line("bar", at(low), at(high), y, y, open_))
        parts.append(
            f'<circle class="dot" fill="#0072b2" cx="{at(row.value):.1f}" cy="{y}" r="4.5"/>'
        )
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 10}" y="{y + 4}">{shown(row.value, row.digits(4))}</text>'
        )
    many = digits(4, least, most)
    for x, anchor in ((least, "start"), (most, "end")):
        parts.append(f'<text class="soft" x="{at(x):.1f}" y="{height - 10}" '
                     f'text-anchor="{anchor}">{shown(x, many)}</text>')  # fmt: skip
    said = "; ".join(_said(row) for row in rows)
    return svg(_WIDTH, height, title, said, parts)


def bars(edges: Sequence[float], rows: Sequence[Row], title: str) -> str:
    """A bar of the same width for each bin, with its interval; the edges stand below."""
    most = max([1.0, *(x for row in rows for x in (row.value, row.high) if x is not None)])
    height, left, floor = 240, 70, 200
    wide = (_WIDTH - left - 40) / len(rows)

    def at(count: float) -> float:
        return floor - (floor - 20) * max(count, 0.0) / most

    parts = [
        f'<text class="soft" x="{left - 8}" y="{at(x) + 4:.1f}" text-anchor="end">{shown(x, 4)}'
        "</text>"
        for x in (0.0, most)
    ]
    for j, row in enumerate(rows):
        x, top = left + wide * j, at(row.value or 0.0)
        parts.append(f'<rect class="c0" fill="#0072b2" x="{x + 0.5:.1f}" y="{top:.1f}" '
                     f'width="{max(wide - 1, 0.5):.1f}" height="{floor - top:.1f}"/>')  # fmt: skip
        if row.low is not None and row.high is not None:
            middle = x + wide / 2
            parts.append(_line("end", middle, middle, at(row.low), at(row.high)))
    parts.append(_line("axis", left, _WIDTH - 40, floor, floor))
    step = math.ceil(len(rows) / (_LABELS - 1))
    many = digits(4, edges[0], edges[-1])
    parts += [
        f'<text class="soft" x="{left + wide * j:.1f}" y="{floor + 20}" text-anchor="middle">'
        f"{shown(float(edges[j]), many)}</text>"
        for j in range(0, len(edges), step)
    ]
    return svg(_WIDTH, height, title, "; ".join(map(_said, rows)), parts)


def _line(kind: str, x1: float, x2: float, y1: float, y2: float, more: str = "") -> str:
    return (
        f'<line class="{kind}" {_STROKES[kind]} x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" '
        f'y2="{y2:.1f}"{more}/>'
    )


def _said(row: Row) -> str:
    if row.value is None:
        return f"{row.name} is not known"
    if row.base:
        return f"{row.name} is a base level, 0"
    many = row.digits(4)
    low, high = ("open" if end is None else shown(end, many) for end in (row.low, row.high))
    return f"{row.name} {shown(row.value, many)}, from {low} to {high}"


def short(name: str) -> str:
    """A name as a picture has room for it, escaped."""
    return escape(name if len(name) <= 30 else f"{name[:29]}…")


def svg(width: int, height: int, title: str, said: str, parts: Sequence[str]) -> str:
    """A picture that says the same in words to whoever cannot see it."""
    return (
        f'<svg viewBox="0 0 {width} {height}" fill="currentColor" role="img" aria-label="'
        f'{escape(title)}: {escape(said)}"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )
