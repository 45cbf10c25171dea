"""What the theorem of every published algorithm promises, with all constants 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privtail.errors import InvalidInput, require_whole
from privtail.spelling import guess


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Public sizes that a rate depends on.

    Attributes
    ----------
    n, d : records, features.
    epsilon, delta : the budget.
    moments : order of the moments that exist, above 1; 2 for second moments.
    sparsity : number of features that matter.
    """

    n: int
    d: int
    epsilon: float
    delta: float = 1e-6
    moments: float = 2.0
    sparsity: int = 10

    def __post_init__(self) -> None:
        require_whole("n", self.n, 2)
        require_whole("d", self.d, 1)
        require_whole("sparsity", self.sparsity, 1)
        if not (0 < self.epsilon < math.inf and 0 < self.delta < 1):
            raise InvalidInput("A rate needs a finite epsilon above 0, and delta between 0 and 1.")
        if not 1 < self.moments < math.inf:
            raise InvalidInput(f"moments must be above 1, got {self.moments!r}. Use 2.")

    @property
    def logs(self) -> float:
        """log(1/delta)."""
        return math.log(1 / self.delta)

    @property
    def data(self) -> float:
        """Records times epsilon."""
        return self.n * self.epsilon

    @property
    def saved(self) -> float:
        """(k - 1)/k for moments of order k: v/(1 + v) of 1 + v moments."""
        return (self.moments - 1) / self.moments


