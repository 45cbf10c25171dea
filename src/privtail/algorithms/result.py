"""What an algorithm returns: released things only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """A released model.

    Attributes
    ----------
    w : (d + intercept, K) parameters; the intercept is the last row.
    steps : number of releases of the main loop, fixed by the plan.
    multiplier : noise multiplier that was used.
    notes : what the releases say about the model that its user should know, in sentences.
    """

    w: Doubles
    steps: int
    multiplier: float
    notes: tuple[str, ...] = ()


def starting_point(problem: Problem, start: ArrayLike | None) -> Doubles:
    """``start`` as (rows, K) doubles; zeros if None."""
    shape = (problem.rows, problem.outputs)
    return np.zeros(shape) if start is None else np.array(start, dtype=np.float64).reshape(shape)
