"""Private means of one column or many, without bounds on the data."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.algorithms.coin_press import CoinPress
from privtail.algorithms.median_of_noisy_means import MedianOfNoisyMeans
from privtail.calibration import calibrated
from privtail.compilation import steady
from privtail.describe.estimates import public_numbers
from privtail.describe.moments import ColumnMoments
from privtail.describe.tabled import Tabled, name_of, require_by, require_shape, tabled
from privtail.errors import AccuracyWarning, InvalidInput, real, require_whole, told, warn
from privtail.influence import catoni_bound
from privtail.ledgers import interruptible
from privtail.lost import OF_THESE, lost_rows
from privtail.mean.estimate import MeanEstimate
from privtail.promised import Promised
from privtail.robust_means import ClampedMean, ClippedMean, SmoothedCatoniMean, TruncatedMean
from privtail.spelling import some_of
from privtail.statement import state
from privtail.summaries.column_ranges import ColumnRanges
from privtail.summaries.histograms import usable_rows
from privtail.summaries.mean_intervals import NOISE_BOUND, CutRange
from privtail.summaries.summary import Summary
from privtail.table_files import opened
from privtail.trusted.budget import Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.ledger import Ledger
from privtail.trusted.maps import FeatureMap
from privtail.trusted.means import RobustMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.tables import column_names, is_column, is_file

Doubles = NDArray[np.float64]
Method = Literal["clipped", "clamped", "truncated", "catoni", "ksu", "coinpress"]
METHODS: tuple[Method, ...] = get_args(Method)
GROUPS = 15
"""Groups of ``"ksu"``, if there are that many rows."""
COUNT_FRACTION = 0.03
"""The count of rows costs this part of what the mean, the last release, costs (replace-one)."""

UNSEEN = (
    "{some} could not be located: no cell of the histogram is above the noise (too few rows "
    "count), or the values lie beyond 2^64 (1.8e19), where a histogram ends. Such a mean is not "
    "reliable, and may be off by more than the noise that is stated. Divide a column of such a "
    "size by a public number."
)
ZEROS = (
    "In {some} only zeros were detected above the noise. Other values are "
    "clipped at 1, because nothing is known of their size, and the mean may be off by more than "
    "the noise that is stated. Divide such a column by a public size of these values, or give a "
    "threshold in Python."
)
UNBOUNDED = (
    "The error that clipping causes in {some} is not bounded by anything that was released: such "
    "a mean may be off by more than the noise that is stated. Give a threshold (in Python), or "
    "spend more."
)
NO_GROUP = (
    "For {some}, noise hides how many rows the group holds, or nothing that was "
    "released bounds the error of clipping. Compare how categories are written with the cells, and "
    "their type with that of the column; or spend more."
)
NOT_RELIABLE = (
    "{some} {are} not reliable and may be off by any amount: an interval has no end on one side "
    "or both. The notes of the statement say why."
)
HIDDEN_ROWS = (
    "Noise may hide about {rows:,} rows that lie far from all others, such as codes for missing "
    "numbers, and a few times as many if these differ in size. The mean, and a finite end of its "
    "interval, do not allow for them: make codes missing first."
)
UNSURE = (
    "The noise is so large that the location of a column far from zero may be wrong. Then its "
    "mean is off by more than the noise that is stated."
)

RANGES = ColumnRanges()


@interruptible
@steady
def private_mean(
    x: Any,
    *,
    epsilon: float,
    delta: float = 1e-6,
    method: Method = "clipped",
    threshold: float | None = None,
    centre: ArrayLike | None = None,
    blocks: int | None = None,
    smoothing: float = 3.0,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
    by: str | Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
) -> MeanEstimate:
    """Differentially private mean of columns that may be unbounded.

    Without a ``threshold`` private histograms give centre and scale of every column, so you need to
    know no bound and no moment. They usually cost 30 % of the squared Gaussian-DP parameter (under
    zero-out 45 %). They cost up to half of it (two thirds) if less would not find a column that
    lies far from zero. The statement's notes say when a column may not have been found.

    A column is clipped at the distance beyond which noise hides its values. The released counts
    bound what clipping may have cost, and ``conf_int`` and ``std`` include this bound. If there is
    none (only zeros were detected, or a tail may have no mean), ``reliable`` is False, the interval
    has no end on that side, and an `AccuracyWarning` says so.

    ``reliable`` is also False if most values of a column are equal, such as -1 for "none", and
    noise may hide 1 % of the rows: counts do not show how large these are. So a constant column is
    reliable only from about n epsilon = 7,000 on. This was measured at n epsilon of 100 to 2,000
    with 0, -1 or 1e6 in 50 to 99 % of the rows, and an exponential, lognormal, Pareto(1.5) or
    uniform law in the others. For each law, 95 % or more of the means were in their intervals or
    not reliable.

    Intervals hold the mean less often in these cases:

    - A spike inside a heavy tail. With 40 in half of the rows and 50 Pareto(1.5) in the others,
      they held 89 % of 100 means at n epsilon of 500.
    - A narrow cluster. Of 2,000 rows, 77 % lay between 100 and 100.01, and the others were gamma
      with mean 1,400. Intervals held 27 % of 60 means at epsilon .2, and all at .5. With 10 % of
      lognormal(8, 1) in place of the gamma, they held 3 %, 17 % and, at 1, 95 %.
    - A tail that falls more slowly than intervals assume, or far rows that noise hides: a note of
      the statement says about how many. The guide on intervals has a table:
      docs/guide/intervals.md.
    - A rare code for missing numbers. With -999 in 2 % of the rows and 139 +- 4 in the others, they
      held 17 % at n epsilon of 1,500, 63 % at 3,000 and all at 6,000: make such cells missing.

    A row counts if all its numbers are finite, and if it is among ``max_rows`` of its person. The
    number of these rows is released first, for 2 % of the squared Gaussian-DP parameter (under
    zero-out 3 %). If it is below n by more than three deviations of its noise, the mean is that of
    these rows, and a note says so. Otherwise a row that does not count has the coarse centre as its
    value; in a sparse matrix, which cannot be centred, zero.

    Histograms distinguish sizes from 2^-64 (5.4e-20) to 2^64 (1.8e19), and count smaller values as
    zeros. If only zeros are detected, the noise is that of a column whose values reach 1, and
    ``reliable`` is False, because other values may be larger. If most values are beyond 2^64, the
    column is not found: ``reliable`` is False, and the value is noise. Multiply such a column by a
    public number first, or give a ``threshold``.

    ``groups`` says which rows belong to one person. ``by`` gives a mean for each category of rows,
    by one or two columns with declared ``categories``. Categories are disjoint, so they share one
    budget (parallel composition), and noise in a sum does not grow with their number. They also
    share one range for clipping, so a category of small values has the noise that large ones need.
    A missing cell is then left out of its own column alone, and ``method`` must not be given.
    A loop over k filtered tables is charged k times, and publishes how many rows each group has.

    Parameters
    ----------
    x : array of shape (n,) or (n, d), CSR matrix, frame, mapping, table of `open_table` or path
        Numbers. Rows with a non-finite number contribute nothing. A list is one column, whatever
        its cells hold, and a cell that is no number is missing: for several columns pass an array
        or a data frame.
    epsilon : float
        Privacy budget, above 0.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    method : str, default="clipped"
        All methods find a coarse range first, then the mean. ``"clipped"`` shortens rows to an l2
        norm (Kamath, Singhal, Ullman 2020, Algorithm 4). ``"clamped"`` clamps entries; with
        ``blocks`` > 1 it is the median of means of Xie et al., Algorithm 3, and of Kamath, Liu,
        Zhang 2022, theorem 5.2. ``"truncated"`` counts entries beyond the threshold as 0 (Tao, Wu,
        Cheng, Wang 2022, Algorithm 1; with ``blocks`` > 1 Algorithm 3). ``"catoni"`` is Holland
        2019, Wang, Xiao, Devadas, Xu 2020, equation 12, and Kamath, Liu, Zhang 2022, theorem 5.4.
        ``"ksu"`` is the median of noisy means of groups (Kamath, Singhal, Ullman 2020, Algorithm
        2). ``"coinpress"`` is Biswas et al. 2020.
    threshold : float or None, default=None
        Where to clip, in the units of ``x``, around ``centre``. Then no scales and no count are
        released, and a row that does not count is taken to lie at ``centre``. With
        ``"coinpress"`` it bounds the deviation of every column, and half the distance of its mean
        from the centre. `truncation_threshold`, `median_of_means_threshold` and
        `projection_threshold` give those of the papers for known moments.
    centre : float, array of shape (d,) or None, default=None
        Public point that a given ``threshold`` is measured from; None for 0.
    blocks : int or None, default=None
        Number of groups whose median is taken; None for 15 with ``"ksu"``, else 1.
    smoothing : float, default=3.0
        beta of the Catoni mean, from 0.3 to 100: the precision of its multiplicative noise.
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
    by : str, sequence of str or None, default=None
        One column, or two, to group by.
    categories : mapping of str to sequence, sequence or None, default=None
        Column to its categories; of one column a list will do.

    Returns
    -------
    MeanEstimate
        ``float(result)`` or ``result.value``; ``result.privacy_`` is the statement.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If released numbers show that a mean is not reliable, or that many rows do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_mean
    >>> x = np.random.default_rng(0).pareto(2.5, 100_000)
    >>> estimate = private_mean(x, epsilon=1.0, noise="simulated", random_state=0)
    >>> bool(abs(float(estimate) - x.mean()) < 0.05)
    True
    """
    if by is not None and (method, threshold, centre, blocks) != ("clipped", None, None, None):
        raise InvalidInput(
            "Means of groups are taken by the default method alone.",
            "by= goes with the default method: leave the others out.",
            cli="Leave --method out, or --by.",
        )
    require_by(by, categories)
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    x, promised = promised.over(x)
    if by is not None:
        estimate = _of_groups(tabled(x, by=by, categories=categories), promised)
        for text in estimate.warnings_:
            warn(text, AccuracyWarning)
        return estimate
    vector, x = _as_columns(opened(x))
    curator = Curator(x, **promised.options(f"private_mean({method})"))
    promised.warn(curator.problem.n)
    names = _names(x)
    estimate = mean_of(
        curator, method=method, threshold=threshold, centre=centre, blocks=blocks,
        smoothing=smoothing,
    )  # fmt: skip
    for text in estimate.warnings_:
        warn(text, AccuracyWarning)
    if vector:
        return estimate.of_one()
    return replace(estimate, columns=names or tuple(f"x{j}" for j in range(curator.problem.d)))


def _names(x: Any) -> tuple[str, ...]:
    """Of every mean, its column, or the category of its column; nothing of an array."""
    names = x.kept() if is_file(x) else column_names(x) or ()
    categories = x.categories if is_file(x) else {}
    return tuple(
        said
        for name in names
        for said in [f"{name}={one}" for one in categories.get(name, ())] or [str(name)]
    )


def _of_groups(table: Tabled, promised: Promised) -> MeanEstimate:
    """Means of all columns of numbers, in each group of rows."""
    if not table.columns:
        raise InvalidInput("There is no column of numbers to take the mean of.")
    curator = table.curator(promised, "private_mean(by)")
    asked = ColumnMoments(columns=table.columns, by=table.by)
    multiplier = calibrated(curator, lambda m: asked.plan(m, curator.problem))
    moments = asked.run(curator, multiplier)
    known = moments.reliable & (curator.problem.max_rows == 1)
    sampling = np.where(
        known, moments.deviation / np.sqrt(np.maximum(moments.count, 1.0)), math.nan
    )
    count, d = int(np.sum(~moments.reliable)), moments.reliable.size
    warned, notes = (
        (some_of(text, count, d, "mean"),) if count else () for text in (NOT_RELIABLE, NO_GROUP)
    )
    return MeanEstimate(
        moments.mean, moments.noise_std, sampling, moments.below, moments.above, moments.reliable,
        state(curator, notes), warned, table.groups, table.names,
    )  # fmt: skip


def mean_of(
    curator: Curator, *, method: Method = "clipped", threshold: float | None = None,
    centre: ArrayLike | None = None, blocks: int | None = None, smoothing: float = 3.0,
    errors: bool = False, hidden: str = "",
) -> MeanEstimate:  # fmt: skip
    """The private mean of a curator's columns, (d,); parameters as in `private_mean`.

    ``errors``: the columns are errors of a model (`CutRange`). ``hidden``: a note on the rows that
    noise hides, in the words of the caller, who also tells which columns are doubtful.
    """
    if method not in METHODS:
        raise InvalidInput(f"method must be one of {', '.join(METHODS)}, got {told(method)}.")
    if threshold is not None and not 0 < real("threshold", threshold) < math.inf:
        raise InvalidInput(f"threshold must be positive and finite, got {threshold!r}.")
    if method == "coinpress" and (curator.sparse or blocks not in (None, 1)):
        raise InvalidInput(
            "CoinPress centres the columns again and again, which a sparse matrix does not allow. "
            "It has no blocks. Use method='clipped'."
        )
    groups = min(GROUPS, curator.problem.n) if method == "ksu" else 1
    groups = groups if blocks is None else require_whole("blocks", blocks, 1)
    point = _centre(centre, threshold, curator)
    return _Mean(method, threshold, point, groups, smoothing, errors, hidden).run(curator)


def _as_columns(x: Any) -> tuple[bool, Any]:
    """Whether x is one column given as a vector, and x as records."""
    vector = is_column(x)
    if not (vector or is_file(x)) and column_names(x) is None:
        require_shape(x)
    return vector, {name_of(x): x} if vector else x


def _centre(
    centre: ArrayLike | None, threshold: float | None, curator: Curator
) -> NDArray[np.float64]:
    """The public centre, (d,); refused where it could not be used."""
    d = curator.problem.d
    if centre is None:
        return np.zeros(d)
    point = public_numbers(centre, "centre")
    if threshold is None:
        raise InvalidInput("centre goes with a threshold; without one the centre is estimated.")
    if point.shape not in ((), (d,)) or not np.isfinite(point).all():
        raise InvalidInput(f"centre must be a finite number, or {d} of them.")
    if curator.sparse and point.any():
        raise InvalidInput("A sparse matrix cannot be centred; leave centre out.")
    return np.broadcast_to(point, (d,)).copy()


@dataclass(frozen=True)
class _Mean:
    """How many rows count, and scales, unless a threshold is given; one release of a robust mean.

    Rows that do not count add nothing to a sum. So what is a mean over n is divided by the part
    that counts, where the count says for sure that it is less than 1.
    """

    method: Method
    threshold: float | None
    centre: NDArray[np.float64]
    blocks: int
    smoothing: float
    errors: bool
    hidden: str

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        stage = self._stage()
        if stage is not None:
            last = stage.plan(multiplier, problem)
        else:
            answer = problem.means(self._mean(1.0))
            last = (Round(stage="mean", events=(GaussianNoise(multiplier).event(answer),)),)
        if self.threshold is not None:
            return last
        counted = self._counting(multiplier).event(problem.histogram(1, 1))
        count = Round(stage="rows that count", events=(counted,))
        return compose((count,), RANGES.plan(multiplier, problem), last)

    def run(self, curator: Curator) -> MeanEstimate:
        """The mean, for the whole budget of the curator."""
        multiplier = calibrated(curator, lambda m: self.plan(m, curator.problem))
        n, d = curator.problem.n, curator.problem.d
        if self.threshold is not None:
            value, std = self._last(
                curator, multiplier, np.ones(d), self.threshold, self.centre, 1.0
            )[:2]
            unknown, none, yes = np.full(d, math.nan), np.zeros(d), np.ones(d, dtype=np.bool_)
            return MeanEstimate(value, std, unknown, none, none, yes, state(curator))
        part, part_std, hidden_std = self._part(curator, multiplier)
        found, ranges = RANGES.run(curator, multiplier, part)
        rows, price = max(1, round(part * n)), multiplier * curator.problem.max_rows / n
        scales, threshold = self._scales_and_threshold(found, price)
        value, std, ends = self._last(curator, multiplier, scales, threshold, found.centres, part)
        ranges = [replace(one, errors=self.errors) for one in ranges]
        away = np.abs(value - found.centres)
        std = np.hypot(std, away * part_std / part)
        clipped = self._clipped(ranges, ends, found)
        clipped += np.where(
            [value < found.centres, value > found.centres], NOISE_BOUND * hidden_std * away, 0
        )
        reliable = found.detected & np.isfinite(clipped).all(axis=0)
        notes = () if self.hidden else _doubts(found, reliable)
        notes += (UNSURE,) * RANGES.unsure(multiplier, curator.problem)
        lost, warned = lost_rows(part, part_std, n, OF_THESE, text=curator.from_text)
        hidden = self.hidden or HIDDEN_ROWS
        notes += (*lost, *RANGES.hiding(hidden, multiplier, curator.problem))
        known = reliable & (self.blocks == 1) & (curator.problem.max_rows == 1)
        sampling = np.where(known, found.deviations / math.sqrt(rows), math.nan)
        if not reliable.all():
            count = int(np.sum(~reliable))
            warned = (some_of(NOT_RELIABLE, count, d, "mean"), *warned)
        below, above = clipped
        return MeanEstimate(
            value, std, sampling, below, above, reliable, state(curator, notes), warned
        )

    def _last(
        self, curator: Curator, multiplier: float, scales: Doubles, threshold: float,
        centres: Doubles, part: float,
    ) -> tuple[Doubles, Doubles, Doubles]:  # fmt: skip
        """Mean, deviation of its noise, and distance from which on values are clipped."""
        stage, ends = self._stage(), scales * threshold
        if stage is not None:
            return stage.run(curator, multiplier, ends, centres, part)
        map_ = FeatureMap.of(len(scales), 1 / scales, -centres / scales)
        answer = curator.everyone(map_).means(self._mean(threshold))
        noise = GaussianNoise(multiplier)
        value = centres + scales * answer.release(noise) / part
        return value, noise.event(answer.sensitivity).std * scales / part, ends

    def _clipped(self, ranges: Sequence[CutRange], ends: Doubles, found: Summary) -> Doubles:
        """What the means may have lost (below and above, d), where values beyond are clipped."""
        beyond = np.array([r.beyond(end) for r, end in zip(ranges, ends, strict=True)])
        rows, lost, _ = beyond.transpose(2, 1, 0)
        if self.method == "truncated":  # values beyond count as 0
            lost = lost + ends * rows
        if self.method == "catoni":
            lost = (
                lost + found.deviations * (found.deviations / ends) * (1 + 1 / self.smoothing) / 2
            )
        if self.method in ("clipped", "coinpress"):  # others shrink the same row
            every = rows.sum(axis=0)
            lost = lost + found.deviations * np.minimum(every.sum() - every, 1.0)
        return np.asarray(lost)

    def _counting(self, multiplier: float) -> GaussianNoise:
        return GaussianNoise(multiplier / math.sqrt(2 * COUNT_FRACTION))

    def _part(self, curator: Curator, multiplier: float) -> tuple[float, float, float]:
        """The part of the n rows that counts, its deviation, and that of lost rows noise hides.

        At least one of the two deviations is 0: the count shows lost rows, or it does not.
        """
        answer, noise = curator.everyone().histogram((0,), [0.0]), self._counting(multiplier)
        std = noise.event(answer.sensitivity).std
        n = curator.problem.n
        part, deviation = usable_rows(answer.release(noise), std, n)
        return part, deviation, 0.0 if deviation else math.sqrt(2) * std / n

    def _stage(self) -> CoinPress | MedianOfNoisyMeans | None:
        """What finds the mean in the coarse range, where it is more than one release."""
        if self.method == "coinpress":
            return CoinPress()
        return MedianOfNoisyMeans(groups=self.blocks) if self.method == "ksu" else None

    def _scales_and_threshold(self, found: Summary, noise: float) -> tuple[Doubles, float]:
        """``noise`` is that of the mean of one column that is clipped at 1."""
        d = len(found.scales)
        if self.method == "clipped":
            longest = float(np.max(found.tails / found.scales))
            return found.scales, math.sqrt(d) - 1 + longest
        if self.method == "catoni":
            # Balances the bias v (1 + 1/beta) / (2 s) against noise that is linear in s.
            slope = max(noise * math.sqrt(d) * catoni_bound(self.smoothing), 1e-12)
            wide = math.sqrt((1 + 1 / self.smoothing) / (2 * slope))
            return found.deviations * wide, 1.0
        return found.deviations if self.method == "coinpress" else found.tails, 1.0

    def _mean(self, threshold: float) -> RobustMean:
        if self.method == "clipped":
            return ClippedMean(threshold, self.blocks)
        if self.method == "clamped":
            return ClampedMean(threshold, self.blocks)
        if self.method == "truncated":
            return TruncatedMean(threshold, self.blocks)
        return SmoothedCatoniMean(threshold, self.smoothing, self.blocks)


def _doubts(found: Summary, reliable: NDArray[np.bool_]) -> tuple[str, ...]:
    """What the statement should say of the columns that may not have been found."""
    counts = {
        UNSEEN: ~found.detected,
        ZEROS: found.only_zeros,
        UNBOUNDED: found.detected & ~found.only_zeros & ~reliable,
    }
    return tuple(
        some_of(text, int(np.count_nonzero(these)), len(reliable), "column")
        for text, these in counts.items()
        if these.any()
    )
