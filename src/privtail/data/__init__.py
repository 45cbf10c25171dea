"""Adult, the data set that travels with privtail.

`ADULT.md` beside this file says where it comes from, under which licence (CC BY 4.0), and what
was changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict

ADULT = Path(__file__).with_name("adult.parquet")


class Schema(TypedDict):
    """What is public about a table: facts from its documentation, never from its rows."""

    target: str
    classes: list[str]
    numeric: list[str]
    categories: dict[str, list[str]]
    drop: list[str]


def adult_schema() -> Schema:
    """Return the declared columns, categories and classes of Adult."""
    schema: Schema = json.loads(ADULT.with_suffix(".json").read_text(encoding="utf-8"))
    return schema


def write_adult_splits(folder: Path) -> tuple[Path, Path]:
    """Write the two parts of Adult, as they were published, and return where they are."""
    import pyarrow.parquet as pq

    table = pq.read_table(ADULT)
    split = table["split"].to_numpy()
    paths = []
    for part in ("train", "test"):
        paths.append(folder / f"{part}.parquet")
        pq.write_table(table.filter(split == part).drop_columns("split"), paths[-1])
    return paths[0], paths[1]
