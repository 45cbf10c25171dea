"""The sampling of a round: its records follow from their ids, never from content.

Where rows belong to persons (`Curator`, groups), a person's rows are seen together or not at all:
read "person" for "record" below.
"""

from __future__ import annotations

from dataclasses import dataclass

from privtail.errors import InvalidInput, require_whole


@dataclass(frozen=True)
class Everyone:
    """Every round sees all n records. Costs of the rounds compose."""


@dataclass(frozen=True)
class PoissonBatches:
    """Every round includes each record independently with probability ``rate``.

    A batch opens once: all releases of one round are one event, and later releases from it are
    refused. A record's coin follows from its id and a secret key of the round, which comes from the
    operating system (or from the simulation seed): `Coins` has the argument.
    """

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", float(self.rate))  # what is billed is what is drawn
        if not 0 < self.rate <= 1:
            raise InvalidInput(f"rate must lie in (0, 1], got {self.rate!r}.")


@dataclass(frozen=True)
class DisjointParts:
    """One deal of the n ids into ``parts`` random parts; round t sees part t mod ``parts``.

    A record is in one part, so one deal costs as much as its most used part. Different deals add.
    """

    parts: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", require_whole("parts", self.parts, 1))


Sampling = Everyone | PoissonBatches | DisjointParts
