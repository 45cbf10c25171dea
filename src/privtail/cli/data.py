"""``privtail data``: the public tables of the experiments."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import show


def data(
    check: Annotated[
        bool, typer.Option("--check", help="Compare the files with their checksums.")
    ] = False,
) -> None:
    """Show which public tables are here, and where others are.

    Adult comes with privtail. The others are read from the folder that PRIVTAIL_DATA names, or
    from ../shared/data; no command downloads anything.

    For example:
      privtail data
      privtail data --check
    """
    from privtail.data.catalogue import BESIDE, TABLES, folder, located

    base = folder()
    none = f"none; PRIVTAIL_DATA names one, or it is {BESIDE}"
    show(f"folder: {none if base is None else base}")
    for info in TABLES:
        path = located(info.name)
        show(f"\n{info.name}")
        facts = {
            "here": "no" if path is None else str(path),
            "table": f"{info.rows:,} rows, {info.features} features, target {info.target}",
            "source": f"{info.source}, https://doi.org/{info.doi}",
            "licence": f"{info.licence}, {info.authors}",
            "file": str((base or Path("$PRIVTAIL_DATA")) / info.file),
            "sha256": info.sha256,
            "note": info.note,
        }
        if check and path is not None:
            same = _digest(path) == info.sha256
            other = "ANOTHER FILE: the checksum differs; get it again from the source"
            facts["checked"] = "the checksum agrees" if same else other
        for name, fact in facts.items():
            if fact:
                show(f"  {name:<8} {fact}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
