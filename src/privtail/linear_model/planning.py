"""What a fit will release, before there is any data."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby

from privtail.errors import DeltaWarning, NoiseWarning, PrivacyWarning, warn
from privtail.promised import large_delta
from privtail.spelling import counted, printable
from privtail.statement import hanging
from privtail.statement.page import relative_cost
from privtail.trusted.accountants import Cost, cost
from privtail.trusted.budget import Budget
from privtail.trusted.events import SMOOTH, Event, Plan, Round
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.problem import Problem

FOUND = 1.645
"""Deviations of noise above the threshold at which a label is found 19 times in 20."""


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """The releases of a fit, their cost and their noise, from public numbers alone.

    Iterating gives the rounds of the releases.

    Parameters
    ----------
    label : str
        The estimator.
    problem : Problem
        Public sizes: n, d (encoded features), outputs, intercept.
    budget : Budget
        What the fit may cost.
    multiplier : float
        Common factor on all noise; 0 without privacy.
    releases : tuple of Round
        The rounds, in order.
    standardized : bool, default=False
        Whether features are standardized, so that a gradient is as long as a typical row of those
        that may have slopes. If not, gradients have length 1.
    scaled : bool, default=True
        Whether the algorithm finds units of features and target. If not, it runs in yours.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPRidge
    >>> plan = DPRidge(epsilon=1.0).plan(n=20_000, d=10)
    >>> plan.warnings
    ()
    """

    label: str
    problem: Problem
    budget: Budget
    multiplier: float
    releases: Plan
    standardized: bool = False
    scaled: bool = True

    @functools.cached_property
    def cost(self) -> Cost:
        """Cost of the releases: ``cost.epsilon(delta)``, ``cost.mu``, ``cost.rho``."""
        return cost(self.releases, self.budget.neighbours)

    @property
    def epsilon(self) -> float:
        """Epsilon of the releases at the budget's delta; at most the budget's."""
        return self.cost.epsilon(self.budget.delta)

    @property
    def shares(self) -> tuple[float, ...]:
        """(rounds,) share of the cost of each round, to first order; of mu^2 if all are Gaussian.

        NaN without noise.
        """
        costs = [
            math.fsum(relative_cost(r, e, self.budget.neighbours) for e in r.events)
            for r in self.releases
        ]
        total = math.fsum(costs)
        return tuple(one / total if 0 < total < math.inf else math.nan for one in costs)

    @property
    def steps(self) -> int:
        """Gradients that will be released."""
        return sum(r.times for r, _ in self._asked("gradient", "trimmed means"))

    @property
    def passes(self) -> int:
        """How many times the rows are read, at most: once for each release.

        Trimmed means and functions on parts may read a file more often.
        """
        return sum(r.times * (1 + math.isinf(e.unit)) for r in self.releases for e in r.events)

    @property
    def bytes_per_pass(self) -> int:
        """How many bytes a pass reads, of rows that are decoded: 8 for every number of a row."""
        return 8 * self.problem.n * (self.problem.d + 1)

    @property
    def noise_error(self) -> float:
        """What noise alone adds to one slope, as a standard deviation.

        The slope is standardized: in target scales per feature scale, or in log-odds or logarithms
        of the prediction per feature scale. A strong effect is about 1. This is a guide and no
        bound: the noise of the mean gradient over the second half of the steps, for gradients of
        typical size and features without correlation. Infinite if the budget is so small that only
        a constant is fitted. NaN if no gradient is released as a sum, because noise that follows a
        smooth sensitivity has a private size. NaN, too, for an algorithm that runs in your units,
        because the plan does not know the size of a slope there.
        """
        if self.multiplier == 0:
            return 0.0
        if self._constant:
            return math.inf
        steps = [(r, e) for r, e in self._asked("gradient") if r.times]
        if not (steps and self.scaled):
            return math.nan
        r, event = steps[-1]
        length = math.sqrt(self._moving) if self.standardized else 1.0
        return event.std * length * math.sqrt(2 / r.times)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What should be known before the budget is spent."""
        return tuple(str(warning) for warning in self._warnings())

    def warn(self) -> None:
        """Issue the warnings."""
        for warning in self._warnings():
            warn(warning)

    def _warnings(self) -> Iterator[PrivacyWarning]:
        n = self.problem.n
        if not self.budget.private:
            return
        large = large_delta(self.budget, n, "This fit")
        if large:
            yield DeltaWarning(large)
        for _, event in self._asked("labels"):
            enough = self._enough(event)
            if n < 2 * enough:
                yield NoiseWarning(
                    f"A label is found if about {enough:,} rows hold it, which is too many for two "
                    f"labels of n = {n:,} rows. Declare the classes."
                )
        if self.noise_error == math.inf:
            yield NoiseWarning(
                "The budget is so small that only a constant is fitted, without slopes. More rows "
                "or a larger epsilon would help."
            )
            return
        away = self.noise_error * math.sqrt(self._moving)
        if away > 1:
            yield NoiseWarning(
                f"Noise alone moves the prediction of a typical row by about {away:.2g} target "
                "scales (of labels: log-odds). Only strong effects of few features can be found; "
                "if none is, the model is a private constant. More rows, a larger epsilon or "
                "fewer features would help."
            )

    def _enough(self, labels: Event) -> int:
        """How many rows must hold a label for it to be found."""
        mechanism = StabilityHistogram(labels.scale / labels.radius, labels.delta)
        return enough(mechanism, self.problem)

    def _asked(self, *questions: str) -> list[tuple[Round, Event]]:
        """Releases of these questions, the last of each round.

        If some of them release vectors, selections and single numbers are left out.
        """
        asked = [
            (i, e) for i, r in enumerate(self.releases) for e in r.events if e.question in questions
        ]
        vectors = [(i, e) for i, e in asked if e.law != "noisy_max" and e.coordinates > 1]
        return [(self.releases[i], e) for i, e in dict(vectors or asked).items()]

    @property
    def _moving(self) -> int:
        """Coordinates of a gradient that count: those of all features, or of the selected ones."""
        rows = self.problem.rows
        selections = [e for r in self.releases for e in r.events if e.law == "noisy_max"]
        if not (self.standardized and selections):
            return rows
        return min(rows, max(e.picks for e in selections) + int(self.problem.intercept))

    @property
    def _constant(self) -> bool:
        """Whether only the intercept is fitted: by counts and mean derivatives alone."""
        questions = {e.question for r in self.releases for e in r.events}
        return questions <= {"histogram", "derivatives", "labels", "invalid rows"}

    # ---------------------------------------------------------------- shown

    def __iter__(self) -> Iterator[Round]:
        return iter(self.releases)

    def __len__(self) -> int:
        return len(self.releases)

    def to_text(self) -> str:
        """The plan as a readable page."""
        p, mu, slack = self.problem, self.cost.mu, self.cost.slack
        but_for = f" but for {slack:.3g}" if slack else ""
        spent = f"ε = {self.epsilon:.6g} at δ = {self.budget.delta:g}"
        rows, features = counted(p.n, "row"), counted(p.d, "feature")
        passes = counted(self.passes, "pass", "passes")
        lines = [
            f"{self.label} on n = {rows}, d = {features}: nothing was read",
            f"cost         {spent}" + ("" if mu is None else f"; μ = {mu:.6g}{but_for}"),
            f"neighbours   {self.budget.neighbours}",
            f"multiplier   {self.multiplier:.6g}",
            f"noise error  {self._error()}",
            f"reading      {passes} over {self.bytes_per_pass / 1e9:.3g} GB, at most",
            "releases",
        ]
        entries = zip(self.releases, self.shares, strict=True)
        for stage, group in groupby(entries, lambda entry: entry[0].stage):
            rounds, shares = zip(*group, strict=True)
            share = math.fsum(shares)
            of_cost = "" if math.isnan(share) else f", {share:.1%} of the cost"
            lines += [f"  {stage}{of_cost}:"] * bool(stage)
            indent = "    " if stage else "  "
            lines += [indent + line for r in rounds for line in self._lines(r)]
        return "\n".join([*lines, *(hanging("warning      ", text) for text in self.warnings)])

    def _lines(self, r: Round) -> Iterator[str]:
        """The lines of one round: each release, its size and its noise."""
        protected = "row" if self.problem.max_rows == 1 else "person"
        for e in r.events:
            whose = "a smooth sensitivity" if e.law in SMOOTH else f"what one {protected} adds"
            noise = f"noise {e.scale / e.radius:.3g} x {whose}" if e.scale else "no noise"
            yield f"{e.question:<16} {r.times:>5,} x {counted(e.coordinates, 'number')}, {noise}"
            if e.question == "labels":
                rows = counted(self._enough(e), "row")
                yield f"{'':<16}a label is found if {rows} or more hold it"
                yield f"{'':<16}the rest is planned for up to {self.problem.outputs} classes"

    def _error(self) -> str:
        error = self.noise_error
        if not self.scaled and math.isnan(error):
            return "not known: the algorithm runs in the units of your data"
        if math.isnan(error):
            return "not public: the noise follows a smooth sensitivity"
        if error == math.inf:
            return "none: at this budget only a constant is fitted"
        return f"{error:.3g} in a standardized slope"

    def __str__(self) -> str:
        return printable(self.to_text())

    def __repr__(self) -> str:
        return printable(
            f"<FitPlan: {self.label}, n={self.problem.n}, d={self.problem.d}, "
            f"ε = {self.epsilon:.4g} at δ = {self.budget.delta:g}, "
            f"noise error {self._error()}>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"


def enough(mechanism: StabilityHistogram, problem: Problem) -> int:
    """How many rows must hold a label for it to be found 19 times in 20."""
    counted = problem.labels()
    noise = FOUND * mechanism.multiplier * counted.radius.l2
    return math.ceil((mechanism.threshold(counted) + noise) * counted.unit)
