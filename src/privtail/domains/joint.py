"""Two at once: a regularizer within a set, a domain of the slopes alone, a multiple."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtail.domains.protocol import Domain
from privtail.domains.regularizers import L1, L2, ElasticNet, GroupLasso, Unconstrained
from privtail.domains.sets import Box, L1Ball, L2Ball, Simplex
from privtail.errors import IncompatibleParts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from privtail.domains.protocol import Array


@dataclass(frozen=True, kw_only=True)
class Within:
    """A regularizer restricted to a set; made by `within`, which knows the exact pairs."""

    regularizer: Any
    constraint: Any

    def value(self, w: Array) -> float:
        outside: float = self.constraint.value(w)
        return outside + float(self.regularizer.value(w))

    def prox(self, w: Array, step: float) -> Array:
        if isinstance(self.regularizer, GroupLasso):  # a norm: shrink first, then pull radially
            v: Array = self.constraint.project(self.regularizer.prox(w, step))
        else:
            v = self.constraint.shrink(w, *self.regularizer.coefficients(w, step))
        return v

    def scaled(self, scales: ArrayLike) -> Within:
        return Within(
            regularizer=self.regularizer.scaled(scales),
            constraint=self.constraint.scaled(scales),
        )


def within(regularizer: Domain, constraint: Domain) -> Domain:
    """Return ``regularizer`` restricted to the set ``constraint``.

    Its prox is exact: in all these pairs both conditions of optimality are met by one shrinkage
    and one multiplier of the set.

    Parameters
    ----------
    regularizer : Domain
        A penalty, such as `L2`.
    constraint : Domain
        A set, such as `L2Ball`.

    Returns
    -------
    Domain

    Raises
    ------
    IncompatibleParts
        For a pair whose joint prox is not known in closed form.

    Examples
    --------
    >>> from privtail.domains import L2, L2Ball, within
    >>> ridge = within(L2(alpha=0.1), L2Ball(radius=1.0))
    """
    if isinstance(regularizer, Unconstrained):
        return constraint
    if isinstance(constraint, Unconstrained):
        return regularizer
    separable = isinstance(regularizer, L1 | L2 | ElasticNet)
    if separable and isinstance(constraint, L2Ball | L1Ball | Box | Simplex):
        return Within(regularizer=regularizer, constraint=constraint)
    if isinstance(regularizer, GroupLasso) and isinstance(constraint, L2Ball):
        return Within(regularizer=regularizer, constraint=constraint)
    raise IncompatibleParts(
        f"The joint prox of {name_of(regularizer)} within {name_of(constraint)} is not known. "
        "Use L1, L2 or ElasticNet within L2Ball, L1Ball, Box or Simplex; GroupLasso within "
        "L2Ball; or Unconstrained in either place."
    )


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """A domain for all rows of w but the last, the intercept, which nothing happens to.

    ``scaled`` takes one scale per slope. There is no linear minimiser, since the intercept is
    free, and the diameter is that of the slopes.
    """

    domain: Any

    def value(self, w: Array) -> float:
        return float(self.domain.value(w[:-1]))

    def prox(self, w: Array, step: float) -> Array:
        return np.concatenate([self.domain.prox(w[:-1], step), w[-1:]])

    @property
    def project(self) -> Callable[[Array], Array]:
        """The projection of the slopes, where the domain has one."""
        project = self.domain.project
        return lambda w: np.concatenate([project(w[:-1]), w[-1:]])

    @property
    def diameter(self) -> Callable[..., float]:
        """The diameter in the slopes, where the domain has one."""
        diameter: Callable[..., float] = self.domain.diameter
        return diameter

    def scaled(self, scales: ArrayLike) -> Slopes:
        return Slopes(domain=self.domain.scaled(scales))


@dataclass(frozen=True, kw_only=True)
class Multiple:
    """A domain times a positive factor, as when an objective is divided by a number."""

    domain: Domain
    factor: float

    def value(self, w: Array) -> float:
        return self.factor * self.domain.value(w)

    def prox(self, w: Array, step: float) -> Array:
        return self.domain.prox(w, self.factor * step)

    def scaled(self, scales: ArrayLike) -> Multiple:
        return Multiple(domain=self.domain.scaled(scales), factor=self.factor)


def of_slopes(domain: Domain) -> Domain:
    """What a domain asks of the slopes, but for a factor, whether or not the intercept is free."""
    while isinstance(domain, Slopes | Multiple):
        domain = domain.domain
    return domain


def may_be_zero(domain: Domain) -> bool:
    """Whether slopes of this domain may become 0 one by one, whatever the others are."""
    return isinstance(of_slopes(domain), Unconstrained | L1 | L2 | ElasticNet)


def name_of(domain: object) -> str:
    """What a domain is called in an error."""
    if isinstance(domain, Within):
        return f"{name_of(domain.regularizer)} within {name_of(domain.constraint)}"
    if isinstance(domain, Slopes):
        return f"Slopes of {name_of(domain.domain)}"
    return type(domain).__name__
