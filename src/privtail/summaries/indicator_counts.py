"""Which declared indicators occur: counts of categories, of bins, and of other indicators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privtail.trusted.batch import Batch
from privtail.trusted.events import Plan, Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sensitive import Sensitive


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
        answers = [problem.cell_counts(1, 1, len(levels)) for levels in problem.categories]
        if others := _others(problem):
            answers.append(problem.cell_counts(len(others), 1))
        noises = self._noises(problem)
        events = tuple(noise.event(one) for noise, one in zip(noises, answers, strict=True))
        return (Round(stage="declared indicators", events=events),)

    def detected(self, batch: Batch, deviations: float) -> NDArray[np.bool_]:
        """(d,) whether an indicator has more rows than so many deviations of the noise.

        ``batch`` has the raw features. True for all other features.
        """
        noises = self._noises(batch.problem)
        found = np.ones(batch.problem.d, np.bool_)
        for noise, (columns, answer) in zip(noises, _counted(batch), strict=True):
            counts = answer.release(noise).reshape(-1, 2)[:, 1]
            found[list(columns)] = counts > deviations * noise.event(answer.sensitivity).std
        return found

    def _noises(self, problem: Problem) -> list[GaussianNoise]:
        """That of each category, and of all others: a row is in one cell of each column counted."""
        columns = [1 for _ in problem.categories] + [len(_others(problem))]
        return [
            replace(self.noise, multiplier=self.noise.multiplier * math.sqrt(sum(columns) / own))
            for own in columns
            if own
        ]


def _others(problem: Problem) -> tuple[int, ...]:
    """Declared indicators of no category, such as those of a spline."""
    return tuple(sorted(set(problem.indicators).difference(*problem.categories)))


def _counted(batch: Batch) -> Iterator[tuple[tuple[int, ...], Sensitive]]:
    """Indicators, with the counts of rows below and above 1/4: of a category, none below."""
    for levels in batch.problem.categories:
        yield levels, batch.cell_counts(levels[:1], [-1.0], by=[levels])
    if others := _others(batch.problem):
        yield others, batch.cell_counts(others, [0.25])
