"""The losses that have a name."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses.amounts import PoissonLoss, TweedieLoss
from privtail.losses.categorical import LogisticLoss, MultinomialLoss, SigmoidLoss
from privtail.losses.custom import GeneralLoss
from privtail.losses.numeric import (
    AbsoluteLoss,
    BiweightLoss,
    HuberLoss,
    QuantileLoss,
    SmoothedQuantileLoss,
    SquaredLoss,
)
from privtail.losses.protocol import Loss
from privtail.losses.wrapped import TruncatedLoss

if TYPE_CHECKING:
    pass


def require_margin(loss: AnyLoss, *, needed_by: str) -> Loss:
    """Return ``loss`` if it is one of a margin.

    Raises
    ------
    IncompatibleParts
        For a `GeneralLoss`.
    """
    if isinstance(loss, GeneralLoss | TruncatedLoss):
        raise IncompatibleParts(
            f"{needed_by} needs a loss of a margin, and {loss.name} is not one; for a GeneralLoss "
            "use ProximalGradient."
        )
    return loss


LOSSES: tuple[Loss, ...] = (
    SquaredLoss(),
    LogisticLoss(),
    MultinomialLoss(classes=3),
    HuberLoss(threshold=1.345),
    AbsoluteLoss(),
    QuantileLoss(quantile=0.8),
    SmoothedQuantileLoss(quantile=0.8, width=0.1),
    PoissonLoss(),
    TweedieLoss(power=1.5),
    SigmoidLoss(),
    BiweightLoss(threshold=4.685),
)
"""One example of every loss that has a name; the contract tests run over it."""
AnyLoss = Loss | GeneralLoss | TruncatedLoss


def loss_by_name(name: str, **parameters: Any) -> Loss:
    """Return the loss called ``name`` with these parameters.

    Parameters
    ----------
    name : str
        A name of `privtail.losses.LOSSES`.
    **parameters : Any
        What the class of the loss takes, such as ``threshold=2.0``.

    Returns
    -------
    Loss

    Raises
    ------
    InvalidInput
        For an unknown name, or parameters that the loss does not have or still needs.

    Examples
    --------
    >>> from privtail.losses import loss_by_name
    >>> loss_by_name("huber", threshold=2.0)
    HuberLoss(threshold=2.0)
    """
    table: dict[str, Any] = {loss.name: type(loss) for loss in LOSSES}
    if name not in table:
        raise InvalidInput(f"There is no loss {name!r}. There are: {', '.join(sorted(table))}.")
    wanted = {field.name for field in fields(table[name])}
    needed = {field.name for field in fields(table[name]) if field.default is MISSING}
    if not needed <= parameters.keys() <= wanted:
        needs = ", ".join(sorted(wanted)) or "nothing"
        given = ", ".join(sorted(parameters)) or "nothing"
        raise InvalidInput(f"The {name} loss takes {needs}, got {given}.")
    loss: Loss = table[name](**parameters)
    return loss
