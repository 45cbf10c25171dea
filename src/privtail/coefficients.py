"""Slopes with standard errors, tests and intervals, as one table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privtail.errors import InvalidInput, real
from privtail.spelling import digits, printable
from privtail.views import table

Doubles = NDArray[np.float64]

SELECTED = (
    "There are no intervals: the budget was too small for all features, a few were selected by "
    "noisy scores, and no theory is known to us for intervals after such a selection. "
    "coef_noise_std_ holds the noise of the slopes. With more rows or a larger epsilon all "
    "features are used."
)
NO_THEORY = (
    "There are no intervals: no theory is known to us for the noise in the slopes of this "
    "algorithm. The default algorithm has intervals."
)
CONSTANT = (
    "The model is a private constant: its slopes were set to zero, so they have no intervals. See "
    "why in the notes of its statement."
)
NO_SAMPLING = (
    "The sampling error of these slopes is not known. A theory exists for squared and Huber loss, "
    "counts, amounts and two labels, with the default algorithm, no penalty and at most 512 "
    "coefficients. If this is such a model, noise hides how large its slopes are. More rows, fewer "
    'features or a larger epsilon may help. conf_int(kind="noise") allows for the noise alone.'
)
NOT_PRIVATE = (
    "The sampling error of these slopes is not known: it is estimated for private fits alone, and "
    "this one added no noise (epsilon=inf)."
)
UNUSED = (
    "Not used, because hardly more than one value was detected in each: {}. Noise may hide others."
)
HIDDEN = (
    "No bounds, because noise hides whether these features are nearly collinear: {}. If one is "
    "nearly a copy or a sum of others, leave it out. If they are all indicators of a category, "
    "give it a base level: drop= (--base-level). Otherwise more rows, fewer features or a larger "
    "epsilon may help."
)
CLIPPED = (
    "Large residuals were clipped. If residuals are skewed or an effect is not linear, clipping "
    "can bias slopes and the mean of predictions; intervals do not allow for that. An interval is "
    "too narrow if residuals spread more in rows with extreme values of its feature, unless "
    "heteroscedastic=True was given."
)
CURVED = (
    "Rows with a large norm were shrunk. If the effect of a feature with a long tail is not linear "
    "in the {scale}, this can bias its slope, and its interval does not allow for that."
)
LEFT_OUT = {
    "identity": CLIPPED,
    "log": f"{CURVED.format(scale='logarithm of the prediction')} It is also too narrow if the "
    "dispersion is larger in rows with extreme values of its feature.",
    "logit": CURVED.format(scale="log-odds"),
}
"""What intervals of slopes do not allow for, by link."""


def why_not(noise: Doubles, *, noisy: bool) -> str:
    """Why nothing is known of what noise did to slopes, from its standard deviations; or nothing.

    ``noisy``: whether any noise was added.
    """
    unknown = np.isnan(noise)
    if unknown.any():
        return NO_THEORY if unknown.all() else SELECTED
    return CONSTANT if noisy and not np.any(np.isfinite(noise) & (noise > 0)) else ""


def no_sampling(sampling: Doubles, *, noisy: bool) -> str:
    """Why the ``sampling`` error of slopes is not known; nothing if it is."""
    if not np.isnan(sampling).any():
        return ""
    return NO_SAMPLING if noisy else NOT_PRIVATE


def normal_quantile(confidence: float, name: str = "confidence") -> float:
    """How many standard deviations an interval of this ``confidence`` reaches to either side.

    Raises
    ------
    InvalidInput
        If the confidence, an argument of this ``name``, is not in (0, 1).
    """
    if not 0 < real(name, confidence) < 1:
        raise InvalidInput(
            f"{name} must be above 0 and below 1, got {confidence!r}. For 95 % give",
            f"{name}=0.95.",
            cli=f"--{name} 0.95.",
        )
    return float(ndtri((1 + float(confidence)) / 2))


@dataclass(frozen=True, eq=False, repr=False)
class CoefficientTable:
    """Slopes of a fitted model, one row each; a base level has a row without a test.

    Attributes
    ----------
    names : tuple of str
        Names of the features and of base levels; with several labels ``label: feature``.
    coef, std_err : ndarray of shape (rows,)
        Slopes, and their standard errors, with noise and sampling in them.
    z, p_value : ndarray of shape (rows,)
        Statistic and p-value of the two-sided test that a slope of the population is zero. NaN for
        a slope without bounds.
    low, high : ndarray of shape (rows,)
        Ends of the intervals.
    confidence : float
        Confidence of the intervals.
    intercept : ndarray of shape (outputs,)
        Intercepts.
    headline : str
        What was promised.
    note : str
        Why standard errors are not known, or what intervals leave out.
    log : bool
        Whether the logarithm of a prediction is linear: then the exponential of a slope, its
        relativity, is what a prediction is multiplied by.
    hidden : tuple of str
        Names of features whose slopes have no bounds, because noise hides whether they are nearly
        collinear.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPLinearRegression
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> table = DPLinearRegression(epsilon=1.0).fit(X, X[:, 0]).summary()
    >>> table.names
    ('x0', 'x1')
    """

    names: tuple[str, ...]
    coef: Doubles
    std_err: Doubles
    z: Doubles
    p_value: Doubles
    low: Doubles
    high: Doubles
    confidence: float
    intercept: Doubles
    headline: str
    note: str
    log: bool = False
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rows: Sequence[tuple[str, int | None]], coef: Doubles, intercept: Doubles,
        noise: Doubles, sampling: Doubles, headline: str, confidence: float, *, noisy: bool,
        link: str = "identity",
    ) -> Self:  # fmt: skip
        """The table of slopes (K, d), with the standard deviations of their errors, (K, d).

        Parameters
        ----------
        rows : sequence of tuple
            Names with the places of their slopes among all K d; of a base level None.
        coef, intercept : ndarray
            Slopes and intercepts.
        noise, sampling : ndarray of shape (K, d)
            Standard deviations.
        headline : str
            What was promised.
        confidence : float
            Confidence of the intervals.
        noisy : bool
            Whether noise was added.
        link : {"identity", "log", "logit"}, default="identity"
            What of a prediction is linear.

        Returns
        -------
        CoefficientTable

        Raises
        ------
        InvalidInput
            If ``confidence`` is not in (0, 1).
        """
        reach = normal_quantile(confidence)
        unknown = why_not(noise, noisy=noisy) or no_sampling(sampling, noisy=noisy)
        std = np.full(coef.size, math.nan) if unknown else np.hypot(noise, sampling).ravel()
        places = np.array([coef.size if place is None else place for _, place in rows])
        names = tuple(name for name, _ in rows)
        used = np.append(np.isfinite(noise), False)[places]
        slopes, std = np.append(coef.ravel(), 0.0)[places], np.append(std, math.nan)[places]
        with np.errstate(all="ignore"):
            z = np.where(np.isfinite(std), slopes / std, math.nan)
        return cls(
            names, slopes, std, z, 2 * ndtr(-np.abs(z)),
            slopes - reach * std, slopes + reach * std, confidence, np.atleast_1d(intercept),
            headline, unknown or LEFT_OUT[link], link == "log",
            tuple(names[i] for i in np.flatnonzero(used & np.isinf(std))),
        )  # fmt: skip

    @property
    def relativity(self) -> Doubles:
        """What a prediction is multiplied by where a feature grows by one; 1 at a base level.

        It has a meaning with the log link alone.
        """
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.coef))

    @property
    def used(self) -> list[int]:
        """Positions of the features that are used: too little was seen of the others."""
        return [
            i
            for i, name in enumerate(self.names)
            if name in self.hidden or not math.isinf(self.std_err[i])
        ]

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Sentences that name the features without bounds: not used, and hidden by noise."""
        used = {self.names[i] for i in self.used}
        unused = [name for name in self.names if name not in used]
        told = ((UNUSED, unused), (HIDDEN, self.hidden))
        return tuple(text.format(", ".join(names)) for text, names in told if names)

    @property
    def _columns(self) -> dict[str, Doubles]:
        below, above = self._ends
        return {
            "coef": self.coef,
            **({"relativity": self.relativity} if self.log else {}),
            "std err": self.std_err,
            "z": self.z,
            "P>|z|": self.p_value,
            below: self.low,
            above: self.high,
        }

    @property
    def _ends(self) -> tuple[str, str]:
        """Names of the ends of intervals: the shares below them."""
        half = (1 - self.confidence) / 2
        return f"{half:.6g}", f"{1 - half:.6g}"

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Numbers of every feature, by its name; NaN where one is not known."""
        columns = {"coef": self.coef} | ({"relativity": self.relativity} if self.log else {})
        columns |= {
            "std_err": self.std_err, "z": self.z, "p_value": self.p_value, "low": self.low,
            "high": self.high,
        }  # fmt: skip
        return {
            name: {key: float(values[i]) for key, values in columns.items()}
            for i, name in enumerate(self.names)
        }

    def to_frame(self) -> Any:
        """The same as a data frame of pandas.

        Raises
        ------
        InvalidInput
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise InvalidInput("to_frame needs pandas: pip install pandas.") from None
        return pd.DataFrame.from_dict(self.to_dict(), orient="index")

    @property
    def _last(self) -> str:
        """The name of the line of the intercept, which is that of no feature."""
        return "(intercept)" if "intercept" in self.names else "intercept"

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, *_ in rows)
        wide = max([12, *(2 + len(cell) for _, *cells in rows[:-1] for cell in cells)])
        lines = [
            (f"{name:<{width}}" + "".join(f"{cell:>{wide}}" for cell in cells)).rstrip()
            for name, *cells in [("", *self._columns), *rows]
        ]
        texts = (*self.unbounded, self.note, self.headline)
        said = (textwrap.fill(text, 100, break_on_hyphens=False) for text in texts)
        return printable("\n".join([*lines, *said]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table(
            ("", *self._columns), self._rows(), (*self.unbounded, self.note, self.headline)
        )

    def _rows(self) -> list[tuple[str, ...]]:
        """A line for each feature that is used, and one for the intercepts."""
        return [
            *((self.names[i], *self._cells(i)) for i in self.used),
            (self._last, ", ".join(_shown(x) for x in self.intercept)),
        ]

    def _cells(self, i: int) -> Iterator[str]:
        """Numbers of one line: a slope and its relativity, with digits as their intervals ask."""
        ends = np.array([self.low[i], self.high[i]])
        with np.errstate(over="ignore"):
            slope, factor = digits(4, *ends), digits(4, *np.exp(ends))
        many = {"coef": slope, "relativity": factor} | dict.fromkeys(self._ends, slope)
        known = ("coef", "relativity") if math.isinf(self.std_err[i]) else self._columns
        return (
            _shown(values[i], many.get(key, 4)) if key in known else ""
            for key, values in self._columns.items()
        )


def _shown(x: float, many: int = 4) -> str:
    return "" if math.isnan(x) else f"{x:.{many}g}"
