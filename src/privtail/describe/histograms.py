"""Private histograms of one column, between given edges or private quantiles."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail import views
from privtail.calibration import calibrated
from privtail.compilation import steady
from privtail.describe.estimates import beyond, count_interval, public_numbers
from privtail.describe.search import ColumnQuantiles, QuantileSearch
from privtail.describe.tabled import tabled
from privtail.errors import AccuracyWarning, InvalidInput, require_whole, warn
from privtail.ledgers import interruptible
from privtail.promised import Promised
from privtail.spelling import counted, printable
from privtail.statement import Statement, state
from privtail.summaries.histograms import ROWS_MISSING
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Plan, Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.noise import GaussianNoise

Doubles = NDArray[np.float64]
EDGES_FRACTION = 0.3
"""Budget fraction of the quantiles that give the edges."""
ENDS = (0.02, 0.98), (0.1, 0.9), (0.25, 0.75)
"""Quantiles between which bins of equal width are cut; all that lies beyond is in two more.

The first pair is taken whose ends are known to within the distance between them, or else the last.
"""
HIDDEN = (
    "Noise hides how many rows hold a number; perhaps none does. The counts are not reliable, and "
    "neither are edges that were released. Compare the column's type, or spend more budget."
)
NO_ENDS = (
    "Noise hides where most values lie, so the edges are not reliable. Pass edges=[0, 10, 100] "
    "(--edge 0 --edge 10 --edge 100), or spend more budget."
)


@dataclass(frozen=True)
class HistogramEstimate:
    """Released counts of one column.

    Attributes
    ----------
    edges : ndarray of shape (bins + 1,)
        Ascending; a value on an edge belongs to the bin above it.
    counts : ndarray of shape (bins,)
        Noisy counts.
    below, above : float
        Noisy counts of what lies outside of the edges.
    noise_std : float
        Standard deviation of the noise in each count.
    privacy_ : Statement
        What was spent.
    warnings_ : tuple of str
        What was warned of.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_histogram
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=2_000)
    >>> estimate = private_histogram(x, edges=[0, 5, 10], epsilon=1.0)
    >>> estimate.counts.shape
    (2,)
    """

    edges: Doubles
    counts: Doubles
    below: float
    above: float
    noise_std: float
    privacy_: Statement
    warnings_: tuple[str, ...] = ()

    def conf_int(self, confidence: float = 0.95) -> Doubles:
        """Ends (bins, 2) of intervals for the counts of these rows, by the law of the noise.

        Parameters
        ----------
        confidence : float, default=0.95
            How often an interval should hold, in (0, 1).

        Returns
        -------
        ndarray of shape (bins, 2)
            The lower and the upper ends.

        Raises
        ------
        InvalidInput
            If ``confidence`` is not in (0, 1).
        """
        return count_interval(self.counts, self.noise_std, confidence, self.privacy_.n)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: edges, counts, intervals of 95 %, and the statement."""
        low, high = self.conf_int().T
        return {
            "edges": self.edges.tolist(),
            "counts": self.counts.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "below": self.below,
            "above": self.above,
            "confidence": 0.95,
            "noise_std": self.noise_std,
            "warnings": list(self.warnings_),
            "statement": self.privacy_.to_json(),
        }

    def _repr_html_(self) -> str:
        bins = zip(views.bins(self.edges.tolist()), self.counts, self.conf_int(), strict=True)
        rows = [views.Row.of(name, count, *ends) for name, count, ends in bins]
        said = (
            views.said_of_outside(self.edges.tolist(), self.below, self.above),
            f"Intervals are of 95 %; the noise has standard deviation {self.noise_std:.3g}.",
            *beyond(self.privacy_), *self.warnings_, self.privacy_.headline,
        )  # fmt: skip
        picture = views.framed(views.bars(self.edges.tolist(), rows, "Rows in each bin"))
        return picture + views.numbers(rows, said)

    def __str__(self) -> str:
        bins = zip(views.bins(self.edges.tolist()), self.counts, self.conf_int(), strict=True)
        lines = [
            f"{name}: {count:z,.0f} [{low:z,.0f}, {high:z,.0f}]"
            for name, count, (low, high) in bins
        ]
        below, above = views.outside(self.edges.tolist())
        return printable("\n".join([
            f"{below}: {self.below:z,.0f}", *lines, f"{above}: {self.above:z,.0f}",
            f"[...] is a 95 % interval; the noise has standard deviation {self.noise_std:.3g}",
            *beyond(self.privacy_), self.privacy_.headline,
        ]))  # fmt: skip


