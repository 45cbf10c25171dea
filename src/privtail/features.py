"""Functions of columns that a model is fitted on, declared in public numbers.

An estimator takes a list of them as ``features``. They are computed inside the fit and inside
predictions, row by row, of arrays, frames and files alike, and a written model holds them: nobody
prepares data before ``predict``. Numbers in them are public: choose them without looking at private
rows, or release them (`private_knots`). They are released before a fit and not inside it: a
declaration holds public numbers, a fit is planned by how many features these give, and released
knots serve a cross, every fold and the next model.

Columns of an array are called ``x0``, ``x1`` and so on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from privtail.schema.features import Bins, Cross, Feature, Log, Spline

if TYPE_CHECKING:
    from privtail.trusted.budget import Neighbours
    from privtail.trusted.ledger import Ledger

__all__ = ["bins", "cross", "log", "private_knots", "spline"]


def bins(column: str, edges: Sequence[float]) -> Bins:
    """Turn a number into 0/1 features, one for each interval between edges.

    Each interval holds its lower end. There is also one below the first edge, and one from the last
    edge on. With ``drop="first"`` of an estimator the first interval is the base level.

    Parameters
    ----------
    column : str
        A column of numbers.
    edges : sequence of float
        Public numbers, ascending; one or more. `private_knots` releases them.

    Returns
    -------
    Bins
        For ``features`` of an estimator.

    Raises
    ------
    InvalidInput
        If the edges do not ascend, or one is not finite.

    Examples
    --------
    >>> from privtail.features import bins
    >>> bins("age", [25, 40]).levels
    ('age<25', '25<=age<40', 'age>=40')
    """
    return Bins(column, edges)  # type: ignore[arg-type]


def spline(column: str, knots: Sequence[float], degree: Literal[1, 3] = 3) -> Spline:
    """A smooth curve of a number: a B-spline basis, constant beyond the first and the last knot.

    The functions of a basis lie in [0, 1] and add up to 1; the first is left out beside the
    intercept. So no value of the column, however large, has a large feature.

    Parameters
    ----------
    column : str
        A column of numbers.
    knots : sequence of float
        Public numbers, ascending; two or more. `private_knots` releases them.
    degree : {1, 3}, default=3
        1: lines between the knots. 3: cubic pieces.

    Returns
    -------
    Spline
        For ``features`` of an estimator; it has ``len(knots) + degree - 2`` features.

    Raises
    ------
    InvalidInput
        If the knots do not ascend, are too near each other, or one is not finite, or the degree is
        another.

    Examples
    --------
    >>> from privtail.features import spline
    >>> len(spline("age", [20, 40, 60, 80]).levels)
    5
    """
    return Spline(column, knots, degree)  # type: ignore[arg-type]


def log(column: str, plus: float = 0.0) -> Log:
    """The logarithm of a column, to which a public number may be added first: log(x + plus).

    Parameters
    ----------
    column : str
        A column of numbers. Where the sum is not above zero, the feature is missing.
    plus : float, default=0.0
        What is added first: 1 where a column holds zeros.

    Returns
    -------
    Log
        For ``features`` of an estimator.

    Raises
    ------
    InvalidInput
        If ``plus`` is not finite.

    Examples
    --------
    >>> from privtail.features import log
    >>> log("income", 1).levels
    ('log(income+1)',)
    """
    return Log(column, plus)


def cross(left: Feature, right: Feature) -> Cross:
    """The interaction of two columns: every feature of one times every feature of the other.

    It stands beside the columns; base levels have no product.

    Parameters
    ----------
    left, right : str, or what a function of this module gives
        Names of columns of numbers or of declared categories, or features of them.

    Returns
    -------
    Cross
        For ``features`` of an estimator.

    Raises
    ------
    InvalidInput
        If both are the same.

    Examples
    --------
    >>> import pandas as pd
    >>> from privtail.features import bins, cross
    >>> from privtail.linear_model import DPRidge
    >>> X = pd.DataFrame({"age": [20.0, 50.0], "fuel": ["gas", "oil"]})
    >>> model = DPRidge(categories={"fuel": ["gas", "oil"]}, drop="first", noise="simulated",
    ...     features=[bins("age", [30]), cross(bins("age", [30]), "fuel")], random_state=0)
    >>> encoded = model.encoding().design(["age", "fuel"], model.categories)
    >>> encoded.names
    ('age>=30', 'fuel=oil', 'age>=30:fuel=oil')
    """
    return Cross(left, right)


def private_knots(
    x: Any,
    count: int = 5,
    *,
    epsilon: float,
    delta: float = 1e-6,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
) -> list[float]:
    """Knots of a spline, or edges of bins, at private quantiles of a column.

    This is a release of its own, beside the fit, and it costs budget. Give ``ledger`` here and to
    the estimator: then both are charged to one total. The knots lie between parts of the rows that
    are about as large as each other, the first and the last at half a part from the ends: 5 knots
    are the quantiles .1, .3, .5, .7 and .9. Where many values are the same, or noise hides a
    quantile, there are fewer.

    Parameters
    ----------
    x : array of shape (n,), or whatever else of one column `private_quantile` takes
        Numbers.
    count : int, default=5
        How many knots, 2 or more.
    epsilon : float
        Privacy budget, above 0.
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
    groups : array of shape (n,) or None, default=None
        The person of each row. Then persons are protected instead of rows.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.

    Returns
    -------
    list of float
        Public numbers, ascending.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used, or ``x`` has more than one column.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If noise hides a quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.features import private_knots, spline
    >>> age = np.random.default_rng(0).normal(40, 10, 20_000)
    >>> knots = private_knots(age, 3, epsilon=0.5, noise="simulated", random_state=0)
    >>> np.abs(np.array(knots) - [30.3, 40, 49.7]).max() < 2
    np.True_
    >>> spline("age", knots).knots == tuple(knots)
    True
    """
    import numpy as np

    from privtail.describe.quantiles import private_quantile
    from privtail.describe.tabled import tabled
    from privtail.errors import InvalidInput, require_whole

    require_whole("count", count, 2)
    if len(tabled(x).columns) != 1:
        raise InvalidInput('Knots are those of one column: pass it alone, frame["age"].')
    levels = ((np.arange(count) + 0.5) / count).tolist()
    found = private_quantile(
        x, levels, epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    return sorted({float(value) for value in np.asarray(found.value)[found.reliable]})
