"""Losses: what one row contributes, as a function of its margin and its target.

A generalized-linear loss sees a row only through its K margins m = xᵀw + intercept and its
target y; its gradient in w is x ⊗ ∂ℓ(m, y)/∂m, which stays factored. What runs over rows is in the
core, `privtail.trusted.losses`: it is believed to be row-local. Here are names and public numbers.
Where a loss is not finite or the target is not one of its own the result may be NaN; whoever sums
it forces the range.

A new loss: two functions in `loops` and a line in `rowwise` of the core, a class in `numeric`,
`amounts` or `categorical`, and one name in `LOSSES`.
"""

from __future__ import annotations

from privtail.losses.amounts import AmountLoss, PoissonLoss, TweedieLoss, require_power
from privtail.losses.categorical import LogisticLoss, MultinomialLoss, SigmoidLoss
from privtail.losses.custom import CustomLoss, GeneralLoss
from privtail.losses.names import LOSSES, AnyLoss, loss_by_name, require_margin
from privtail.losses.numeric import (
    AbsoluteLoss,
    BiweightLoss,
    HuberLoss,
    LogTruncatedLoss,
    QuantileLoss,
    RelativeHuberLoss,
    SmoothedQuantileLoss,
    SquaredLoss,
)
from privtail.losses.protocol import AMOUNTS, LABELS, Loss, Targets
from privtail.losses.scores import LabelProbability, WrongLabel
from privtail.losses.wrapped import CutLoss, TruncatedLoss, WeightedLoss, cut_to
from privtail.trusted.losses.loops import POISSON_MARGIN

__all__ = [
    "AMOUNTS",
    "LABELS",
    "LOSSES",
    "POISSON_MARGIN",
    "AbsoluteLoss",
    "AmountLoss",
    "AnyLoss",
    "BiweightLoss",
    "CustomLoss",
    "CutLoss",
    "GeneralLoss",
    "HuberLoss",
    "LabelProbability",
    "LogTruncatedLoss",
    "LogisticLoss",
    "Loss",
    "MultinomialLoss",
    "PoissonLoss",
    "QuantileLoss",
    "RelativeHuberLoss",
    "SigmoidLoss",
    "SmoothedQuantileLoss",
    "SquaredLoss",
    "Targets",
    "TruncatedLoss",
    "TweedieLoss",
    "WeightedLoss",
    "WrongLabel",
    "cut_to",
    "loss_by_name",
    "require_margin",
    "require_power",
]
