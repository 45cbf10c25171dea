"""Compiled tiles: blocks of rows -> bounded contributions -> exact sums on an integer grid.

Formal guarantee
----------------
Let b be the number of grid bits. Every kernel turns one row into numbers that depend on that row
and on public arguments alone (summation orders are fixed in the source, no fast-math), and

* `ball_dense`, `ball_sparse`, `moment_sum`: the integer vector of a row has l2 norm at most 2^b;
* `box_dense`, `box_sparse`: every integer of a row lies in [-limit, limit], limit <= 2^b;
* `tally`: a value adds one to one cell of its column;

for every input, NaN, infinities and subnormals included. A row that holds a non-finite number, or
whose target is not finite, contributes 0. Integers are accumulated as doubles inside one block of
at most 2^18 rows (all partial sums stay below 2^53, so nothing is rounded) and returned as int64.
With magic = 1.5 2^52, (h + magic) - magic rounds |h| <= 2^51 to the nearest integer, ties to even.
"""

from privtail.trusted.kernels.balls import ball_dense, ball_sparse, margin_of_safety, moment_sum
from privtail.trusted.kernels.boxes import (
    CATONI,
    CLAMP,
    FRACTION_DEGREE,
    TRUNCATE,
    box_dense,
    box_sparse,
    influence,
)
from privtail.trusted.kernels.lanes import LANES
from privtail.trusted.kernels.rows import (
    logarithms,
    margins_dense,
    margins_sparse,
    merge_row,
    rows_of,
)
from privtail.trusted.kernels.tallies import EVERY, NONE, tally

__all__ = [
    "CATONI", "CLAMP", "EVERY", "FRACTION_DEGREE", "LANES", "NONE", "TRUNCATE", "ball_dense",
    "ball_sparse", "box_dense", "box_sparse", "influence", "logarithms", "margin_of_safety",
    "margins_dense", "margins_sparse", "merge_row", "moment_sum", "rows_of", "tally",
]  # fmt: skip
