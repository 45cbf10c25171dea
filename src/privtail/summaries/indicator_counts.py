"""Which declared indicators occur: counts of categories, of bins, and of other indicators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.batch import Batch
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem


class Counted(NamedTuple):
    """Indicators that one question counts, and the arguments of `Batch.cell_counts`.

    The upper of two cells holds the count of an indicator, in the group of its level or of all.
    """

    indicators: tuple[int, ...]
    columns: tuple[int, ...]
    edge: float
    by: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class IndicatorCounts:
    """Counts the rows of each category, and those in which each other indicator is at least 1/4.

    A row has one level of a category, so a replaced row moves the counts of all levels by sqrt 2
    in l2, and those of k other indicators by sqrt(2 k).

    Parameters
    ----------
    noise : that of one histogram. Counts share its budget in proportion to the squares of their
        sensitivities. So all have the same noise, and none has more than free columns would.
    """

    noise: GaussianNoise

    def plan(self, problem: Problem) -> Plan:
        """The counts, in one round."""
        counted, events = _counted(problem), []
        for one, noise in zip(counted, self._noises(counted), strict=True):
            answer = problem.cell_counts(len(one.columns), 1, math.prod(map(len, one.by)))
            events.append(noise.event(answer))
        return (Round(stage="declared indicators", events=tuple(events)),)

    def detected(self, batch: Batch, deviations: float) -> NDArray[np.bool_]:
        """(d,) whether an indicator has more rows than ``deviations`` times the noise.

        With an intercept a level is not used either if fewer than twice as many do not hold it: its
        slope would be noise, which rows of other levels, that noise hides, do not share.
        ``batch`` has the raw features. True for all other features.
        """
        problem = batch.problem
        found, counted = np.ones(problem.d, np.bool_), _counted(problem)
        levels = list(itertools.chain(*problem.categories)) if problem.intercept else []
        for one, noise in zip(counted, self._noises(counted), strict=True):
            answer = batch.cell_counts(one.columns, [one.edge], one.by)
            counts = answer.release(noise).reshape(-1, 2)[:, 1]
            least = deviations * noise.event(answer.sensitivity).std
            most = np.where(np.isin(one.indicators, levels), problem.n - 2 * least, math.inf)
            found[list(one.indicators)] = (counts > least) & (counts < most)
        return found

    def _noises(self, counted: Sequence[Counted]) -> list[GaussianNoise]:
        """The noise of each question: a row is in one cell of each column that is counted."""
        columns = [len(one.columns) for one in counted]
        return [
            replace(self.noise, multiplier=self.noise.multiplier * math.sqrt(sum(columns) / own))
            for own in columns
        ]


def _counted(problem: Problem) -> list[Counted]:
    """Each category of two levels or more, and all other indicators, such as those of a spline."""
    several = [levels for levels in problem.categories if len(levels) > 1]
    others = tuple(sorted(set(problem.indicators).difference(*several)))
    categories = [Counted(levels, levels[:1], -1.0, (levels,)) for levels in several]
    return categories + [Counted(others, others, 0.25)] * bool(others)