@interruptible
@steady
def private_histogram(
    x: Any,
    bins: int = 20,
    *,
    epsilon: float,
    edges: ArrayLike | None = None,
    delta: float = 1e-6,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
) -> HistogramEstimate:
    """Differentially private histogram of one column that may be unbounded.

    Without ``edges`` bins of equal width lie between the private quantiles .02 and .98, which cost
    30 % of the budget; between .1 and .9, or the quartiles, where noise hides these. What lies
    outside is counted in ``below`` and ``above``. Missing cells count nowhere.

    Parameters
    ----------
    x : array of shape (n,), or a table of one column
        Numbers.
    bins : int, default=20
        How many bins there are, where no edges are given.
    epsilon : float
        Privacy budget, above 0.
    edges : sequence of float or None, default=None
        Ascending public numbers.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private.
    random_state : int or None, default=None
        Seed of public choices, and of simulated noise.
    ledger : Ledger, path or None, default=None
        A shared `Ledger` that is charged, or the path of an existing one.
    groups : array of shape (n,), str or None, default=None
        The person of each row. Then persons are protected instead of rows.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.

    Returns
    -------
    HistogramEstimate
        ``edges``, ``counts``, ``conf_int()``.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If noise hides all rows, or where the edges should be.

    Examples
    --------
    >>> import numpy as np
    >>> import privtail
    >>> x = np.random.default_rng(0).normal(size=20_000)
    >>> found = privtail.private_histogram(x, 10, epsilon=1, noise="simulated", random_state=0)
    >>> len(found.counts), len(found.edges)
    (10, 11)
    """
    if edges is None and np.ndim(bins) == 1:
        raise InvalidInput("bins is how many bins there are. To give their edges, write edges=.")
    require_whole("bins", bins, 1)
    given = None if edges is None else public_numbers(edges, "edges")
    if given is not None and not (
        given.ndim == 1 and len(given) > 1 and (np.diff(given) > 0).all()
    ):
        raise InvalidInput(
            "Edges must be two or more ascending numbers, for example", "[0, 10, 100].",
            cli="--edge 0 --edge 10 --edge 100.",
        )  # fmt: skip
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    x, promised = promised.over(x)
    table = tabled(x)
    if len(table.columns) != 1:
        raise InvalidInput('A histogram is of one column: pass frame["cost"].')
    curator = table.curator(promised, "private_histogram")
    search, size = (
        QuantileSearch(levels=tuple(sorted({level for pair in ENDS for level in pair}))),
        bins + 1 if given is None else len(given),
    )
    if given is None and bins > curator.problem.n:
        n = curator.problem.n
        raise InvalidInput(
            f"{bins:,} bins are too many for {counted(n, 'row')}. Ask for no more bins than rows:",
            f"bins={n}, or edges=[0, 10, 100].",
            cli=f"--bins {n}, or --edge 0 --edge 10 --edge 100.",
        )
    fraction = 0.0 if given is not None else EDGES_FRACTION

    def law(multiplier: float) -> GaussianNoise:
        return GaussianNoise(multiplier / math.sqrt(1 - fraction))

    def plan(multiplier: float) -> Plan:
        answer = curator.problem.cell_counts(1, size)
        last = Round(stage="histogram", events=(law(multiplier).event(answer),))
        if given is not None:
            return (last,)
        return (*search.plan(multiplier / math.sqrt(fraction), curator.problem, 1), last)

    multiplier, warned = calibrated(curator, plan), []
    if given is None:
        spread = multiplier / math.sqrt(fraction)
        found = search.run(curator, spread, table.columns, 0.95)[0]
        pair = _known_ends(found)
        if pair is None:
            pair = float(found.values[len(ENDS) - 1]), float(found.values[len(ENDS)])
            warned.append(NO_ENDS)
        given = _even(*pair, bins)
    answer = curator.everyone().cell_counts(table.columns, given)
    std = law(multiplier).event(answer.sensitivity).std
    counts = answer.release(law(multiplier))
    if counts.sum() <= ROWS_MISSING * std * math.sqrt(len(counts)):
        warned = [HIDDEN]
    for text in warned:
        warn(text, AccuracyWarning)
    return HistogramEstimate(
        given, counts[1:-1], float(counts[0]), float(counts[-1]), std, state(curator), tuple(warned)
    )


def _known_ends(found: ColumnQuantiles) -> tuple[float, float] | None:
    """The first pair of `ENDS` that is known up to its own distance, at two standard deviations.

    If there is none, the quartiles may still be known to lie in one cell, whose ends they are then.
    """
    values, half_widths = found.values, (found.near[:, 1] - found.near[:, 0]) / 2
    for k in range(len(ENDS)):
        if max(half_widths[k], half_widths[-1 - k]) <= values[-1 - k] - values[k]:
            return float(values[k]), float(values[-1 - k])
    (low, high), k = found.near[len(ENDS) - 1], len(ENDS)
    one_cell = values[k - 1] == values[k] and math.isfinite(high - low)
    return (float(low), float(high)) if one_cell else None


def _even(low: float, high: float, bins: int) -> Doubles:
    """Edges of bins of equal width; around one value where both ends are the same."""
    least = max(abs(low), abs(high)) * 1e-6 or 1e-6
    if high - low < least:
        low, high = low - least, high + least
    return np.linspace(low, high, bins + 1)
