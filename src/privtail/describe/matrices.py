"""Private covariances and correlations of columns, without bounds on the data."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from privtail import views
from privtail.calibration import calibrated
from privtail.coefficients import normal_quantile
from privtail.compilation import steady
from privtail.describe.products import MeanProducts, Products
from privtail.describe.tabled import Tabled, tabled
from privtail.errors import AccuracyWarning, InvalidInput, warn
from privtail.ledgers import interruptible
from privtail.promised import Promised
from privtail.spelling import finite_or_none, printable, said_of_left_out, some_of, with_interval
from privtail.statement import Statement, state
from privtail.trusted.budget import Neighbours
from privtail.trusted.ledger import Ledger

Doubles = NDArray[np.float64]

NOT_RELIABLE = (
    "{some} {are} not reliable: noise, or rows that it hides, may move an entry by any amount. "
    "Spend more; fewer columns need less."
)


@dataclass(frozen=True, repr=False)
class MatrixEstimate:
    """A released symmetric matrix.

    Attributes
    ----------
    columns : tuple of str
        Names of the d columns.
    value : ndarray of shape (d, d)
        The entries.
    low, high : ndarray of shape (d, d)
        Ends of the intervals of each entry, for noise, sampling, and what clipping may have cost.
    reliable : ndarray of bool, shape (d, d)
        Whether the interval says anything: it has both ends, and of a correlation it is not all
        from -1 to 1.
    confidence : float
        Confidence of the intervals.
    privacy_ : Statement
        What was spent.
    warnings_ : tuple of str
        What was warned of.
    left_out : tuple of str
        Columns that hold no numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail import private_covariance
    >>> X = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> estimate = private_covariance(X, epsilon=1.0)
    >>> estimate.value.shape
    (3, 3)
    """

    columns: tuple[str, ...]
    value: Doubles
    low: Doubles
    high: Doubles
    reliable: NDArray[np.bool_]
    confidence: float
    privacy_: Statement
    warnings_: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def conf_int(self) -> Doubles:
        """Ends (d, d, 2) of the intervals."""
        return np.stack([self.low, self.high], axis=-1)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: an end that is infinite is None."""
        tables = {"value": self.value, "low": self.low, "high": self.high}
        return {
            "columns": list(map(str, self.columns)),
            **{
                name: [[finite_or_none(x) for x in row] for row in table]
                for name, table in tables.items()
            },
            "confidence": self.confidence,
            "left_out": list(self.left_out),
            "statement": self.privacy_.to_json(),
        }

    def to_frame(self) -> Any:
        """A pandas data frame, as ``cov()`` and ``corr()`` have it."""
        import pandas as pd

        return pd.DataFrame(self.value, index=list(self.columns), columns=list(self.columns))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype)

    @property
    def _meant(self) -> str:
        return f"[...] is a {100 * self.confidence:g} % interval for the population"

    def _told(self, j: int, k: int, link: str = "") -> str:
        return with_interval(self.value[j, k], self.low[j, k], self.high[j, k], 4, link)

    def __repr__(self) -> str:
        lines = [
            f"{self.columns[j]}, {self.columns[k]}: {self._told(int(j), int(k), ' in')}"
            + ("" if self.reliable[j, k] else "  not reliable")
            for j, k in zip(*np.triu_indices(len(self.columns)), strict=True)
        ]
        remarks = (self._meant, *said_of_left_out(self.left_out))
        return printable("\n".join([*lines, *remarks, self.privacy_.headline]))

    def _repr_html_(self) -> str:
        d = range(len(self.columns))
        rows = (
            (
                str(self.columns[j]),
                *(self._told(j, k) + "*" * (not self.reliable[j, k]) for k in d),
            )
            for j in d
        )
        star = "" if self.reliable.all() else "* not reliable: noise may hide it."
        head = ("", *map(str, self.columns))
        notes = (
            self._meant,
            star,
            *self.warnings_,
            *said_of_left_out(self.left_out),
            self.privacy_.headline,
        )
        return views.table(head, rows, notes)


@interruptible
@steady
def private_covariance(
    data: Any,
    *,
    epsilon: float,
    confidence: float = 0.95,
    semidefinite: bool = False,
    delta: float = 1e-6,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
) -> MatrixEstimate:
    """Differentially private covariance matrix of columns that may be unbounded.

    No bound is needed. Private histograms find the centre of each column, and the distance from it
    beyond which noise hides values. In units of these distances a row is clipped in l2 norm. Counts
    of the clipped values bound what clipping may have cost, if the tail index is 2.5 or more, and
    the intervals include this bound. Sampling errors are those of an elliptical law with the fourth
    moments of the released histograms.

    A row without a number in one of the columns does not count. Columns of text are left out.

    Parameters
    ----------
    data : array of shape (n, d), data frame, mapping, table of `open_table` or path
        Numbers.
    epsilon : float
        Privacy budget of all entries together, above 0.
    confidence : float, default=0.95
        Confidence of the intervals, in (0, 1).
    semidefinite : bool, default=False
        Give the nearest matrix without negative eigenvalues, which noise may bring in. The
        intervals stay as they are.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private.
    random_state : int or None, default=None
        Seed of public choices, and of simulated noise.
    ledger : Ledger, path or None, default=None
        A shared `Ledger` that is charged, or the path of an existing one.
    groups : array of shape (n,), str or None, default=None
        The person of each row. Then persons are protected instead of rows. The intervals
        allow for rows of a person that are alike.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.

    Returns
    -------
    MatrixEstimate
        ``result.value``, ``result.conf_int()``, ``result.to_frame()``.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If an entry is not reliable.

    Examples
    --------
    >>> import numpy as np
    >>> import privtail
    >>> x = np.random.default_rng(0).multivariate_normal([0, 5], [[4, 1], [1, 1]], 50_000)
    >>> found = privtail.private_covariance(x, epsilon=1, noise="simulated", random_state=0)
    >>> bool(found.low[0, 1] < 1 < found.high[0, 1])
    True
    """
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    table, products, statement = _released(
        data, promised, "private_covariance", confidence, least=1
    )
    low, high = products.covariances(normal_quantile(confidence))
    value = _semidefinite(products.value) if semidefinite else products.value
    return _estimate(table, value, low, high, np.isfinite(high - low), confidence, statement)


