"""What is asked of a model, and not descended on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privtail.losses.categorical import MultinomialLoss, SigmoidLoss
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


@dataclass(frozen=True, kw_only=True)
class LabelProbability(_Score):
    """The probability of the second of two labels, or of the first of K, whatever the label is.

    A target that is no label gives NaN.
    """

    outputs: int = 1

    name: ClassVar[str] = "label probability"
    targets: ClassVar[Targets] = "class"

    def values(self, margins: Array, y: Array) -> Array:
        if self.outputs == 1:
            chances = SigmoidLoss().values(margins, np.zeros_like(y))
        else:
            others = np.ones_like(y)
            chances = MultinomialLoss(classes=self.outputs).derivatives(margins, others)[:, 0]
        return np.where(np.isnan(y), np.nan, chances)
