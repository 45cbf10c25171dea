"""What `private_mean` releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privtail.coefficients import normal_quantile
from privtail.errors import InvalidInput
from privtail.spelling import printable, with_interval
from privtail.statement import Statement


def interval(value: Any, std: Any, confidence: float) -> NDArray[np.float64]:
    """Ends (..., 2): ``value`` -+ the two-sided normal quantile of ``confidence`` times ``std``."""
    reach = normal_quantile(confidence) * np.asarray(std, dtype=np.float64)
    return np.stack([value - reach, value + reach], axis=-1)


@dataclass(frozen=True)
class MeanEstimate:
    """A released mean.

    Attributes
    ----------
    value : float or ndarray of shape (d,)
        The mean, in the units of the column; a float for one column given as a vector.
    noise_std : float or ndarray of shape (d,)
        Standard deviation of the privacy noise in ``value``; may be published.
    sampling_std : float or ndarray of shape (d,)
        Estimate of the standard deviation that sampling brings into ``value``: released deviation /
        sqrt(n). NaN where no released number gives it: with a ``threshold``, with groups whose
        median is taken, for persons, whose rows are not independent, and for columns that are not
        reliable.
    clipped_below, clipped_above : float or ndarray of shape (d,)
        How far the mean of the rows may lie below, or above, the mean of the clipped rows: a bound
        from released counts. Infinite where nothing bounds it; 0 with a ``threshold``, for which no
        counts are released.
    reliable : bool or ndarray of shape (d,)
        Whether the column was detected and its error is bounded on both sides, for tails as
        `conf_int` assumes them (all True when a threshold was given). Where False the value says
        little.
    privacy_ : Statement
        What was spent.
    warnings_ : tuple of str
        What `private_mean` warned of (`privtail.errors.AccuracyWarning`).
    groups : tuple of tuple
        With ``by`` the categories of each group; the numbers are then (groups, columns).
    columns : tuple of str
        Names of the columns, x0 and so on in an array; empty for one column given as a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_mean
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=2_000)
    >>> estimate = private_mean(x, epsilon=1.0)
    >>> low, high = estimate.conf_int()
    >>> bool(low < estimate < high)
    True
    """

    value: Any
    noise_std: Any
    sampling_std: Any
    clipped_below: Any
    clipped_above: Any
    reliable: Any
    privacy_: Statement
    warnings_: tuple[str, ...] = ()
    groups: tuple[tuple[Any, ...], ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def std(self) -> Any:
        """What to write behind +-: the noise, and what clipping may have cost.

        ``value`` -+ 1.96 ``std`` holds the interval of 95 % for the mean of these rows; infinite
        where that has an end missing.
        """
        return self.noise_std + np.maximum(self.clipped_below, self.clipped_above) / float(
            ndtri(0.975)
        )

    def conf_int(self, confidence: float = 0.95, *, sampling: bool = True) -> NDArray[np.float64]:
        """Intervals for the mean, by the central limit theorem.

        They allow for noise, sampling error and clipping. What clipping may have cost is bounded by
        noisy counts, for tails with an index of 1.2 or more. They do not allow for a few far rows
        that noise hides. An end is infinite if counts show a tail without a mean, rows far beyond
        a gap, or too little; both are if noise hides a whole group.

        Parameters
        ----------
        confidence : float, default=0.95
            How often an interval should hold, in (0, 1).
        sampling : bool, default=True
            Allow for the sampling error, too: the interval is for the mean of the population.
            False allows for noise and clipping: it is for the mean of these very rows (with a
            ``threshold``, of the clipped ones; with groups whose median is taken, for that median).

        Returns
        -------
        ndarray, shape of value and a last axis of 2
            Lower and upper ends, in the units of the column.

        Raises
        ------
        InvalidInput
            If ``confidence`` is not in (0, 1), or the sampling error is not known.
        """
        lost = np.stack([-np.asarray(self.clipped_below), np.asarray(self.clipped_above)], axis=-1)
        unknown, spread = np.isnan(self.value), np.asarray(self.noise_std)
        if sampling:
            spread = np.asarray(np.hypot(spread, np.where(self.reliable, self.sampling_std, 0.0)))
        if np.isnan(spread[~unknown]).any():
            raise InvalidInput(
                "The sampling error is not known: with a threshold nothing was released that tells "
                "it; no theorem is used for medians of groups; and the rows of a person are not "
                "independent. Call conf_int(confidence, sampling=False): it allows for noise and "
                "clipping alone."
            )
        ends = interval(self.value, spread, confidence) + lost
        return np.where(unknown[..., np.newaxis], [-math.inf, math.inf], ends)

    def to_text(self) -> str:
        """Every mean with its interval of 95 % for these rows, and the promise in one line."""
        ends = self.conf_int(sampling=False).reshape(-1, 2)
        groups = [", ".join(map(str, group)) + ": " for group in self.groups] or [""]
        columns = [f"{name} = " for name in self.columns] or [""]
        names = [group + column for group in groups for column in columns]
        rows = zip(names, np.ravel(self.value), ends, np.ravel(self.reliable), strict=True)
        lines = [
            f"{name}{with_interval(value, low, high, 6)}" + ("" if reliable else "  not reliable")
            for name, value, (low, high), reliable in rows
        ]
        return "\n".join([*lines, self.privacy_.headline])

    def __str__(self) -> str:
        return printable(self.to_text())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"

    def of_one(self) -> MeanEstimate:
        """The same of a single column, as numbers."""
        value, std, sampling, below, above = (
            float(x[0])
            for x in (
                self.value, self.noise_std, self.sampling_std, self.clipped_below,
                self.clipped_above,
            )
        )  # fmt: skip
        reliable = bool(self.reliable[0])
        return MeanEstimate(
            value, std, sampling, below, above, reliable, self.privacy_, self.warnings_
        )

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype)
