"""Functions of columns that a model is fitted on, declared in public numbers.

An estimator takes a list of them as ``features``. They are computed inside the fit and inside
predictions, row by row, of arrays, frames and files alike, and a written model holds them: nobody
prepares data before ``predict``. Numbers in them are public: choose them without looking at private
rows, or buy them (`privtail.private_quantile`).

Columns of an array are called ``x0``, ``x1`` and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from privtail.schema.features import Bins, Cross, Feature, Log, Spline

__all__ = ["bins", "cross", "log", "spline"]


def bins(column: str, edges: Sequence[float]) -> Bins:
    """Which interval a number lies in: one 0/1 feature for each.

    Each interval holds its lower end; below the first edge and from the last on there is one, too.
    With ``drop="first"`` of an estimator the first interval is the base level.

    Parameters
    ----------
    column : str
        A column of numbers.
    edges : sequence of float
        Public numbers, ascending; one or more.

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
        Public numbers, ascending; two or more.
    degree : {1, 3}, default=3
        1: lines between the knots. 3: cubic pieces.

    Returns
    -------
    Spline
        For ``features`` of an estimator; it has ``len(knots) + degree - 2`` features.

    Raises
    ------
    InvalidInput
        If the knots do not ascend, or one is not finite, or the degree is another.

    Examples
    --------
    >>> from privtail.features import spline
    >>> len(spline("age", [20, 40, 60, 80]).levels)
    5
    """
    return Spline(column, knots, degree)  # type: ignore[arg-type]


def log(column: str, plus: float = 0.0) -> Log:
    """The logarithm of a number, plus a public number.

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
