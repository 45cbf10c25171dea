"""Private counts of rows, and of categories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from privtail.calibration import calibrated
from privtail.compilation import steady
from privtail.describe.estimates import CountEstimate
from privtail.describe.tabled import require_by, tabled
from privtail.errors import AccuracyWarning, warn
from privtail.ledgers import interruptible
from privtail.promised import Promised
from privtail.statement import state
from privtail.trusted.budget import Neighbours
from privtail.trusted.events import Round
from privtail.trusted.ledger import Ledger
from privtail.trusted.mechanisms.noise import GaussianNoise

BELOW_ALL = [-float(np.finfo(np.float64).max)]
"""One edge that no number lies below."""

HIDDEN = 0.05
"""With half this chance some of many empty groups seems to hold a row, whatever their number."""

ALL_HIDDEN = (
    "Noise hides every one of these counts, so perhaps no row has a declared category. Compare how "
    "they are written with the cells, and their type with that of the column; or spend more."
)

BOOLEAN = {"bool", "boolean"}
"""Types of columns of NumPy, pandas and polars, in small letters."""

BOTH = (
    "True and False are both numbers, so every row of {name!r} that holds one of them is counted. "
    'How many hold each: private_count(frame, by="{name}", categories=[False, True], epsilon=1).'
)


@interruptible
@steady
def private_count(
    data: Any,
    *,
    epsilon: float,
    by: str | Sequence[str] | None = None,
    categories: Mapping[str, Sequence[Any]] | Sequence[Any] | None = None,
    delta: float = 1e-6,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
) -> CountEstimate:
    """Differentially private count of the rows that count, or of the rows of each category.

    Without ``by`` a row counts if all its numbers are finite; columns of text are left out. With
    ``by`` a row counts in the group of its categories, whatever its other columns hold. If its
    category is missing or was not declared, it counts in no group. Groups are disjoint, so they
    share one budget (parallel composition). Under replace-one a row may leave one group for
    another, so two counts move by one: their noise is sqrt 2 times that of one count, however many
    groups there are.

    Parameters
    ----------
    data : array, data frame, mapping, table of `open_table` or path
        The rows.
    epsilon : float
        Privacy budget, above 0.
    by : str, sequence of str or None, default=None
        One column, or two, with declared categories.
    categories : mapping of str to sequence, sequence or None, default=None
        Column to its categories; of one column a list will do.
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
        The person of each row. Then persons are protected instead of rows.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.

    Returns
    -------
    CountEstimate
        ``float(result)``, or ``result.value`` and ``result.to_dict()`` of groups.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If noise hides the count of every category. If the data are one Boolean column: both of its
        values count.

    Examples
    --------
    >>> import pandas as pd
    >>> import privtail
    >>> frame = pd.DataFrame({"region": ["north"] * 3000 + ["south"] * 7000})
    >>> counts = privtail.private_count(
    ...     frame, by="region", categories=["north", "south"], epsilon=1,
    ...     noise="simulated", random_state=0,
    ... )
    >>> bool(abs(counts.to_dict()["north"] - 3000) < 50)
    True
    """
    require_by(by, categories)
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    data, promised = promised.over(data)
    table = tabled(
        data, by=by, categories=categories, only_groups=by is not None, leave_out=by is None
    )
    told: tuple[str, ...] = ()
    if table.vector and str(getattr(table.data[table.names[0]], "dtype", "")).lower() in BOOLEAN:
        told = (BOTH.format(name=table.names[0]),)
        warn(told[0], AccuracyWarning)
    curator = table.curator(promised, "private_count")
    problem, grouped = curator.problem, bool(table.by)
    if grouped:
        column, count = (table.by[0][0],), len(table.groups)
        planned = problem.cell_counts(1, 1, count).take(count)
    else:
        planned = problem.histogram(1, 1).take(1)
    multiplier = calibrated(
        curator,
        lambda m: (Round(stage="counts", events=(GaussianNoise(m).event(planned),)),),
    )
    batch, law = curator.everyone(), GaussianNoise(multiplier)
    if grouped:
        answer = batch.cell_counts(column, BELOW_ALL, table.by).take(1 + 2 * np.arange(count))
    else:
        answer = batch.histogram((0,), BELOW_ALL).take([1])
    std = law.event(answer.sensitivity).std
    value = answer.release(law)
    found = value if grouped else float(value[0])
    estimate = CountEstimate(found, std, table.groups if grouped else (), state(curator), told)
    if grouped and not np.any(estimate.conf_int(1 - HIDDEN / count)[:, 0] > 0):
        warn(ALL_HIDDEN, AccuracyWarning)
        return replace(estimate, warnings_=(ALL_HIDDEN,))
    return estimate
