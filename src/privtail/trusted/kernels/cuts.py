"""How far a cut of a column parts whole numbers.

Formal guarantee
----------------
Sums are exact. Which cuts are looked at never lowers what one record can move: `Problem` says why.
"""

# mypy: allow-untyped-calls, allow-untyped-defs, allow-untyped-decorators

from __future__ import annotations

import math

from privtail.compilation import compiled


@compiled
def widest_cut(values, order, steps, reach, found):
    """Raise ``found`` (K,) to the largest |sum of steps above a cut - sum below| over cuts.

    A cut is below all ``values`` (n,), which ``order`` sorts, between two neighbours, or above all,
    if some |t| < reach lies there. ``steps`` (n, K) are whole numbers whose absolute values add up
    to less than 2^62.
    """
    for k in range(steps.shape[1]):
        below, above, low = 0, 0, -math.inf
        for i in order:
            above += int(steps[i, k])
        for i in order:
            if low < values[i] and low < reach and values[i] > -reach:
                found[k] = max(found[k], abs(above - below))
            step, low = int(steps[i, k]), values[i]
            above -= step
            below += step
        if low < reach:
            found[k] = max(found[k], abs(above - below))
