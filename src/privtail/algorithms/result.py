"""What an algorithm returns: released things only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import InvalidInput
from privtail.trusted.problem import Problem

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Result:
    """A released model.

    Attributes
    ----------
    w : ndarray of shape (d + intercept, K)
        Parameters; the intercept is the last row.
    steps : int
        Number of releases of the main loop, fixed by the plan.
    multiplier : float
        Noise multiplier that was used.
    unit : float
        Released scale of a numeric target; 1 where it was not asked for.
    margin_range : tuple of float, or ndarray of shape (K, 2)
        Ends to which margins are clipped where counts or labels are predicted; of more than two
        labels there may be a pair for each.
    scales, centres : ndarray of shape (d,) or None
        Released scales of the features, and what they were centred at; None where they were not
        asked for.
    slopes : object or None
        What was released of the slopes, from which `privtail.inference` says how far they are off.
        None of an algorithm that hands over nothing of the kind.
    threshold : float or None
        From where the released model's Huber loss was linear, in units of the target; None where it
        was not chosen.
    ranges : ndarray of shape (d or d + 1, 2) or None
        In which the features, and a numeric target, may lie as far as was released of them;
        infinite where nothing was. None where they were not asked for.
    notes : tuple of str
        Sentences for the statement about what was found.
    report : mapping or None
        Released numbers by name, which explain the model; None if there are none. With
        ``algorithm="auto"``:

        - ``regime``: "all features", "few features", "intercept only", "without privacy", or
          "published algorithm" for one by name;
        - ``accepted``: whether the slopes are kept; ``reasons``: sentences why they are not;
        - ``gain_over_noise``: two mean gains of the acceptance test over the intercept-only model,
          in standard deviations of their noise;
        - ``feature_location``, ``feature_scale``, ``feature_used``; ``target_location`` and
          ``target_scale`` of a numeric target;
        - ``clipping_threshold`` of the last residuals (of squares, in units of the target), and
          ``row_length``, to which longer rows were shrunk (in scales of the features);
        - ``reach``, of numbers: how many lengths of their tails predictions may extend;
        - ``margins_kept``, of labels: the factor by which margins were shrunk.
    rows : tuple of float
        Fraction of the n rows that count, and the standard deviation of its noise; 1 and 0 unless
        it is surely less (`usable_rows`).
    """

    w: Doubles
    steps: int
    multiplier: float
    unit: float = 1.0
    margin_range: tuple[float, float] | Doubles = (-math.inf, math.inf)
    slopes: object | None = None
    notes: tuple[str, ...] = ()
    rows: tuple[float, float] = (1.0, 0.0)
    scales: Doubles | None = None
    centres: Doubles | None = None
    threshold: float | None = None
    ranges: Doubles | None = None
    report: Mapping[str, Any] | None = None

    def feature_range(self, problem: Problem) -> Doubles:
        """(d, 2) of what was released of the features; indicators lie in [0, 1]."""
        ranges = np.tile([-np.inf, np.inf], (problem.d, 1))
        if self.ranges is not None:
            ranges[:] = self.ranges[: problem.d]
        ranges[list(problem.indicators)] = 0.0, 1.0
        return ranges

    def fill(self, problem: Problem) -> Doubles:
        """(d,) what missing numbers count as: zero after centring; NaN where they drop their row.

        It lies in the range of its feature, so that clipping leaves it as it is.
        """
        found, places = np.full(problem.d, np.nan), list(problem.optional)
        centres = np.zeros(problem.d) if self.centres is None else self.centres
        found[places] = np.clip(centres, *self.feature_range(problem).T)[places]
        return found

    def target_range(self, d: int) -> Doubles:
        """(2,) of what was released of a numeric target; a constant is what was released."""
        if self.ranges is None or len(self.ranges) == d or not self.w[:d].any():
            return np.array([-np.inf, np.inf])
        return np.asarray(self.ranges[d])


def starting_point(problem: Problem, start: ArrayLike | None) -> Doubles:
    """``start`` as (rows, K) doubles; zeros if None."""
    shape = (problem.rows, problem.outputs)
    return np.zeros(shape) if start is None else np.array(start, dtype=np.float64).reshape(shape)


def require_no_start(start: ArrayLike | None) -> None:
    """Raise InvalidInput if there is a ``start``: the algorithm begins at a constant of its own."""
    if start is not None:
        raise InvalidInput("This algorithm begins at the intercept-only model. Leave out start.")
