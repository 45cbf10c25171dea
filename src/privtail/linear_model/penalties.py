"""What a penalty in the units of the data does to columns of small units."""

from __future__ import annotations

import math

import numpy as np

from privtail.algorithms.result import Result
from privtail.domains import L1, L2, Domain, ElasticNet
from privtail.losses import AnyLoss
from privtail.spelling import some_of
from privtail.summaries.summary import UNUSED

SILENCED = (
    "The penalty alone takes more than half of any slope of {some}. A penalty depends on the units "
    "of the data, and in its unit such a feature varies little. Choose a weaker penalty, or a "
    "smaller unit for it."
)


def silenced(domain: Domain, loss: AnyLoss, result: Result) -> tuple[str, ...]:
    """A sentence where the penalty leaves no room for any slope of some features; from releases.

    No slope is larger than the target's scale over that of its feature: all of the target would
    follow this feature. The minimiser of a loss of curvature c and the penalty is then the prox of
    that slope with step 1/c.
    """
    curvature = float(getattr(loss, "curvature", math.inf))
    if result.scales is None or not isinstance(domain, L1 | L2 | ElasticNet):
        return ()
    if not 0 < curvature < math.inf:
        return ()
    used = result.scales < UNUSED
    largest = np.full((len(used), 1), result.unit)
    kept = domain.scaled(1 / result.scales).prox(largest, 1 / curvature)
    count = int(np.count_nonzero(used & (kept[:, 0] < largest[:, 0] / 2)))
    return (some_of(SILENCED, count, len(used), "feature"),) * (count > 0)
