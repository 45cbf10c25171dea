"""Summaries of many columns together, by a prior that is estimated from all (empirical Bayes)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from privtail.summaries.histograms import CELL_ABOVE, POWERS, Cells, Histogram, usable_rows
from privtail.summaries.summary import SMALLEST, Summary

Doubles = NDArray[np.float64]

STEP = 0.5
"""The distance between locations on the grid, in octaves."""

WIDTHS = (0.3, 0.7, 1.2, 1.8, 2.5, 3.5)
"""Standard deviations of the logarithm of a size, in octaves: a Gaussian has about 1.6."""

POSITIVE = (0.0, 0.15, 0.5, 0.85, 1.0)
"""Grid of the part of the values that is positive."""

ZEROS = (0.0, 0.3, 0.6, 0.9)
"""Grid of the part of the values that is zero."""

LOCATION_STDS = (0.0, 0.5, 1.0, 2.0, 3.5, 6.0)
"""Grid of the standard deviation of the locations of the columns of a table, in octaves."""

OUTLYING = 0.05
"""Weight of the vague component of the prior, by which a column may lie anywhere."""

PRIOR_WEIGHT = 3.0
"""Weight of the uniform prior of shapes, in columns."""

ITERATIONS = 12
"""Iterations in which shapes and locations are estimated in turn."""

MAX_COLUMNS = 256
"""The largest number of columns from which the prior is estimated; of more, a sample is taken."""

DIFFERENCE_ABOVE = 2.0
"""Columns differ if their sum of squares exceeds that of noise by this many standard deviations."""

MAX_LOCATION_STD = 1.0
"""A column gets the centre 0 if the posterior deviation of its location is more, in octaves."""

LEAST_DETECTED = 0.9
"""The posterior describes a column if its sure cells hold less than this part of the rows."""

ALIKE_PROBABILITY = 0.2
"""All columns are described as one if this, or more, is the probability that they lie together."""

LEAST_CELL = 0.03
"""Cells of a profile that hold a smaller part of the values do not count in its summary."""

LEAST_LOG_LIKELIHOOD = -200.0
"""Smaller log-likelihoods are raised to this: products would be subnormal, which are slow."""

_OCTAVES = (len(POWERS.edges) - 2) // 2
_ZERO = _OCTAVES + 1
_ABOVE = slice(_ZERO + 1, _ZERO + 1 + _OCTAVES)
_BELOW = slice(_ZERO - 1, 0, -1)
_STEPS = round(1 / STEP)
_LOCATIONS = np.arange(-_OCTAVES / 2 + STEP / 2, _OCTAVES / 2, STEP)
_SHAPES = list(product(range(len(WIDTHS)), POSITIVE, ZEROS))


def described(counts: Doubles, cells: Cells, std: Doubles | float, n: int) -> Summary:
    """The summary of columns of ``n`` records, from counts (columns, cells).

    ``std`` is the standard deviation of the noise, one number or one for each cell.

    Columns that do not differ from most others are pooled. Among powers of two, a column that is
    not surely detected is described by its posterior (`ColumnPrior`), unless a run of cells stands
    out beside zeros. A column that a refined histogram does not detect gets the deviation of all
    columns pooled for a scale. A scale that is too large makes the column count little. One that is
    too small would make it hide the others.
    """

    def pooled(rows: Doubles) -> Summary | None:
        k = len(rows)
        return Histogram(rows.sum(axis=0), cells, std * math.sqrt(k)).described(n * k)

    std = np.broadcast_to(std, counts.shape[1:])
    together, undetected = pooled(counts), Summary.undetected()
    histograms = [Histogram(row, cells, std, len(counts)) for row in counts]
    each = [histogram.described(n) for histogram in histograms]
    alike = np.zeros(len(counts), dtype=np.bool_)
    if together:
        alike = _alike(counts, cells, std, n)
        they = pooled(counts[alike]) if alike.any() else None
        each = [they or one if same else one for same, one in zip(alike, each, strict=True)]
        size = together.deviations
        undetected = replace(
            undetected, scales=size, widths=size, deviations=size, tails=together.tails
        )
    found = Summary.joined([one or undetected for one in each])
    part, _ = usable_rows(counts.mean(axis=0), std / math.sqrt(len(counts)), n)
    hidden = np.array([one.sure_cells().sum() < LEAST_DETECTED * part * n for one in histograms])
    hidden &= ~(found.mostly_zeros & found.scale_known)
    if len(counts) > 1 and std.any() and hidden.any() and not cells.refined:
        prior = ColumnPrior.of(counts, std, part * n)
        hidden &= ~(alike & prior.alike)
        if hidden.any():
            found.put(hidden, prior.described(counts[hidden], std, part * n))
    return found


@dataclass(frozen=True)
class ColumnPrior:
    """A prior of histograms of columns over powers of two, estimated from all columns.

    A profile is a distribution of values: the logarithm of their size is Gaussian, a part is
    negative, and a part is zero. It has a location and a shape. The probabilities of shapes and
    locations are estimated from all columns (empirical Bayes). The summary of a column is the
    posterior mean over profiles.

    Attributes
    ----------
    prior : (locations, shapes) the probability of each profile.
    alike : whether all columns but outlying ones likely lie within half an octave.
    """

    prior: Doubles
    alike: bool

    @classmethod
    def of(cls, counts: Doubles, std: Doubles, n: float) -> Self:
        """From histograms (columns, cells) of n records."""
        some = np.unique(np.linspace(0, len(counts) - 1, MAX_COLUMNS).round().astype(int))
        likely = _likelihoods(counts[some], std, n)
        flat = likely.reshape(-1, len(_SHAPES))
        even = np.full(len(_SHAPES), 1 / len(_SHAPES))
        shapes = even
        location_laws, penalty = _location_laws()
        for _ in range(ITERATIONS):
            by_location = likely @ shapes
            evidence = np.log(by_location @ location_laws.T).sum(axis=0) - penalty
            laws = np.exp(evidence - logsumexp(evidence))
            where = laws @ location_laws
            prior = np.outer(where, shapes)
            weights = where / (by_location @ where)[:, None]
            posterior = shapes * (weights.reshape(-1) @ flat)
            shapes = (posterior + PRIOR_WEIGHT * even) / (len(some) + PRIOR_WEIGHT)
        near = laws.reshape(len(LOCATION_STDS), -1)[np.array(LOCATION_STDS) <= STEP].sum()
        return cls(prior, bool(near > ALIKE_PROBABILITY))

    def described(self, counts: Doubles, std: Doubles, n: float) -> Summary:
        """The summary of these columns."""
        parts = np.array_split(counts, 1 + len(counts) // MAX_COLUMNS)
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
        scales, widths, deviations, tails = 2.0 ** (octaves[:, None] + facts[:, :4]).T
        centres, lows, highs = scales * facts[:, 4:7].T
        zeros, scale_known = facts[:, 7:].T > 0.5
        nowhere = zeros | (unsure > MAX_LOCATION_STD)
        scale_known &= ~(zeros & (unsure > MAX_LOCATION_STD))
        return Summary(
            np.where(nowhere, 0.0, centres), scales, widths, deviations, tails,
            np.where(zeros, -SMALLEST, lows), np.where(zeros, SMALLEST, highs),
            unsure <= MAX_LOCATION_STD, scale_known,
            np.sum(at * (np.abs(_LOCATIONS - where[:, None]) <= STEP), axis=1),
            np.zeros_like(scale_known),
        )  # fmt: skip


@functools.lru_cache(maxsize=1)
def _sizes() -> Doubles:
    """(locations, widths, octaves) the part of the sizes in each octave."""
    edges = np.arange(_OCTAVES + 1) - _OCTAVES / 2 - _LOCATIONS[:, None, None]
    return np.asarray(np.diff(ndtr(edges / np.array(WIDTHS)[:, None]), axis=2))


@functools.lru_cache(maxsize=1)
def _location_laws() -> tuple[Doubles, Doubles]:
    """(laws, locations) prior laws of locations, and the penalty of each law.

    There is one law for each of `LOCATION_STDS` around each octave.
    """
    anywhere = 1 / (1 + np.abs(_LOCATIONS) / 2) ** 2
    anywhere /= anywhere.sum()
    middles = np.arange(-_OCTAVES / 2, _OCTAVES / 2 + 1)
    laws = []
    for std in LOCATION_STDS:
        near = np.exp(-0.5 * ((_LOCATIONS - middles[:, None]) / max(std, STEP / 2)) ** 2)
        laws.append((1 - OUTLYING) * near / near.sum(axis=1, keepdims=True) + OUTLYING * anywhere)
    return np.concatenate(laws), np.tile(4 * np.log(1 + np.abs(middles) / 2), len(LOCATION_STDS))


@functools.lru_cache(maxsize=1)
def _descriptions() -> Doubles:
    """(steps, shapes, facts) the description of every profile whose location is in [1, 2].

    The facts are: logarithms of scale, width, deviation and tail; centre and ends of the cells of
    the quartiles, in scales; whether the quartiles are zero; whether the scale is known.
    """
    first = len(_LOCATIONS) // 2
    facts = []
    for sizes in _sizes()[first : first + _STEPS]:
        for spread, above, empty in _SHAPES:
            counts = np.zeros(len(POWERS.edges) + 1)
            counts[_ABOVE] = (1 - empty) * above * sizes[spread]
            counts[_BELOW] += (1 - empty) * (1 - above) * sizes[spread]
            counts[_ZERO] = empty
            counts[counts < LEAST_CELL] = 0.0
            seen = Histogram(counts, POWERS, 0.0).described(1) or Summary.undetected()
            scale = seen.scales[0]
            logs = np.log2([scale, seen.widths[0], seen.deviations[0], seen.tails[0]])
            places = np.array([seen.centres[0], seen.lows[0], seen.highs[0]]) / scale
            facts.append([*logs, *places, seen.mostly_zeros[0], seen.scale_known[0]])
    return np.array(facts).reshape(_STEPS, len(_SHAPES), -1)


def _likelihoods(counts: Doubles, std: Doubles, n: float) -> Doubles:
    """(columns, locations, shapes) the likelihood of every profile, over the largest."""
    scores, precisions = counts / std * (n / std), (n / std) ** 2
    sizes = _sizes()
    above, below = (scores[:, side] @ sizes.reshape(-1, _OCTAVES).T for side in (_ABOVE, _BELOW))
    norms = [(sizes**2 @ precisions[side]).reshape(-1) for side in (_ABOVE, _BELOW)]
    logs = np.empty((len(counts), len(POSITIVE) * len(ZEROS), len(_LOCATIONS) * len(WIDTHS)))
    for k, (up, empty) in enumerate(product(POSITIVE, ZEROS)):
        seen = (1 - empty) * (up * above + (1 - up) * below) + empty * scores[:, _ZERO, None]
        norm = (1 - empty) ** 2 * (up**2 * norms[0] + (1 - up) ** 2 * norms[1])
        logs[:, k] = seen - (norm + empty**2 * precisions[_ZERO]) / 2
    logs -= logs.max(axis=(1, 2), keepdims=True)
    np.maximum(logs, LEAST_LOG_LIKELIHOOD, out=logs)
    by_shape = np.exp(logs, out=logs).reshape(*logs.shape[:2], len(_LOCATIONS), len(WIDTHS))
    by_location = by_shape.transpose(0, 2, 3, 1)
    return np.asarray(by_location.reshape(len(counts), len(_LOCATIONS), len(_SHAPES)))


def _alike(counts: Doubles, cells: Cells, std: Doubles, n: int) -> NDArray[np.bool_]:
    """(columns,) whether a column does not differ from the others, provided that most do not.

    The pooled histogram of such columns has less noise than that of each. But columns are not alike
    if their pooled histogram shows hardly more than zeros, because the other values of one column
    would be lost among those of all. If it shows only a run of cells, they are alike if the run
    holds half of the ``n`` records of each column, the columns differ in it no more than noise
    does, and the histogram is not refined.
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
    likely = CELL_ABOVE * float(std.min())
    if usual.sure_cells().sum() > likely * len(rows):
        return alike
    most = usual.surest_run(max(likely, n / 2) * len(rows))
    return alike if not cells.refined and _spread_alike(rows, most, std) else none


def _spread_alike(rows: Doubles, run: Doubles, std: Doubles) -> bool:
    """Whether the columns of ``rows`` differ no more in the cells of a ``run`` than noise may.

    The sum of squared differences is compared with a chi-square law.
    """
    shown = rows[:, run > 0] / std[run > 0]
    differing = float(((shown - shown.mean(axis=0)) ** 2).sum())
    free = (len(shown) - 1) * shown.shape[1]
    return bool(free > 0 and differing <= free + DIFFERENCE_ABOVE * math.sqrt(2 * free))
