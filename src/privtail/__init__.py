"""Differentially private learning on heavy-tailed data.

Privacy holds for every input. Assumptions about values buy accuracy, never privacy. If one person
may have several rows, you must say which rows belong together.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "check_pipeline": "privtail.linear_model.pipelines",
    "DPMean": "privtail.linear_model",
    "DPScaler": "privtail.linear_model",
    "Budget": "privtail.trusted.budget",
    "PrivateSearchCV": "privtail.linear_model",
    "Ledger": "privtail.trusted.ledger",
    "Statement": "privtail.statement",
    "compare": "privtail.evaluation",
    "cross_validate": "privtail.evaluation",
    "evaluate": "privtail.evaluation",
    "load": "privtail.model",
    "open_table": "privtail.table_files",
    "private_correlation": "privtail.describe.matrices",
    "private_count": "privtail.describe.counting",
    "private_covariance": "privtail.describe.matrices",
    "private_histogram": "privtail.describe.histograms",
    "private_mean": "privtail.mean",
    "progress_bar": "privtail.progress",
    "report": "privtail.reporting",
    "private_quantile": "privtail.describe.quantiles",
    "summarize": "privtail.describe.summary",
    "verify": "privtail.statement",
    "workers": "privtail.dask_client",
}

_OTHERWISE = {
    "private_median": "private_quantile(x, 0.5, epsilon=1)",
    "private_sum": "private_mean, times the number of rows,",
    "private_std": "summarize",
    "describe": "summarize",
}
"""What may be asked for by those who do not know its name."""

_ROOMS = ("algorithms", "data", "domains", "errors", "features", "linear_model", "losses")

__all__ = [
    "Budget",
    "DPMean",
    "DPScaler",
    "Ledger",
    "PrivateSearchCV",
    "Statement",
    "__version__",
    "check_pipeline",
    "compare",
    "cross_validate",
    "evaluate",
    "load",
    "open_table",
    "private_correlation",
    "private_count",
    "private_covariance",
    "private_histogram",
    "private_mean",
    "private_quantile",
    "progress_bar",
    "report",
    "summarize",
    "verify",
    "workers",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"privtail.{name}")
    if name not in _HOMES:
        near = f"linear_model.{name}" if name.startswith("DP") else _OTHERWISE.get(name)
        mend = "" if near is None else f" Is privtail.{near} meant?"
        raise AttributeError(f"module 'privtail' has no attribute {name!r}.{mend}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
