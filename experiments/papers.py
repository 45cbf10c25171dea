"""All studies, paper by paper."""

from __future__ import annotations

import importlib
from functools import cache

from experiments.study import Study

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
MODULES = (
    "wang2020", "wang2020_aggregate", "wang2019", "xie2023", "tao2022_means", "tao2022_descent",
    "tao2022_sparse", "wang2022",
)  # fmt: skip
"""Where the studies are."""


@cache
def studies() -> dict[str, Study]:
    """Every study by its name."""
    found: dict[str, Study] = {}
    for name in MODULES:
        for study in importlib.import_module(f"experiments.{name}").STUDIES:
            found[study.name] = study
    return found


def chosen(names: list[str]) -> list[Study]:
    """The studies of these names, or of these papers; ``all`` for all. ValueError if unknown."""
    found: dict[str, Study] = {}
    for name in names:
        those = {
            key: study for key, study in studies().items() if name in ("all", study.paper, key)
        }
        if not those:
            raise ValueError(f"There is no study {name!r}.")
        found |= those
    return list(found.values())
