"""Published algorithms, one file each, and the table that lists them."""

from __future__ import annotations

from typing import NamedTuple

from privtail.algorithms.aggregated_minimizer import AggregatedMinimizer
from privtail.algorithms.catoni_descent import CatoniDescent
from privtail.algorithms.median_of_means_descent import MedianOfMeansDescent
from privtail.algorithms.names import NAMES
from privtail.algorithms.proximal_gradient import ProximalGradient
from privtail.algorithms.result import Result
from privtail.algorithms.scaled_descent import ScaledDescent
from privtail.algorithms.stochastic_proximal_gradient import StochasticProximalGradient
from privtail.algorithms.trimmed_descent import TrimmedDescent


class Row(NamedTuple):
    """One published box.

    Attributes
    ----------
    name : how people call it on a command line.
    paper, box : where it was published.
    algorithm : the class that runs it.
    must_know : what its user has to know of the data for accuracy; privacy needs nothing.
    cost : releases per step.
    """

    name: str
    paper: str
    box: str
    algorithm: type
    must_know: str
    cost: str


TABLE: tuple[Row, ...] = (
    Row("auto", "-", "-", ScaledDescent, "nothing", "one Gaussian gradient"),
    Row(
        "catoni-descent", "Wang, Xiao, Devadas, Xu 2020", "Algorithm 4", CatoniDescent,
        "second moments of the gradient", "one Gaussian gradient",
    ),
    Row(
        "proximal-gradient", "Wang, Xu 2019", "Algorithm 1", ProximalGradient,
        "a typical gradient norm", "one Gaussian gradient",
    ),
    Row(
        "clipped-spgd", "Xie et al.", "Algorithm 1", StochasticProximalGradient,
        "a typical gradient norm", "one Poisson-subsampled Gaussian gradient",
    ),
    Row(
        "kamath-spgd", "Xie et al.", "Algorithms 2 and 3", StochasticProximalGradient,
        "an interval that holds gradient coordinates", "one Poisson-subsampled Gaussian gradient",
    ),
    Row(
        "holland-spgd", "Xie et al.", "Algorithm 4", StochasticProximalGradient,
        "second moments of the gradient", "one Poisson-subsampled Gaussian gradient",
    ),
    Row(
        "median-of-means-descent", "Tao, Wu, Cheng, Wang 2022", "Algorithms 2 and 3",
        MedianOfMeansDescent, "moments of order 1 + v of the gradient", "one Gaussian gradient",
    ),
    Row(
        "trimmed-descent", "Wang, Xiao, Devadas, Xu 2020", "Algorithms 2 and 3", TrimmedDescent,
        "an interval that holds the mean gradient's coordinates",
        "one trimmed mean per coordinate, in zCDP",
    ),
    Row(
        "sample-and-aggregate", "Wang, Xiao, Devadas, Xu 2020", "Algorithm 1", AggregatedMinimizer,
        "a ball that holds the minimizer; many records",
        "one aggregated point in all, (epsilon, delta)-DP",
    ),
)  # fmt: skip

__all__ = [
    "NAMES",
    "TABLE",
    "AggregatedMinimizer",
    "CatoniDescent",
    "MedianOfMeansDescent",
    "ProximalGradient",
    "Result",
    "Row",
    "ScaledDescent",
    "StochasticProximalGradient",
    "TrimmedDescent",
]
