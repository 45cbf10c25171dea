"""Private quantiles of columns, without bounds on the data."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from privtail.calibration import calibrated
from privtail.coefficients import normal_quantile
from privtail.compilation import steady
from privtail.describe.estimates import QuantileEstimate, public_numbers
from privtail.describe.search import QuantileSearch
from privtail.describe.tabled import tabled
from privtail.errors import AccuracyWarning, InvalidInput, warn
from privtail.ledgers import interruptible
from privtail.promised import Promised
from privtail.spelling import some_of
from privtail.statement import state
from privtail.trusted.budget import Neighbours
from privtail.trusted.ledger import Ledger

HIDDEN = (
    "{some} {are} not reliable, because of noise or too few values: an interval has no end on one "
    "side or both. Spend more; levels nearer to 1/2 need less."
)


@interruptible
@steady
def private_quantile(
    x: Any,
    levels: ArrayLike = (0.25, 0.5, 0.75),
    *,
    epsilon: float,
    confidence: float = 0.95,
    delta: float = 1e-6,
    neighbours: Neighbours = "replace_one",
    noise: Literal["exact", "simulated"] = "exact",
    random_state: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    groups: Any = None,
    max_rows: int | None = None,
) -> QuantileEstimate:
    """Differentially private quantiles of columns that may be unbounded.

    No bound is needed. A histogram over powers of two shows where a quantile may lie. Finer ones
    around it follow, eight releases in all. All columns and levels share one plan. The interval
    from the last release is for the quantile of the population: it allows for noise and sampling.
    If noise may hide too much, an end is infinite, ``reliable`` is False, and an `AccuracyWarning`
    says so. Sizes between 2^-64 and 2^64 (1.8e19) are measured.

    A missing cell, or one that is not finite, is left out of its own column alone.

    Parameters
    ----------
    x : array of shape (n,) or (n, d), data frame, mapping, table of `open_table` or path
        Numbers.
    levels : float or sequence of float, default=(0.25, 0.5, 0.75)
        Which quantiles, each in (0, 1).
    epsilon : float
        Privacy budget, above 0.
    confidence : float, default=0.95
        Confidence of the intervals, in (0, 1).
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
        The person of each row. Then persons are protected instead of rows. The intervals allow for
        rows of a person that are alike.
    max_rows : int or None, default=None
        How many rows of one person count, at most; with ``groups``.

    Returns
    -------
    QuantileEstimate
        ``result.value``, ``result.conf_int()``, ``result.to_dict()``; ``float(result)`` of one.

    Raises
    ------
    InvalidInput
        If an argument or the data cannot be used.
    BudgetExceeded
        If the ledger has too little left. No row was read.

    Warns
    -----
    AccuracyWarning
        If a quantile is not reliable.

    Examples
    --------
    >>> import numpy as np
    >>> import privtail
    >>> x = np.random.default_rng(0).lognormal(3, 2, 20_000)
    >>> found = privtail.private_quantile(x, 0.5, epsilon=1, noise="simulated", random_state=0)
    >>> bool(found.low < np.median(x) < found.high)
    True
    """
    asked = np.atleast_1d(public_numbers(levels, "levels"))
    if asked.ndim != 1 or not asked.size or not ((asked > 0) & (asked < 1)).all():
        raise InvalidInput(
            "Levels must be above 0 and below 1, for example", "[0.25, 0.5, 0.75].",
            cli="--level 0.25 --level 0.5.",
        )  # fmt: skip
    normal_quantile(confidence, "confidence")  # refuses what is none, before anything is charged
    promised = Promised(
        epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise,
        random_state=random_state, ledger=ledger, groups=groups, max_rows=max_rows,
    )  # fmt: skip
    x, promised = promised.over(x)
    table = tabled(x)
    curator = table.curator(promised, "private_quantile")
    search = QuantileSearch(levels=tuple(asked.tolist()))
    columns = table.columns
    if not columns:
        raise InvalidInput("No column holds numbers. Pass at least one of numbers.")
    multiplier = calibrated(curator, lambda m: search.plan(m, curator.problem, len(columns)))
    found = search.run(curator, multiplier, columns, confidence)
    rows: Any = zip(*((f.values, *f.interval(), f.reliable()) for f in found), strict=True)
    value, low, high, reliable = map(np.array, rows)
    hidden = int(np.sum(~reliable))
    warned = (some_of(HIDDEN, hidden, reliable.size, "quantile"),) if hidden else ()
    for text in warned:
        warn(text, AccuracyWarning)
    counts = np.array([[f.total, f.total_std] for f in found]).T
    numbers: Any = value, low, high, reliable
    if table.vector:
        numbers = [part[0] for part in numbers]
        if np.ndim(levels) == 0:
            numbers = [part[0].item() for part in numbers]
    value, low, high, reliable = numbers
    return QuantileEstimate(
        search.levels, table.names, value, low, high, reliable, confidence, counts[0], counts[1],
        state(curator), warned,
    )  # fmt: skip
