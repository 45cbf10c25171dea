"""Published algorithms, one file each, and the table that lists them."""

from __future__ import annotations

from typing import NamedTuple

from privtail.algorithms.aggregated_minimizer import AggregatedMinimizer
from privtail.algorithms.boosted_adassp import BoostedAdaSSP
from privtail.algorithms.catoni_descent import CatoniDescent
from privtail.algorithms.frank_wolfe import FrankWolfe
from privtail.algorithms.frank_wolfe_corners import FrankWolfeCorners
from privtail.algorithms.heavy_tailed_frank_wolfe import HeavyTailedFrankWolfe
from privtail.algorithms.median_of_means_descent import MedianOfMeansDescent
from privtail.algorithms.mirror_descent import MirrorDescent
from privtail.algorithms.net_search import NetSearch
from privtail.algorithms.noisy_descent import NoisyDescent
from privtail.algorithms.one_pass_descent import OnePassDescent
from privtail.algorithms.peeling import LaplacePeeling, OneShotPeeling
from privtail.algorithms.proximal_gradient import ProximalGradient
from privtail.algorithms.random_round_descent import RandomRoundDescent
from privtail.algorithms.result import Result
from privtail.algorithms.sparse_peeling import SparsePeeling
from privtail.algorithms.stochastic_proximal_gradient import StochasticProximalGradient
from privtail.algorithms.trimmed_descent import TrimmedDescent
from privtail.algorithms.truncated_lasso import TruncatedLasso
from privtail.algorithms.truncated_sparse_regression import TruncatedSparseRegression


class Row(NamedTuple):
    """One published algorithm.

    Attributes
    ----------
    name : what the command line and ``algorithm=`` call it.
    paper, box : where it was published: the paper, and the name of the algorithm there.
    algorithm : the class that runs it.
    must_know : what its user has to know about the data for accuracy; privacy needs nothing.
    cost : what it releases.
    privacy : how the cost is added up. It is proved for both neighbour relations.
    """

    name: str
    paper: str
    box: str
    algorithm: type
    must_know: str
    cost: str
    privacy: str


_RANDOM_ITERATE = (
    "one Gaussian gradient per step; the model is that of a random step, maybe an early one"
)

