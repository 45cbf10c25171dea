"""What noisy histograms of many columns show together."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from privtail.summaries.histograms import LIKELY, POWERS, Cells, Histogram, part_that_counts
from privtail.summaries.summary import SMALLEST, Summary

Doubles = NDArray[np.float64]

STEP = 0.5
"""Between locations, in octaves."""

WIDTHS = (0.3, 0.7, 1.2, 1.8, 2.5, 3.5)
"""Standard deviations of the logarithm of a size, in octaves: a Gaussian has about 1.6."""

ABOVE = (0.0, 0.15, 0.5, 0.85, 1.0)
"""Parts of the values that are positive."""

EMPTY = (0.0, 0.3, 0.6, 0.9)
"""Parts of the values that are zero."""

APART = (0.0, 0.5, 1.0, 2.0, 3.5, 6.0)
"""How far columns of one table lie apart: standard deviations of their locations, in octaves."""

OUTLYING = 0.05
"""Part of the columns that may lie anywhere, as one does of which nothing is known."""

USUAL = 3.0
"""So many columns speak for all shapes alike, beside those that there are."""

MOVES = 12
"""Times that shapes and locations are estimated in turn."""

MOST = 256
"""Columns that are looked at together; more are like a sample of so many."""

DIFFERING = 2.0
"""So many deviations of their noise beyond it, columns are believed to differ."""

VAGUE = 1.0
"""Octaves: a column whose location is less sure has no centre."""

SHOWN = 0.9
"""Of columns of which single cells show less than this, only a profile is likely."""

TOGETHER = 0.2
"""Columns are described as one if it is at least so likely that they lie together."""

VISIBLE = 0.03
"""Cells of a profile that hold less do not count in its description."""

_OCTAVES = (len(POWERS.edges) - 2) // 2
_ZERO = _OCTAVES + 1
_ABOVE = slice(_ZERO + 1, _ZERO + 1 + _OCTAVES)
_BELOW = slice(_ZERO - 1, 0, -1)
_STEPS = round(1 / STEP)
_LOCATIONS = np.arange(-_OCTAVES / 2 + STEP / 2, _OCTAVES / 2, STEP)
_SHAPES = list(product(range(len(WIDTHS)), ABOVE, EMPTY))


def described(counts: Doubles, cells: Cells, std: Doubles | float, n: int) -> Summary:
    """Describe columns of ``n`` records from counts (columns, cells).

    ``std`` (cells,) is the deviation of the noise of each cell, or of all.

    Columns that do not stand out from most others are described together. Among powers of two, what
    single cells hardly show is described by what is likely, given all columns (`ColumnPrior`),
    unless a run of cells stands out beside zeros. Of closer looks, what does not show gets the
    deviation of all together for a scale: with one that is too large it says little, with one that
    is too small it hides the others.
    """

    def pooled(rows: Doubles) -> Summary | None:
        k = len(rows)
        return Histogram(rows.sum(axis=0), cells, std * math.sqrt(k)).described(n * k)

    std = np.broadcast_to(std, counts.shape[1:])
    together, unseen = pooled(counts), Summary.unseen()
    histograms = [Histogram(row, cells, std, len(counts)) for row in counts]
    each = [histogram.described(n) for histogram in histograms]
    alike = np.zeros(len(counts), dtype=np.bool_)
    if together:
        alike = _alike(counts, cells, std, n)
        they = pooled(counts[alike]) if alike.any() else None
        each = [they or one if same else one for same, one in zip(alike, each, strict=True)]
        size = together.deviations
        unseen = replace(unseen, scales=size, deviations=size, tails=together.tails)
    found = Summary.joined([one or unseen for one in each])
    part, _ = part_that_counts(counts.mean(axis=0), std / math.sqrt(len(counts)), n)
    hidden = np.array([one.sure_cells().sum() < SHOWN * part * n for one in histograms])
    hidden &= ~(found.mostly_zeros & found.scale_known)
    if len(counts) > 1 and std.any() and hidden.any() and not cells.closer:
        likely = ColumnPrior.of(counts, std, part * n)
        hidden &= ~(alike & likely.together)
        if hidden.any():
            found.put(hidden, likely.described(counts[hidden], std, part * n))
    return found


@dataclass(frozen=True)
class ColumnPrior:
    """What columns of a table are like (empirical Bayes), among powers of two.

    The sizes of a column's values have a Gaussian logarithm, and some of them are below zero or are
    zero: a family of profiles, coarse and wide. How often each shape occurs, and where columns lie
    and how far apart, is estimated from all columns. A column is then described by the mean of what
    its likely profiles say.

    Attributes
    ----------
    prior : (locations, shapes), how likely a column has a profile.
    together : whether all columns may well lie within half an octave, but for outlying ones.
    """

    prior: Doubles
    together: bool

    @classmethod
    def of(cls, counts: Doubles, std: Doubles, n: float) -> Self:
        """From histograms (columns, cells) of n records."""
        some = np.unique(np.linspace(0, len(counts) - 1, MOST).round().astype(int))
        likely = _likelihoods(counts[some], std, n)
        flat = likely.reshape(-1, len(_SHAPES))
        even = np.full(len(_SHAPES), 1 / len(_SHAPES))
        shapes = even
        apart, doubt = _laws()
        for _ in range(MOVES):
            by_location = likely @ shapes
            evidence = np.log(by_location @ apart.T).sum(axis=0) - doubt
            laws = np.exp(evidence - logsumexp(evidence))
            where = laws @ apart
            prior = np.outer(where, shapes)
            weights = where / (by_location @ where)[:, None]
            posterior = shapes * (weights.reshape(-1) @ flat)
            shapes = (posterior + USUAL * even) / (len(some) + USUAL)
        near = laws.reshape(len(APART), -1)[np.array(APART) <= STEP].sum()
        return cls(prior, bool(near > TOGETHER))

    def described(self, counts: Doubles, std: Doubles, n: float) -> Summary:
        """These columns."""
        parts = np.array_split(counts, 1 + len(counts) // MOST)
        return Summary.joined([self._described(part, std, n) for part in parts])

    def _described(self, counts: Doubles, std: Doubles, n: float) -> Summary:
        weights = _likelihoods(counts, std, n)
        weights *= self.prior
        weights /= weights.sum(axis=(1, 2), keepdims=True)
        at = weights.sum(axis=2)
        where = at @ _LOCATIONS
        unsure = np.sqrt(np.maximum(at @ _LOCATIONS**2 - where**2, 0.0))
        octaves = at @ np.floor(_LOCATIONS)
        by_shape = weights.reshape(len(counts), _OCTAVES, _STEPS, len(_SHAPES)).sum(axis=1)
        facts = np.tensordot(by_shape, _descriptions(), 2)
        scales, deviations, tails = 2.0 ** (octaves[:, None] + facts[:, :3]).T
        centres, lows, highs = scales * facts[:, 3:6].T
        zeros, scale_known = facts[:, 6:].T > 0.5
        nowhere = zeros | (unsure > VAGUE)
        scale_known &= ~(zeros & (unsure > VAGUE))
        return Summary(
            np.where(nowhere, 0.0, centres), scales, deviations, tails,
            np.where(zeros, -SMALLEST, lows), np.where(zeros, SMALLEST, highs),
            unsure <= VAGUE, scale_known,
            np.sum(at * (np.abs(_LOCATIONS - where[:, None]) <= STEP), axis=1),
            np.zeros_like(scale_known),
        )  # fmt: skip


@functools.lru_cache(maxsize=1)
def _sizes() -> Doubles:
    """Parts of the sizes in each octave, (locations, spreads, octaves)."""
    edges = np.arange(_OCTAVES + 1) - _OCTAVES / 2 - _LOCATIONS[:, None, None]
    return np.asarray(np.diff(ndtr(edges / np.array(WIDTHS)[:, None]), axis=2))


@functools.lru_cache(maxsize=1)
def _laws() -> tuple[Doubles, Doubles]:
    """Laws of locations (laws, locations), of all `APART` around all octaves; doubts of each."""
    anywhere = 1 / (1 + np.abs(_LOCATIONS) / 2) ** 2
    anywhere /= anywhere.sum()
    middles = np.arange(-_OCTAVES / 2, _OCTAVES / 2 + 1)
    laws = []
    for apart in APART:
        near = np.exp(-0.5 * ((_LOCATIONS - middles[:, None]) / max(apart, STEP / 2)) ** 2)
        laws.append((1 - OUTLYING) * near / near.sum(axis=1, keepdims=True) + OUTLYING * anywhere)
    return np.concatenate(laws), np.tile(4 * np.log(1 + np.abs(middles) / 2), len(APART))


@functools.lru_cache(maxsize=1)
def _descriptions() -> Doubles:
    """Of every profile between 1 and 2, (steps, shapes, facts).

    Logarithms of scale, deviation and tail; centre and ends of the quartiles' cells in scales;
    whether the quartiles are zero, and whether the scale is known.
    """
    first = len(_LOCATIONS) // 2
    facts = []
    for sizes in _sizes()[first : first + _STEPS]:
        for spread, above, empty in _SHAPES:
            counts = np.zeros(len(POWERS.edges) + 1)
            counts[_ABOVE] = (1 - empty) * above * sizes[spread]
            counts[_BELOW] += (1 - empty) * (1 - above) * sizes[spread]
            counts[_ZERO] = empty
            counts[counts < VISIBLE] = 0.0
            seen = Histogram(counts, POWERS, 0.0).described(1) or Summary.unseen()
            scale = seen.scales[0]
            logs = np.log2([scale, seen.deviations[0], seen.tails[0]])
            places = np.array([seen.centres[0], seen.lows[0], seen.highs[0]]) / scale
            facts.append([*logs, *places, seen.mostly_zeros[0], seen.scale_known[0]])
    return np.array(facts).reshape(_STEPS, len(_SHAPES), -1)


def _likelihoods(counts: Doubles, std: Doubles, n: float) -> Doubles:
    """Of every profile (columns, locations, shapes), over that of the likeliest."""
    told, sharp = counts / std * (n / std), (n / std) ** 2
    sizes = _sizes()
    above, below = (told[:, side] @ sizes.reshape(-1, _OCTAVES).T for side in (_ABOVE, _BELOW))
    norms = [(sizes**2 @ sharp[side]).reshape(-1) for side in (_ABOVE, _BELOW)]
    logs = np.empty((len(counts), len(ABOVE) * len(EMPTY), len(_LOCATIONS) * len(WIDTHS)))
    for k, (up, empty) in enumerate(product(ABOVE, EMPTY)):
        seen = (1 - empty) * (up * above + (1 - up) * below) + empty * told[:, _ZERO, None]
        norm = (1 - empty) ** 2 * (up**2 * norms[0] + (1 - up) ** 2 * norms[1])
        logs[:, k] = seen - (norm + empty**2 * sharp[_ZERO]) / 2
    logs -= logs.max(axis=(1, 2), keepdims=True)
    by_shape = np.exp(logs, out=logs).reshape(*logs.shape[:2], len(_LOCATIONS), len(WIDTHS))
    by_location = by_shape.transpose(0, 2, 3, 1)
    return np.asarray(by_location.reshape(len(counts), len(_LOCATIONS), len(_SHAPES)))


def _alike(counts: Doubles, cells: Cells, std: Doubles, n: int) -> NDArray[np.bool_]:
    """Columns whose counts do not stand out from those of the others, where most do not.

    What they show together says more of these than their own noise. Where that is hardly more than
    zeros, the rest of one column would drown in noise: each is left at what it shows. Nor are
    they alike where only a run of cells shows, but for one that holds half of the ``n`` records of
    each column, in which they differ no more than noise does; and that not in a closer look.
    """
    rest = len(counts) - 1
    if rest == 0 or not std.any():
        return np.zeros(len(counts), dtype=np.bool_)
    others, noise = (counts.sum(axis=0) - counts) / rest, std * math.sqrt(1 + 1 / rest)
    left = [Histogram(row, cells, noise, len(counts)) for row in counts - others]
    alike = np.array([not (h.sure_cells().any() or h.surest_run().any()) for h in left])
    rows, none = counts[alike], np.zeros_like(alike)
    if 2 * len(rows) < len(alike):
        return none
    usual = Histogram(cells.without_zeros(rows.sum(axis=0)), cells, std * math.sqrt(len(rows)))
    likely = LIKELY * float(std.min())
    if usual.sure_cells().sum() > likely * len(rows):
        return alike
    most = usual.surest_run(max(likely, n / 2) * len(rows))
    return alike if not cells.closer and _spread_alike(rows, most, std) else none


def _spread_alike(rows: Doubles, run: Doubles, std: Doubles) -> bool:
    """Whether the columns of ``rows`` differ no more in the cells of a ``run`` than noise may.

    Where no column differs surely, all of them together may (their squares, a chi-square).
    """
    shown = rows[:, run > 0] / std[run > 0]
    differing = float(((shown - shown.mean(axis=0)) ** 2).sum())
    free = (len(shown) - 1) * shown.shape[1]
    return bool(free > 0 and differing <= free + DIFFERING * math.sqrt(2 * free))
