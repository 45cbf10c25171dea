"""What every algorithm offers."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from privtail.algorithms.result import Result
from privtail.domains import Domain, Slopes, require
from privtail.errors import IncompatibleParts
from privtail.losses import AnyLoss
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.maps import FeatureMap
from privtail.trusted.problem import Problem


class Algorithm(Protocol):
    """A frozen value of public hyper-parameters with a plan and a run.

    It never calibrates: its caller prices the plan with `calibration.calibrated` and passes the
    multiplier, a common factor on all noise; so algorithms nest.

    One whose gradients have length 1 where a row has a typical length (and not in the units of
    features) says ``in_typical_rows = True``: the noise of a slope follows from that.

    One that does not take every loss has a method ``takes`` beside these, for `require_loss`, and
    one that asks more of a domain than operations a method ``suits``, for `require_domain`.
    """

    needs: ClassVar[tuple[str, ...]]
    """Operations that the domain must have."""

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases of a run, from public numbers."""
        ...

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Make the planned releases and return what they led to."""
        ...


class MappedAlgorithm(Algorithm, Protocol):
    """An algorithm that can run on mapped features, such as standardized ones.

    Domain, ``start`` and the parameters of the result are then those of the mapped features.
    """

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None, map: FeatureMap | None = None,
    ) -> Result:  # fmt: skip
        """As for raw features, with the ``map`` for every batch."""
        ...


def require_loss(algorithm: Algorithm, loss: AnyLoss, problem: Problem) -> None:
    """Ask ``algorithm.takes(loss, problem)``, where there is one, before anything is charged.

    Raises
    ------
    IncompatibleParts
        If the algorithm does not take the loss.
    """
    takes: Any = getattr(algorithm, "takes", None)
    if takes is not None:
        takes(loss, problem)


def require_domain(algorithm: Algorithm, domain: Domain, problem: Problem) -> None:
    """Ask a domain for what the algorithm needs of it, before anything is charged.

    Raises
    ------
    IncompatibleParts
        If the algorithm does not run on the domain; it says so if that is for the intercept alone.
    InvalidInput
        If the domain is for another number of features.
    """
    needed_by = type(algorithm).__name__
    suits: Any = getattr(algorithm, "suits", None)

    def ask(asked: Domain) -> None:
        require(asked, *algorithm.needs, needed_by=needed_by)
        asked.value(np.zeros((problem.d + isinstance(asked, Slopes), problem.outputs)))
        if "scaled" in algorithm.needs:
            asked.scaled(np.ones(problem.d))
        if "axes" in algorithm.needs:
            known: Any = asked
            known.axes(problem.d, problem.outputs)
        if suits is not None:
            suits(asked, problem)

    try:
        ask(domain)
    except IncompatibleParts as refusal:
        if not isinstance(domain, Slopes):
            raise
        ask(domain.domain)
        raise IncompatibleParts(
            f"{needed_by} keeps the whole model in its domain, and an intercept is in none. Use "
            "fit_intercept=False, and a feature that is 1 where a constant is needed."
        ) from refusal
