"""All studies, paper by paper."""

from __future__ import annotations

import importlib
from functools import cache

from experiments.study import Study
from privtail.spelling import guess

PAPERS = {
    "wang2020": "Wang, Xiao, Devadas, Xu, ICML 2020: On differentially private stochastic convex "
    "optimization with heavy-tailed data",
    "wang2019": "Wang, Xu, AAAI 2019: Differentially private empirical risk minimization with "
    "smooth non-convex loss functions: a non-stationary view",
    "xie2023": "Xie, Pietrosanu, Liu, Tu, Jiang, Kong, Statistica Sinica: Differentially private "
    "regularized stochastic convex optimization with heavy-tailed data",
    "tao2022": "Tao, Wu, Cheng, Wang, IJCAI 2022: Private stochastic convex optimization and "
    "sparse learning with heavy-tailed data revisited",
    "wang2022": "Wang, Xu: Differentially private ℓ1-norm linear regression with heavy-tailed data",
}
"""Names of studies begin with one of these."""
LEARNED = {
    "wang2020": "Algorithm 4 does what its theorem says, in n, d and ε; with line 1's s, which "
    "leaves privacy out, its noise still hides the model at these sizes, and with an s that "
    "balances both it comes near the fit without privacy. On batches, of which no theorem speaks, "
    "it is several times as accurate up to 100,000 records; beyond, its error levels off, as that "
    "of RGD on batches does (figure 4b). Algorithm 3 has poor performance, as the paper says, as "
    "printed and in a private form; clipping the values as well, which the paper does not do, "
    "mends most of it. The noise of Algorithm 2 is private at no ε.",
    "wang2019": "The norm of the gradient, of the records and of the population, falls with n and "
    "with ε as theorems 2 and 3 have it. The algorithm is no better than those it is compared "
    "with: at equal privacy it and that of Wang et al. 2017 are the same, and the noise quoted for "
    "Zhang et al. is too small for its steps. All algorithms keep their rates in p, and "
    "Algorithms 1, 2 and 4 theirs in n; of Algorithm 3 the interval does not tell.",
    "xie2023": "At equal privacy smoothed Catoni gradients (H) are far better than medians of "
    "means (K), as the paper says. Beside plain clipping they are better in 20 features of the "
    "logistic model, with its errors read as W20 defines them, and as good in 40. They are worse "
    "from 60 features on at ε = 1 and from 100 on at ε = 3, in the other reading and in the linear "
    "model. With the batches of the corollaries both fall faster in n than their bounds. The three "
    "printed noises cost more than the stated ε, by different factors, and so the printed "
    "comparison is one at unequal privacy.",
    "tao2022": "The rates in n, ε and d of the upper bounds are seen on laws with few moments. "
    "Medians of groups are worse than one-dimensional means here; remark 2 compares their bounds, "
    "which are about the worst law. The strongly convex branch is of no use at up to 100,000 "
    "records. Whether the rates are optimal is no question for an experiment on one law.",
    "wang2022": "The upper bounds in n and ε are kept with room to spare, for every order of "
    "moments. The printed mechanism costs exactly twice the stated ε. A net that can be searched "
    "has the best accuracy in few dimensions and heavy tails; the theorems' nets are out of reach.",
}
"""What an experiment with a paper taught, in a paragraph; verdicts are computed beside it."""
MODULES = (
    "wang2020", "wang2020_aggregate", "wang2019", "xie2023", "tao2022_means", "tao2022_descent",
    "tao2022_sparse", "wang2022", "rates",
)  # fmt: skip
"""Where the studies are."""


@cache
def studies() -> dict[str, Study]:
    """Every study by its name."""
    found: dict[str, Study] = {}
    for name in MODULES:
        for study in importlib.import_module(f"experiments.{name}").STUDIES:
            found[study.name] = study
    papers = list(PAPERS)
    return dict(sorted(found.items(), key=lambda item: papers.index(item[1].paper)))


def chosen(names: list[str]) -> list[Study]:
    """The studies of these names, or of these papers; ``all`` for all. ValueError if unknown."""
    found: dict[str, Study] = {}
    for name in names:
        those = {
            key: study for key, study in studies().items() if name in ("all", study.paper, key)
        }
        if not those:
            raise ValueError(f"There is no study {name!r}.{guess(name, (*studies(), *PAPERS))}")
        found |= those
    return list(found.values())
