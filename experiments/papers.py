"""All studies, paper by paper."""

from __future__ import annotations

import importlib
from functools import cache

from experiments.study import Study

PAPERS = ("wang2020", "wang2020_aggregate", "wang2019", "xie2023", "tao2022", "wang2022")


@cache
def studies() -> dict[str, Study]:
    """Every study by its name."""
    found: dict[str, Study] = {}
    for paper in PAPERS:
        try:
            module = importlib.import_module(f"experiments.{paper}")
        except ModuleNotFoundError as error:
            if error.name != f"experiments.{paper}":
                raise
            continue
        for study in module.STUDIES:
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
