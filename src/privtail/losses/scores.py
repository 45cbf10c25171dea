"""What is asked of a model, and not descended on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from privtail.losses.protocol import RowwiseLoss, Targets
from privtail.trusted.losses.rowwise import LABEL_PROBABILITY, WRONG_LABEL, Rowwise


class _Score(RowwiseLoss):
    """What is asked of a model, and not descended on: its values alone are used."""

    convex: ClassVar[bool] = False
    curvature: ClassVar[float] = math.inf
    lipschitz: ClassVar[float] = math.inf


@dataclass(frozen=True, kw_only=True)
class WrongLabel(_Score):
    """1 if the label that the margins predict is wrong, else 0: a score, nothing to descend on."""

    outputs: int = 1

    rowwise: ClassVar[Rowwise] = WRONG_LABEL
    name: ClassVar[str] = "wrong label"
    targets: ClassVar[Targets] = "class"


@dataclass(frozen=True, kw_only=True)
class LabelProbability(_Score):
    """The probability of the second of two labels, or of the first of K, whatever the label is.

    A target that is no label gives NaN.
    """

    outputs: int = 1

    rowwise: ClassVar[Rowwise] = LABEL_PROBABILITY
    name: ClassVar[str] = "label probability"
    targets: ClassVar[Targets] = "class"
