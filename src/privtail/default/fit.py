"""The state of a fit, which its stages read and write, and the protocol of a stage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.default.descent import DescentRun
from privtail.default.preconditioner import Preconditioner
from privtail.default.tuning import Tuning
from privtail.domains import Domain
from privtail.losses import LABELS, Loss, SquaredLoss
from privtail.summaries.residuals import ResidualHistogram
from privtail.summaries.standardization import Standardization, tail_adjusted
from privtail.summaries.summary import MAX_REACH, Summary
from privtail.trusted.batch import Batch
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, compose
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """The result of the acceptance test.

    Attributes
    ----------
    kept : whether the slopes are kept.
    significant : whether the improvement over the intercept-only model is significant.
    gains : two mean gains over the intercept-only model, in standard deviations of their noise;
        infinite without a test. For labels, the first gain and the largest of the others.
    margin_factor : the factor by which margins of labels are shrunk.
    margin_factor_std : the standard deviation of the best factor, given the released gains.
    """

    kept: bool = True
    significant: bool = True
    gains: tuple[float, float] = (math.inf, math.inf)
    margin_factor: float = 1.0
    margin_factor_std: float = 0.0


@dataclass
class Fit:
    """The state of a fit: what was released so far, and what follows from it.

    Models have the units of standardized features, (x - location) / scale. A stage reads attributes
    that earlier stages have set. Before the column summaries, features have the scale 1.

    Attributes
    ----------
    curator, given_loss, domain, tuning : what the fit was called with. For counts and amounts,
        `StartAtMeanAmount` multiplies the domain by a power of the mean.

    Columns:

    summary : location, scale and length of the tail of each column.
    standard : the map from raw to standardized features, and the summary of a numeric target.
    rarest_label : the frequency of the rarest label, times the number of labels; 1 if all are even.
    labels_even : whether labels likely have about equal frequencies; for a model without an
        intercept, whether the noise of their counts is small.
    dispersion : the mean of (y / mean - 1)^2; of counts less that of exposures, and at least 1 /
        mean (Poisson).
    exposure : the mean exposure of the rows; 1 without exposures.
    min_threshold : of counts and amounts, the lowest threshold at which clipping takes no more than
        `Tuning.clipped_fraction` off their mean.
    usable_rows : the fraction of rows without missing or infinite numbers and not beyond
        ``max_rows``, and the standard deviation of its noise.

    Model:

    loss : the loss, in the scale of the target.
    w : (rows, K) the model; its last row is the intercept.
    intercept_only : (rows, K) the model where the descent begins, and that the acceptance test
        compares with. It is returned with an intercept that is lower by ``excess_move``.
    margin_range : (2,) or (K, 2) ends of predicted margins of labels, or of logarithms of amounts.
    reach : features, and predictions of numbers, are clipped at this multiple of the length of
        their tails. `LimitExtrapolation` chooses it for numbers; otherwise it stays `MAX_REACH`.

    Descent:

    preconditioner : the metric of the steps; a multiple of the identity until it is released.
    residuals : the histogram of the residuals; empty until it is released.
    threshold : where residuals are clipped.
    steps, runs : the number of gradients, and the descents, so far.
    shrinkage : (d,) by how much `ShrinkSlopes` shrank each slope.
    gradient_moments : second moments (rows, rows) of gradients, and the deviation of their noise.

    Messages:

    decision : the result of the acceptance test.
    overshoots : whether extrapolated predictions are surely worse than clipped ones.
    target_doubtful : whether noise may have been taken for the target.
    notes : further messages.
    """

    curator: Curator
    given_loss: Loss
    domain: Domain
    tuning: Tuning
    loss: Loss = field(init=False)
    summary: Summary = field(init=False)
    standard: Standardization = field(init=False)
    intercept_only: Doubles = field(init=False)
    excess_move: float = 0.0
    rarest_label: float = 1.0
    labels_even: bool = False
    dispersion: float = 1.0
    exposure: float = 1.0
    min_threshold: float = 0.0
    usable_rows: tuple[float, float] = (1.0, 0.0)
    preconditioner: Preconditioner = field(init=False)
    runs: tuple[DescentRun, ...] = ()
    residuals: ResidualHistogram = field(default_factory=ResidualHistogram.unknown)
    threshold: float = math.inf
    steps: int = 0
    w: Doubles = field(init=False)
    shrinkage: Doubles = field(init=False)
    gradient_moments: tuple[Doubles, float] | None = None
    margin_range: tuple[float, float] | Doubles = (-math.inf, math.inf)
    reach: float = MAX_REACH
    decision: Decision = field(default_factory=Decision)
    overshoots: bool = False
    target_doubtful: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.loss = self.given_loss
        self.w = np.zeros((self.problem.rows, self.problem.outputs))
        self.intercept_only, self.shrinkage = self.w, np.zeros(self.problem.d)
        self.preconditioner = Preconditioner.without_moments(np.ones(self.problem.rows, np.bool_))
        self.summary = replace(Summary.declared(self.problem.d), scales=np.ones(self.problem.d))
        self.standard = Standardization.of(self.summary, self.problem, sparse=self.curator.sparse)

    def standardize(self, summary: Summary) -> None:
        """Standardize columns. Features are not centred if sparse or if there is no intercept."""
        self.summary = summary
        sizes = summary.widths if self.has_labels else summary.deviations
        summary = tail_adjusted(summary, sizes, self.tuning.heavy_tail_ratio, self.problem.d)
        self.standard = Standardization.of(summary, self.problem, sparse=self.curator.sparse)
        self.loss = self.standard.loss(self.loss)

    @property
    def problem(self) -> Problem:
        """Public sizes."""
        return self.curator.problem

    def ranges(self) -> Doubles:
        """(columns, 2) ranges to which columns are clipped.

        Noise hides tails, so the range of a target has at least `Tuning.sure` deviations on both
        sides, times `Fit.reach` if that is below 1.
        """
        found, target = self.summary.ranges(self.reach), self.standard.target
        least = self.tuning.sure * min(1.0, self.reach) * target.deviation
        for row in found[self.problem.d :]:
            row[:] = min(row[0], target.location - least), max(row[1], target.location + least)
        return found

    def prediction_ranges(self) -> PredictionRanges:
        """The ranges to which standardized features and margins are clipped in predictions."""
        ranges, d = self.ranges(), self.problem.d
        margins = ranges[d] if len(ranges) > d else self.margin_range
        return PredictionRanges.of(self.standard.ranges(ranges[:d], self.problem), margins)

    @property
    def has_labels(self) -> bool:
        """Whether the target holds labels."""
        return self.given_loss.targets in LABELS

    @property
    def mostly_zero(self) -> bool:
        """Whether the loss is squared and the target has the median 0: few rows carry its mean."""
        return isinstance(self.given_loss, SquaredLoss) and self.standard.target.median_zero

    def everyone(self) -> Batch:
        """All records, with standardized features."""
        return self.curator.everyone(self.standard.map)

    def rounds(self, times: int) -> Iterator[Batch]:
        """All records, with standardized features, in several rounds."""
        return self.curator.rounds(Everyone(), times, self.standard.map)


class Stage(Protocol):
    """A part of a fit. It plans rounds of releases, and asks for one `Fit.everyone` in each."""

    def plan(self, problem: Problem) -> Plan:
        """All releases of the stage, from public numbers."""
        ...

    def run(self, fit: Fit) -> None:
        """Make the planned releases, and update the state of the fit."""
        ...


def planned(stages: Iterable[Stage], problem: Problem) -> Plan:
    """The releases of these stages, in their order."""
    return compose(*(stage.plan(problem) for stage in stages))