@interruptible
@steady
def private_correlation(
    data: Any,
    *,
    epsilon: float,
    confidence: float = 0.95,
    semidefinite: bool = False,
    delta: float = 1e-6,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
) -> MatrixEstimate:
    """Differentially private correlation matrix of columns that may be unbounded.

    The covariances of `private_covariance`, divided by the deviations: between -1 and 1, and 1 on
    the diagonal.

    Parameters
    ----------
    data : array of shape (n, d), data frame, mapping, table of `open_table` or path
        Numbers.
    epsilon : float
        Privacy budget of all entries together, above 0.
    confidence : float, default=0.95
        Confidence of the intervals, in (0, 1).
    semidefinite : bool, default=False
        Give the nearest matrix without negative eigenvalues, which noise may bring in. The
        intervals stay as they are.
    delta : float, default=1e-6
        Additive term of the guarantee, in (0, 1). Keep it well below 1 / n.
    neighbours : {"replace_one", "zero_out"}, default="replace_one"
        Which two tables are compared: one row replaced by any other, or one row emptied.
    noise : {"exact", "simulated"}, default="exact"
        ``"simulated"`` is fast and seeded, and not private.
    random_state : int or None, default=None
        Seed of public choices, and of simulated noise.
    ledger : Ledger, path or None, default=None
        A shared `Ledger` that is charged, or the path of an existing one.
    groups : array of shape (n,), str or None, default=None
        The person of each row. Then persons are protected instead of rows. The intervals
        allow for rows of a person that are alike.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.

    Returns
    -------
    MatrixEstimate
        ``result.value``, ``result.conf_int()``, ``result.to_frame()``.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If an entry is not reliable.

    Examples
    --------
    >>> import numpy as np
    >>> import privtail
    >>> x = np.random.default_rng(0).multivariate_normal([0, 5], [[4, 1], [1, 1]], 50_000)
    >>> found = privtail.private_correlation(x, epsilon=1, noise="simulated", random_state=0)
    >>> bool(found.low[0, 1] < 0.5 < found.high[0, 1])
    True
    """
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    table, products, statement = _released(
        data, promised, "private_correlation", confidence, least=2
    )
    value, low, high = products.correlations(normal_quantile(confidence))
    if semidefinite:
        value = _semidefinite(value)
        root = np.sqrt(np.diag(value))
        value = np.clip(value / np.outer(root, root), -1.0, 1.0)
        np.fill_diagonal(value, 1.0)
    return _estimate(table, value, low, high, high - low < 2, confidence, statement)


def _released(
    data: Any, promised: Promised, label: str, confidence: float, *, least: int
) -> tuple[Tabled, Products, Statement]:
    """The table, released products of its columns, and the statement."""
    normal_quantile(confidence, "confidence")  # refuses what is none, before anything is charged
    data, promised = promised.over(data)
    table = tabled(data, leave_out=True)
    if len(table.columns) < least:
        needed = f"At least {('one column', 'two columns')[least - 1]} of numbers must be passed."
        names = ", ".join(map(repr, table.left_out))
        raise InvalidInput(
            f"{needed} These hold none: {names}." if names else needed,
            cli="Name them: --column cost --column days",
        )
    curator = table.curator(promised, label, intercept=True)
    asked = MeanProducts()
    multiplier = calibrated(curator, lambda m: asked.plan(m, curator.problem))
    found = asked.run(curator, multiplier)
    return table, found, state(curator, asked.hiding(multiplier, curator.problem))


def _estimate(
    table: Tabled, value: Doubles, low: Doubles, high: Doubles,
    reliable: NDArray[np.bool_], confidence: float, statement: Statement,
) -> MatrixEstimate:  # fmt: skip
    """The estimate, and a warning where some entries are not reliable."""
    upper = np.triu_indices(len(table.names))
    hidden, d = int(np.sum(~reliable[upper])), len(upper[0])
    warned = (some_of(NOT_RELIABLE, hidden, d, "entry", "entries"),) if hidden else ()
    for text in warned:
        warn(text, AccuracyWarning)
    return MatrixEstimate(
        table.names, value, low, high, reliable, confidence, statement, warned, table.left_out
    )


def _semidefinite(matrix: Doubles) -> Doubles:
    """The nearest matrix (Frobenius) without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray((nearest + nearest.T) / 2)