TABLE: tuple[Row, ...] = (
    Row(
        "catoni-descent", "Wang, Xiao, Devadas, Xu 2020", "Algorithm 4", CatoniDescent,
        "second moments of the gradient",
        "one Gaussian gradient per step", "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "proximal-gradient", "Wang, Xu 2019", "Algorithm 1", ProximalGradient,
        "a typical gradient norm",
        _RANDOM_ITERATE, "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "clipped-spgd", "Xie et al.", "Algorithm 1", StochasticProximalGradient,
        "a typical gradient norm",
        "one Poisson-subsampled Gaussian gradient per step",
        "(epsilon, delta) by privacy loss distributions",
    ),
    Row(
        "kamath-spgd", "Xie et al.", "Algorithms 2 and 3", StochasticProximalGradient,
        "an interval that holds gradient coordinates",
        "one Poisson-subsampled Gaussian gradient per step",
        "(epsilon, delta) by privacy loss distributions",
    ),
    Row(
        "holland-spgd", "Xie et al.", "Algorithm 4", StochasticProximalGradient,
        "second moments of the gradient",
        "one Poisson-subsampled Gaussian gradient per step",
        "(epsilon, delta) by privacy loss distributions",
    ),
    Row(
        "median-of-means-descent", "Tao, Wu, Cheng, Wang 2022", "Algorithms 2 and 3",
        MedianOfMeansDescent, "moments of order 1 + v of the gradient",
        "one Gaussian gradient per step", "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "frank-wolfe", "Wang, Xu 2019", "Algorithm 2", FrankWolfe,
        "a typical gradient norm",
        _RANDOM_ITERATE, "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "mirror-descent", "Wang, Xu 2019", "Algorithm 3", MirrorDescent,
        "a typical gradient norm",
        _RANDOM_ITERATE, "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "frank-wolfe-corners", "Wang, Xu 2019", "Algorithm 4", FrankWolfeCorners,
        "an interval that holds gradient coordinates",
        "one noisy maximum per step", "epsilon; less of it with a delta, by zCDP",
    ),
    Row(
        "heavy-tailed-frank-wolfe", "Hu, Ni, Xiao, Wang 2022", "HTDP-FW", HeavyTailedFrankWolfe,
        "second moments of the gradient",
        "one noisy maximum per step", "epsilon, that of one part",
    ),
    Row(
        "truncated-lasso", "Hu, Ni, Xiao, Wang 2022", "HTP-LASSO", TruncatedLasso,
        "an interval that holds features and target",
        "one noisy maximum per step", "epsilon; less of it with a delta, by zCDP",
    ),
    Row(
        "truncated-sparse-regression", "Hu, Ni, Xiao, Wang 2022", "sparse linear regression",
        TruncatedSparseRegression, "an interval that holds features and target; the sparsity",
        "one noisy top s, s Gaussian values per step", "(epsilon, delta) by zCDP, that of one part",
    ),
    Row(
        "smoothed-peeling", "Hu, Ni, Xiao, Wang 2022", "sparse optimization", SparsePeeling,
        "second moments of the gradient; the sparsity",
        "one noisy top s, s Gaussian values per step", "(epsilon, delta) by zCDP, that of one part",
    ),
    Row(
        "sparse-peeling", "Tao, Wu, Cheng, Wang 2022", "Algorithms 4 and 5", SparsePeeling,
        "moments of order 1 + v of the gradient; the sparsity",
        "one noisy top s, s Gaussian values per step", "(epsilon, delta) by zCDP, that of one part",
    ),
    Row(
        "net-search", "Wang, Xu (l1-norm regression)", "Algorithms 1 and 2", NetSearch,
        "moments of order theta of the features; a bounded set that holds the model",
        "one noisy maximum in all", "epsilon",
    ),
    Row(
        "noisy-descent", "Wang, Ye, Xu 2017", "DP-GD", NoisyDescent,
        "a typical gradient norm",
        _RANDOM_ITERATE, "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "random-round-descent", "Zhang, Zheng, Mou, Wang 2017", "RRPSGD", RandomRoundDescent,
        "a typical gradient norm",
        "one Poisson-subsampled Gaussian gradient per step",
        "(epsilon, delta) by privacy loss distributions",
    ),
    Row(
        "trimmed-descent", "Wang, Xiao, Devadas, Xu 2020", "Algorithms 2 and 3", TrimmedDescent,
        "an interval that holds the mean of every coordinate of the gradient",
        "one truncated trimmed mean per coordinate per step", "(epsilon, delta) by zCDP",
    ),
    Row(
        "clipped-trimmed-descent", "Wang, Xiao, Devadas, Xu 2020",
        "Algorithm 3 with clipped values (ours)", TrimmedDescent,
        "an interval that holds nearly all values of every coordinate of the gradient",
        "one trimmed mean of clipped values per coordinate per step", "(epsilon, delta) by zCDP",
    ),
    Row(
        "sample-and-aggregate", "Wang, Xiao, Devadas, Xu 2020", "Algorithm 1", AggregatedMinimizer,
        "a ball that holds the minimizer; many rows",
        "one aggregated point in all", "(epsilon, delta) by smooth sensitivity",
    ),
    Row(
        "boosted-adassp", "Tang, Aydore, Kearns, Rho, Roth, Wang, Wang, Wu 2023", "Algorithm 1",
        BoostedAdaSSP, "a typical norm of a row; the size of the residuals",
        "Gaussian second moments, one Gaussian gradient per round",
        "(epsilon, delta) by Gaussian DP",
    ),
    Row(
        "one-pass-descent", "Lowy, Razaviyayn 2023", "Algorithm 4", OnePassDescent,
        "moments of the norm of the gradient; the smoothness of the risk",
        "one Gaussian gradient per part", "(epsilon, delta) by Gaussian DP, that of one part",
    ),
)  # fmt: skip

__all__ = [
    "TABLE",
    "AggregatedMinimizer",
    "BoostedAdaSSP",
    "CatoniDescent",
    "FrankWolfe",
    "FrankWolfeCorners",
    "HeavyTailedFrankWolfe",
    "LaplacePeeling",
    "MedianOfMeansDescent",
    "MirrorDescent",
    "NetSearch",
    "NoisyDescent",
    "OnePassDescent",
    "OneShotPeeling",
    "ProximalGradient",
    "RandomRoundDescent",
    "Result",
    "Row",
    "SparsePeeling",
    "StochasticProximalGradient",
    "TrimmedDescent",
    "TruncatedLasso",
    "TruncatedSparseRegression",
]
