"""Regularizers.

``coefficients(w, step)`` are (a, b) with step · value(v) = Σ a |v| + ½ Σ b v²: with them a set
knows the joint prox.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privtail.domains.arithmetic import l2_norm, penalty, require_alpha, shrink
from privtail.domains.protocol import ONES, Weights
from privtail.errors import IncompatibleParts, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from privtail.domains.protocol import Array


@dataclass(frozen=True, kw_only=True)
class Unconstrained:
    """No penalty and no constraint: all of ℝ^(d×K).

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import Unconstrained
    >>> domain = Unconstrained()
    >>> domain.prox(np.array([3.0, 0.5]), 1.0)
    array([3. , 0.5])
    """

    def value(self, w: Array) -> float:
        return 0.0

    def prox(self, w: Array, step: float) -> Array:
        return np.array(w, dtype=np.float64)

    def project(self, w: Array) -> Array:
        return np.array(w, dtype=np.float64)

    def diameter(self, d: int, outputs: int = 1) -> float:
        return math.inf

    def scaled(self, scales: ArrayLike) -> Unconstrained:
        ONES.times(scales)
        return self


@dataclass(frozen=True, kw_only=True)
class L1:
    """The l1 penalty of the lasso: alpha ‖w‖₁.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import L1
    >>> domain = L1(alpha=1.0)
    >>> domain.prox(np.array([3.0, 0.5]), 1.0)
    array([2., 0.])
    """

    alpha: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    def value(self, w: Array) -> float:
        return penalty(w, *self.coefficients(w, 1.0))

    def prox(self, w: Array, step: float) -> Array:
        return shrink(w, *self.coefficients(w, step))

    def coefficients(self, w: Array, step: float) -> tuple[Array, Array]:
        c = self._weights.like(w)
        return step * self.alpha * c, 0 * c

    def scaled(self, scales: ArrayLike) -> L1:
        return L1(alpha=self.alpha, _weights=self._weights.times(scales))


@dataclass(frozen=True, kw_only=True)
class L2:
    """The ridge penalty: ½ alpha ‖w‖₂².

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import L2
    >>> domain = L2(alpha=1.0)
    >>> domain.prox(np.array([3.0, 0.5]), 1.0)
    array([1.5 , 0.25])
    """

    alpha: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        require_alpha(self.alpha)

    def value(self, w: Array) -> float:
        return penalty(w, *self.coefficients(w, 1.0))

    def prox(self, w: Array, step: float) -> Array:
        return shrink(w, *self.coefficients(w, step))

    def coefficients(self, w: Array, step: float) -> tuple[Array, Array]:
        c = self._weights.like(w)
        return 0 * c, step * self.alpha * c**2

    def scaled(self, scales: ArrayLike) -> L2:
        return L2(alpha=self.alpha, _weights=self._weights.times(scales))


@dataclass(frozen=True, kw_only=True)
class ElasticNet:
    """The elastic net of scikit-learn: alpha (l1_ratio ‖w‖₁ + ½ (1 − l1_ratio) ‖w‖₂²).

    Parameters
    ----------
    alpha : float
        Strength of the penalty, at least 0.
    l1_ratio : float
        Fraction of the l1 norm, in [0, 1].

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import ElasticNet
    >>> domain = ElasticNet(alpha=1.0, l1_ratio=0.5)
    >>> domain.prox(np.array([3.0, 0.5]), 1.0)
    array([1.66666667, 0.        ])
    """

    alpha: float
    l1_ratio: float
    _weights: Weights = field(default=ONES, repr=False)

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        if not 0 <= self.l1_ratio <= 1:
            raise InvalidInput(f"l1_ratio must lie in [0, 1], got {self.l1_ratio!r}.")

    def value(self, w: Array) -> float:
        return penalty(w, *self.coefficients(w, 1.0))

    def prox(self, w: Array, step: float) -> Array:
        return shrink(w, *self.coefficients(w, step))

    def coefficients(self, w: Array, step: float) -> tuple[Array, Array]:
        c = self._weights.like(w)
        return (
            step * self.alpha * self.l1_ratio * c,
            step * self.alpha * (1 - self.l1_ratio) * c**2,
        )

    def scaled(self, scales: ArrayLike) -> ElasticNet:
        weights = self._weights.times(scales)
        return ElasticNet(alpha=self.alpha, l1_ratio=self.l1_ratio, _weights=weights)


@dataclass(frozen=True, kw_only=True)
class GroupLasso:
    """The group lasso: alpha Σ over groups of √(group size) ‖w[group]‖₂.

    Parameters
    ----------
    alpha : float
        Strength, at least 0.
    groups : sequence of sequence of int
        Disjoint collections of feature numbers. A feature in none of them is not penalised.

    Raises
    ------
    InvalidInput
        If a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.domains import GroupLasso
    >>> domain = GroupLasso(alpha=1.0, groups=[[0], [1]])
    >>> domain.prox(np.array([3.0, 0.5]), 1.0)
    array([2., 0.])
    """

    alpha: float
    groups: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        require_alpha(self.alpha)
        groups = tuple(tuple(int(j) for j in group) for group in self.groups)
        features = [j for group in groups for j in group]
        if len(set(features)) < len(features) or min(features, default=0) < 0 or () in groups:
            raise InvalidInput("groups must be disjoint, non-empty, of numbers from 0.")
        object.__setattr__(self, "groups", groups)

    def value(self, w: Array) -> float:
        self._check(w)
        norms = [math.sqrt(len(group)) * l2_norm(w[list(group)]) for group in self.groups]
        return self.alpha * math.fsum(norms) if all(map(math.isfinite, norms)) else math.inf

    def prox(self, w: Array, step: float) -> Array:
        self._check(w)
        v = np.array(w, dtype=np.float64)
        for group in map(list, self.groups):
            norm = l2_norm(w[group])
            threshold = step * self.alpha * math.sqrt(len(group))
            v[group] *= 1 - threshold / norm if norm > threshold else 0.0
        return v

    def scaled(self, scales: ArrayLike) -> GroupLasso:
        raise IncompatibleParts(
            "GroupLasso has no closed form under private feature scales. Give an algorithm that "
            "uses none, such as ProximalGradient(steps=50, step_size=0.1, threshold=1.0), or a "
            "domain that has one: Unconstrained, L1, L2, ElasticNet, L2Ball, L1Ball, Box, Simplex."
        )

    def _check(self, w: Array) -> None:
        last = max((j for group in self.groups for j in group), default=-1)
        if last >= len(w):
            raise InvalidInput(
                f"groups must name features below {len(w)}, of which w has no more; got {last}."
            )
