"""Rows that do not count in an answer, as far as released counts tell."""

from __future__ import annotations

from privtail.gaps import WRITTEN
from privtail.summaries.histograms import fewer, most_are_lost

FILL = (
    "The model is that of the rows that count: fill in missing numbers, or leave out columns where "
    "many are missing."
)
LABEL = "Nor does it if its label was not declared: compare the spelling."
EXPOSED = (
    "Nor does it if its exposure is not above 0, such as the logarithm of an exposure below 1."
)
OF_THESE = "The mean is that of the rows that count."

TENTH = 0.1
"""Numbers read from text are warned of if more of the rows do not count.

An undeclared column of text is refused at the same share: large numbers are lost first.
"""


def lost_rows(
    part: float, deviation: float, n: int, consequence: str, *, text: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Notes on the `usable_rows` of ``n`` rows, and those that are worth a warning.

    ``text``: some numbers are read from text.
    """
    notes = fewer(part, deviation, n, " ".join([consequence, *[WRITTEN] * text]))
    warned = most_are_lost(part, deviation) or (text and part < 1 - TENTH)
    return notes, notes if warned else ()