@dataclass(frozen=True, kw_only=True)
class LowerBound:
    """What every (epsilon, delta) method exceeds on some law with moments of order at most 2."""

    theorem: str
    formula: str
    bound: Callable[[Setting], float]


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A theorem: what it bounds, by what, and under which assumptions.

    Attributes
    ----------
    name : of the row of `TABLE`, or of `MEANS`.
    theorem : in its paper.
    quantity : what is bounded.
    formula : as text; logarithms that the paper hides in O~ are left out.
    bound : its value with all constants 1.
    assumes : of the data, the loss and the set.
    studies : experiments that measure it.
    line : what figures of these call the algorithm.
    least : what no private method is below on all such laws; None where the papers have none.
    """

    name: str
    theorem: str
    quantity: str
    formula: str
    bound: Callable[[Setting], float]
    assumes: str
    studies: tuple[str, ...] = ()
    line: str = ""
    least: LowerBound | None = None


_RISK, _GRADIENT, _GAP = "excess risk", "norm of the gradient", "Frank-Wolfe gap"
_DISTANCE = "distance to the mean"
_DISPUTED = "its proof is disputed: docs/mathematics.md#disputed-proofs"
_NONCONVEX = "a Lipschitz and smooth loss, not convex"


def _gradient(s: Setting) -> float:
    return math.sqrt(math.sqrt(s.d * s.logs) / s.data)


_CONVEX_LEAST = LowerBound(
    theorem="Tao et al. 2022, theorem 9",
    formula="sqrt(d) (sqrt(d log(1/delta)) / (n eps))^((k-1)/k), k = moments",
    bound=lambda s: math.sqrt(s.d) * (math.sqrt(s.d * s.logs) / s.data) ** s.saved,
)
_STRONG_LEAST = LowerBound(
    theorem="Tao et al. 2022, theorem 8",
    formula="d (sqrt(d log(1/delta)) / (n eps))^(2(k-1)/k), k = moments",
    bound=lambda s: s.d * (math.sqrt(s.d * s.logs) / s.data) ** (2 * s.saved),
)
_SPARSE_LEAST = LowerBound(
    theorem="Tao et al. 2022, theorem 11",
    formula="(sqrt(s log(d) log(1/delta)) / (n eps))^(2(k-1)/k), k = moments",
    bound=lambda s: (math.sqrt(s.sparsity * math.log(s.d) * s.logs) / s.data) ** (2 * s.saved),
)


def _best_steps(risk: Callable[[float], float]) -> float:
    """The least of a risk over numbers of steps."""
    return min(risk(2.0**half) for half in range(64))


PROMISES: tuple[Promise, ...] = (
    Promise(
        name="catoni-descent", theorem="theorem 7", quantity=_RISK,
        formula="d^2 log(n)^2 log(1/delta) / (n eps^2)",
        bound=lambda s: s.d**2 * math.log(s.n) ** 2 * s.logs / (s.n * s.epsilon**2),
        assumes=f"strongly convex, second moments of the gradient; {_DISPUTED}",
        studies=("wang2020-figure-3a", "wang2020-figure-4a"), line="Algorithm 4",
        least=_STRONG_LEAST,
    ),
    Promise(
        name="catoni-descent", theorem="theorem 8", quantity=_RISK,
        formula="(d^2 log(1/delta) / (n eps^2))^(1/3)",
        bound=lambda s: (s.d**2 * s.logs / (s.n * s.epsilon**2)) ** (1 / 3),
        assumes="convex, second moments of the gradient",
        studies=("wang2020-theorem-8",), line="Algorithm 4",
        least=_CONVEX_LEAST,
    ),
    Promise(
        name="trimmed-descent", theorem="theorem 5", quantity=_RISK,
        formula="d^2 log(n)^2 log(1/delta) / (n eps^2)",
        bound=lambda s: s.d**2 * math.log(s.n) ** 2 * s.logs / (s.n * s.epsilon**2),
        assumes=f"strongly convex, sub-exponential gradients; {_DISPUTED}",
        studies=("wang2020-theorem-5",), line="Algorithm 3",
    ),
    Promise(
        name="sample-and-aggregate", theorem="theorem 2", quantity=_RISK,
        formula="d^3 / (n eps^4), times the least risk",
        bound=lambda s: s.d**3 / (s.n * s.epsilon**4),
        assumes="strongly convex, second moments, n of order d^2/eps^2 and more",
        studies=("wang2020-aggregate-n", "wang2020-aggregate-d", "wang2020-aggregate-epsilon"),
        line="Algorithm 1",
        least=_STRONG_LEAST,
    ),
    Promise(
        name="proximal-gradient", theorem="theorem 2", quantity=_GRADIENT,
        formula="(d log(1/delta))^(1/4) / sqrt(n eps)", bound=_gradient, assumes=_NONCONVEX,
        studies=("wang2019-figure-3", "wang2019-table-1-n"), line="Algorithm 1",
    ),
    Promise(
        name="frank-wolfe", theorem="theorem 4", quantity=_GAP,
        formula="log(1/delta)^(1/4) / sqrt(n eps), for a set of length and width 1",
        bound=lambda s: s.logs**0.25 / math.sqrt(s.data), assumes=_NONCONVEX,
        studies=("wang2019-table-1-n",), line="Algorithm 2",
    ),
    Promise(
        name="mirror-descent", theorem="theorem 5", quantity="norm of the projected gradient",
        formula="log(1/delta)^(1/4) / sqrt(n eps), for a set of length and width 1",
        bound=lambda s: s.logs**0.25 / math.sqrt(s.data), assumes=_NONCONVEX,
        studies=("wang2019-table-1-n",), line="Algorithm 3",
    ),
    Promise(
        name="frank-wolfe-corners", theorem="theorem 6", quantity=_GAP,
        formula="log(1/delta)^(1/4) sqrt(log(n 2 d)) / sqrt(n eps), on the l1 ball",
        bound=lambda s: s.logs**0.25 * math.sqrt(math.log(2 * s.n * s.d) / s.data),
        assumes=f"{_NONCONVEX}, Lipschitz in every coordinate",
        studies=("wang2019-table-1-p",), line="Algorithm 4",
    ),
    Promise(
        name="noisy-descent", theorem="as Wang and Xu 2019 quote it", quantity=_GRADIENT,
        formula="(d log(1/delta))^(1/4) / sqrt(n eps)", bound=_gradient, assumes=_NONCONVEX,
        studies=("wang2019-table-1-n",), line="Wang 2017",
    ),
    Promise(
        name="random-round-descent", theorem="as Wang and Xu 2019 quote it", quantity=_GRADIENT,
        formula="(d log(1/delta) log(n/delta))^(1/4) / sqrt(n eps)",
        bound=lambda s: _gradient(s) * math.log(s.n / s.delta) ** 0.25, assumes=_NONCONVEX,
        studies=("wang2019-table-1-n",), line="Zhang 2017",
    ),
    Promise(
        name="kamath-spgd", theorem="corollary 1", quantity=_RISK,
        formula="T^(-1/2) + d^(3/2) (sqrt(d T log(1/delta)) / (n eps))^((k-1)/k), the best T, "
        "k = moments",
        bound=lambda s: _best_steps(
            lambda T: T**-0.5 + s.d**1.5 * (math.sqrt(s.d * T * s.logs) / s.data) ** s.saved
        ),
        assumes="convex, moments of the gradient of this order",
        studies=("xie2023-corollaries",), line="DP-SPGD(K)",
        least=_CONVEX_LEAST,
    ),
    Promise(
        name="holland-spgd", theorem="corollary 2", quantity=_RISK,
        formula="T^(-1/2) + d (T log(1/delta))^(1/4) / sqrt(n eps), the best T",
        bound=lambda s: _best_steps(
            lambda T: T**-0.5 + s.d * (T * s.logs) ** 0.25 / math.sqrt(s.data)
        ),
        assumes="convex, second moments of the gradient",
        studies=("xie2023-corollaries",), line="DP-SPGD(H)",
        least=_CONVEX_LEAST,
    ),
    Promise(
        name="median-of-means-descent", theorem="theorem 6", quantity=_RISK,
        formula="r + r^3, r = d^((1+4v)/(2+2v)) (n eps)^(-v/(1+v)), 1 + v = moments",
        bound=lambda s: sum(
            (s.d ** ((4 * s.moments - 3) / (2 * s.moments)) * s.data**-s.saved) ** power
            for power in (1, 3)
        ),
        assumes="convex, moments of the gradient of this order",
        studies=("tao2022-convex-n",), line="Algorithm 2",
        least=_CONVEX_LEAST,
    ),
    Promise(
        name="median-of-means-descent", theorem="theorem 7", quantity=_RISK,
        formula="d^((1+2v)/(1+v)) (n eps)^(-2v/(1+v)), 1 + v = moments",
        bound=lambda s: s.d ** ((2 * s.moments - 1) / s.moments) * s.data ** (-2 * s.saved),
        assumes="strongly convex, moments of the gradient of this order",
        studies=("tao2022-strong-n", "tao2022-strong-d", "tao2022-strong-epsilon"),
        line="Algorithm 2",
        least=_STRONG_LEAST,
    ),
    Promise(
        name="truncated-mean", theorem="theorem 1", quantity=_DISTANCE,
        formula="(sqrt(log(1/delta)) / (n eps))^(v/(1+v)), 1 + v = moments",
        bound=lambda s: (math.sqrt(s.logs) / s.data) ** s.saved,
        assumes="one column, moments of this order, which the method is told",
        studies=("tao2022-mean-n", "tao2022-mean-epsilon"), line="Algorithm 1",
        least=LowerBound(
            theorem="Tao et al. 2022, theorem 2", formula="(1 / (n eps))^((k-1)/k), k = moments",
            bound=lambda s: s.data**-s.saved,
        ),
    ),
    Promise(
        name="truncated-mean", theorem="theorem 3", quantity=_DISTANCE,
        formula="sqrt(d) (sqrt(d log(1/delta)) / (n eps))^(v/(1+v)), the best tau, 1 + v = moments",
        bound=lambda s: math.sqrt(s.d) * (math.sqrt(s.d * s.logs) / s.data) ** s.saved,
        assumes="d columns, medians of groups, moments of this order",
        studies=("tao2022-medians-n", "tao2022-medians-d"), line="Algorithm 3",
    ),
    Promise(
        name="sparse-peeling", theorem="theorem 10", quantity=_RISK,
        formula="s^((1+2v)/(1+v)) (log(n) log(d) sqrt(log(1/delta)) / (n eps))^(2v/(1+v)), "
        "1 + v = moments",
        bound=lambda s: (
            s.sparsity ** ((2 * s.moments - 1) / s.moments)
            * (math.log(s.n) * math.log(s.d) * math.sqrt(s.logs) / s.data) ** (2 * s.saved)
        ),
        assumes="restricted strong convexity and smoothness, moments of this order",
        studies=("tao2022-sparse-n", "tao2022-sparse-s", "tao2022-sparse-d"), line="Algorithm 5",
        least=_SPARSE_LEAST,
    ),
    Promise(
        name="net-search", theorem="theorems 1 and 2", quantity=_RISK,
        formula="(d log(n) / (n eps))^((theta-1)/theta), theta = moments",
        bound=lambda s: (s.d * math.log(s.n) / s.data) ** s.saved,
        assumes="l1 regression, moments of this order; a 1/n-net, which cannot be searched",
        studies=("wang2022-n", "wang2022-epsilon", "wang2022-d"), line="Algorithms 1 and 2",
    ),
    Promise(
        name="one-pass-descent", theorem="Algorithm 4", quantity=_RISK,
        formula="n^(-1/2) + q^((k-1)/k) + q^(4(k-1)/(5k-1)), q = sqrt(d log(1/delta)) / (n eps), "
        "k = moments",
        bound=lambda s: (
            s.n**-0.5
            + (math.sqrt(s.d * s.logs) / s.data) ** s.saved
            + (math.sqrt(s.d * s.logs) / s.data) ** (4 * (s.moments - 1) / (5 * s.moments - 1))
        ),
        assumes="convex and smooth, moments of the norm of the gradient of this order, 2 or more",
    ),
    Promise(
        name="heavy-tailed-frank-wolfe", theorem="Hu et al., abstract", quantity=_RISK,
        formula="log(d) / (n eps)^(1/3)", bound=lambda s: math.log(s.d) / s.data ** (1 / 3),
        assumes="smooth and convex, second moments, a polytope",
    ),
    Promise(
        name="truncated-lasso", theorem="Hu et al., abstract", quantity=_RISK,
        formula="log(d) / (n eps)^(2/5)", bound=lambda s: math.log(s.d) / s.data**0.4,
        assumes="fourth moments of features and target",
    ),
    Promise(
        name="truncated-sparse-regression", theorem="Hu et al., abstract", quantity=_RISK,
        formula="s^2 log(d) / (n eps)",
        bound=lambda s: s.sparsity**2 * math.log(s.d) / s.data,
        assumes="fourth moments of features and target, a sparse model",
    ),
    Promise(
        name="smoothed-peeling", theorem="Hu et al., abstract", quantity=_RISK,
        formula="s^(3/2) log(d) / (n eps)",
        bound=lambda s: s.sparsity**1.5 * math.log(s.d) / s.data,
        assumes="strongly convex and smooth, a sparse model",
    ),
)  # fmt: skip
"""By row of `privtail.algorithms.TABLE`, or of `MEANS`; other rows are in `WITHOUT`."""

MEANS = {"truncated-mean": "privtail mean --method truncated"}
"""Means of papers, which are no rows of the table, and what runs them."""

WITHOUT = {
    "auto": "it is from no paper",
    "clipped-spgd": "theorem 1 of Xie et al. bounds its risk by 1/(T step) and the errors of its "
    "clipped gradients, which it leaves open",
    "clipped-trimmed-descent": "it clips every value, which no paper does",
    "boosted-adassp": "only the code of its authors was at hand",
}
"""Rows for which no theorem has a rate, and why."""


def promises(name: str) -> tuple[Promise, ...]:
    """The theorems on the algorithm of this name.

    Raises
    ------
    InvalidInput
        If there are none.
    """
    found = tuple(promise for promise in PROMISES if promise.name == name)
    if not found:
        known = tuple(dict.fromkeys(promise.name for promise in PROMISES))
        why = WITHOUT.get(name, "it is no published algorithm")
        near = "" if name in WITHOUT else guess(name, known)
        raise InvalidInput(
            f"No theorem has a rate for {name!r}: {why}.{near} There are for: {', '.join(known)}."
        )
    return found
