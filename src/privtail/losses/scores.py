"""What is asked of a model, and not descended on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privtail.errors import InvalidInput
from privtail.losses.loops import block, odds_against
from privtail.losses.numeric import HuberLoss
from privtail.losses.protocol import Targets

if TYPE_CHECKING:
    from privtail.losses.protocol import Array


class _Score:
    """What is asked of a model, and not descended on: its values alone are used."""

    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf

    def derivatives(self, margins: Array, y: Array) -> Array:
        return np.zeros_like(margins)


@dataclass(frozen=True, kw_only=True)
class WrongLabel(_Score):
    """1 if the label that the margins predict is wrong, else 0: a score, nothing to descend on."""

    outputs: int = 1

    name: ClassVar[str] = "wrong label"
    targets: ClassVar[Targets] = "class"

    def values(self, margins: Array, y: Array) -> Array:
        one = self.outputs == 1
        predicted = margins[:, 0] > 0 if one else margins.argmax(axis=1)
        return np.asarray(predicted != y, dtype=np.float64)


FARTHEST_ODDS = 2.0**32
"""Log-odds beyond this are told from no others."""


@dataclass(frozen=True, kw_only=True)
class OddsAgainst(_Score):
    """Log-odds that margins give against the label that a record has, as derivatives.

    Above those at the ``usual`` margins, one for each output. They are cut to plus or minus
    `FARTHEST_ODDS`; 3 k + 1 times that is added for label k, so that a range is one label's.
    """

    usual: tuple[float, ...] = (0.0,)

    name: ClassVar[str] = "odds against"
    targets: ClassVar[Targets] = "class"

    @property
    def outputs(self) -> int:
        return len(self.usual)

    def values(self, margins: Array, y: Array) -> Array:
        usual = np.broadcast_to(np.array(self.usual), margins.shape)
        shift = self._against(margins, y) - self._against(usual, y)
        return shift.clip(-FARTHEST_ODDS, FARTHEST_ODDS) + (3 * y + 1) * FARTHEST_ODDS

    def derivatives(self, margins: Array, y: Array) -> Array:
        odds = np.zeros_like(margins)
        odds[:, 0] = self.values(margins, y)
        return odds

    @staticmethod
    def _against(margins: Array, y: Array) -> Array:
        if margins.shape[1] == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins])
        margins, y = block(margins, y, margins.shape[1])
        out = np.empty(y.size)
        odds_against(margins, y, out)
        return out


@dataclass(frozen=True, kw_only=True)
class ExcessLoss(_Score):
    """``loss`` above that at one ``margin`` for all, and above what is ``spared``: a score."""

    loss: HuberLoss
    margin: float
    spared: float

    name: ClassVar[str] = "excess"
    outputs: ClassVar[int] = 1
    targets: ClassVar[Targets] = "real"

    def __post_init__(self) -> None:
        if type(self.loss) is not HuberLoss:
            raise InvalidInput("The excess is that of a HuberLoss.")

    def values(self, margins: Array, y: Array) -> Array:
        usual = self.loss.values(np.full_like(margins, self.margin), y)
        return self.loss.values(margins, y) - usual - self.spared
