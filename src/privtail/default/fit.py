"""What a fit has released so far, and what every stage of it has in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privtail.default.descent import Run
from privtail.default.preconditioner import Preconditioner
from privtail.default.tuning import Tuning
from privtail.domains import Domain
from privtail.losses import LABELS, Loss, SquaredLoss
from privtail.summaries.residuals import ResidualHistogram
from privtail.summaries.standardization import Standardization, tail_adjusted
from privtail.summaries.summary import FARTHER, Summary
from privtail.trusted.batch import Batch
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, compose
from privtail.trusted.maps import PredictionRanges
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Decision:
    """What the acceptance test found.

    Attributes
    ----------
    kept : whether the slopes are kept.
    significant : whether the improvement over the intercept-only model is significant.
    gains : two mean gains over the intercept-only model, in standard deviations of their noise. For
        labels they are the first gain and the largest of the others.
    part : the part of the margins of labels that is kept.
    part_deviation : the standard deviation of what that part should have been.
    """

    kept: bool = True
    significant: bool = True
    gains: tuple[float, float] = (math.inf, math.inf)
    part: float = 1.0
    part_deviation: float = 0.0


@dataclass
class Fit:
    """The state of a fit: what was released so far, and what follows from it.

    Models have the units of standardized features, (x - location) / scale. A stage reads attributes
    that earlier stages have set. Before the column summaries, features have the scale 1.

    Attributes
    ----------
    curator, given, domain, tuning : what the fit was called with; ``given`` is the loss. For
        counts and amounts, `StartAtMeanAmount` brings the domain to the unit of the mean.

    What is known of the columns:

    summary : location, scale and tail of each column.
    standard : the map from raw to standardized features, and what is known of a numeric target.
    rarity : the frequency of the rarest label, times the number of labels; 1 where all labels are
        equally frequent.
    even : whether the labels are likely about equally frequent. Without an intercept, whether noise
        is small.
    dispersion : of counts and amounts, the mean of (y / mean - 1)^2; for counts 1 / mean, as in a
        Poisson law.
    exposure : the mean exposure of the rows; 1 without one.
    least_threshold : of counts and amounts, the lowest threshold of residuals at which their mean
        is not lost.
    part_that_counts : of the n rows, and the standard deviation of its noise.

    The model:

    loss : the loss, once its unit is known.
    w : (rows, K) the model.
    constant : (rows, K) the intercept-only model. The descent begins there, and the acceptance test
        compares with it.
    margins : predicted margins of two labels, or logarithms of amounts, are clipped to this range.
        `CountLabels` sets it, and `AcceptLabels` narrows it; of amounts it is `StartAtMeanAmount`.
    reach : features, and predictions of numbers, are clipped so many tails from their location.
        `LimitExtrapolation` chooses it for numbers; else it stays `FARTHER`.

    The descent:

    preconditioner : the metric of the steps; all directions are alike before it is released.
    residuals : the histogram of the residuals; it is empty until they are measured.
    threshold : where residuals are clipped.
    steps : the number of gradients so far.
    runs : the runs of the descent that were made.
    shrunk : (d,) what shrinking took from each slope.

    What the user is told:

    decision : the result of the acceptance test.
    overshoots : whether extrapolated predictions are surely worse than clipped ones.
    unsure : whether the target may have been found in the wrong place.
    remarks, report : further messages, and released numbers for `Result.report`.
    """

    curator: Curator
    given: Loss
    domain: Domain
    tuning: Tuning
    loss: Loss = field(init=False)
    summary: Summary = field(init=False)
    standard: Standardization = field(init=False)
    constant: Doubles = field(init=False)
    rarity: float = 1.0
    even: bool = False
    dispersion: float = 1.0
    exposure: float = 1.0
    least_threshold: float = 0.0
    part_that_counts: tuple[float, float] = (1.0, 0.0)
    preconditioner: Preconditioner = field(init=False)
    runs: tuple[Run, ...] = ()
    residuals: ResidualHistogram = field(default_factory=ResidualHistogram.unknown)
    threshold: float = math.inf
    steps: int = 0
    w: Doubles = field(init=False)
    shrunk: Doubles = field(init=False)
    margins: tuple[float, float] = (-math.inf, math.inf)
    reach: float = FARTHER
    decision: Decision = field(default_factory=Decision)
    overshoots: bool = False
    unsure: bool = False
    remarks: tuple[str, ...] = ()
    report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.loss = self.given
        self.w = np.zeros((self.problem.rows, self.problem.outputs))
        self.constant, self.shrunk = self.w, np.zeros(self.problem.d)
        self.preconditioner = Preconditioner.without_moments(np.ones(self.problem.rows, np.bool_))
        self.summary = replace(Summary.declared(self.problem.d), scales=np.ones(self.problem.d))
        self.standard = Standardization.of(self.summary, self.problem, sparse=self.curator.sparse)

    def describe(self, summary: Summary) -> None:
        """Centre and scale the columns by this summary.

        Beside a numeric target, features with heavier tails get larger scales (`tail_adjusted`).
        """
        self.summary = summary
        if len(summary.scales) > self.problem.d:
            summary = tail_adjusted(summary, self.tuning.heavier_tails)
        self.standard = Standardization.of(summary, self.problem, sparse=self.curator.sparse)
        self.loss = self.standard.loss(self.loss)

    @property
    def problem(self) -> Problem:
        """Public sizes."""
        return self.curator.problem

    def ranges(self, reach: float | None = None) -> Doubles:
        """Ends (columns, 2), of a target `Tuning.sure` deviations or more: noise hides tails."""
        found, target = self.summary.ranges(reach or self.reach), self.standard.target
        usual = target.location + self.tuning.sure * target.deviation * np.array([-1.0, 1.0])
        for row in found[self.problem.d :]:
            row[:] = min(row[0], usual[0]), max(row[1], usual[1])
        return found

    def prediction_ranges(self, reach: float | None = None) -> PredictionRanges:
        """To what predictions clip standardized features and margins; with another ``reach``."""
        ranges, d = self.ranges(reach), self.problem.d
        margins = ranges[d] if len(ranges) > d else self.margins
        return PredictionRanges.of(self.standard.ranges(ranges[:d], self.problem), margins)

    @property
    def has_labels(self) -> bool:
        """Whether the target holds labels."""
        return self.given.targets in LABELS

    @property
    def mostly_zero(self) -> bool:
        """Whether squares are fitted to a target whose median is zero: few rows carry its mean."""
        return isinstance(self.given, SquaredLoss) and self.standard.target.median_zero

    def everyone(self) -> Batch:
        """All records, with standardized features."""
        return self.curator.everyone(self.standard.map)

    def rounds(self, times: int) -> Iterator[Batch]:
        """So many rounds of all records, with standardized features."""
        return self.curator.rounds(Everyone(), times, self.standard.map)


class Stage(Protocol):
    """One step of a fit: what it will release, and the release."""

    def plan(self, problem: Problem) -> Plan:
        """All releases of the stage, from public numbers."""
        ...

    def run(self, fit: Fit) -> None:
        """Make the planned releases, and put what follows from them into the fit."""
        ...


def planned(stages: Iterable[Stage], problem: Problem) -> Plan:
    """The releases of these stages, in their order."""
    return compose(*(stage.plan(problem) for stage in stages))


def run_stages(stages: Iterable[Stage], fit: Fit) -> None:
    """Run these stages in their order."""
    for stage in stages:
        stage.run(fit)
