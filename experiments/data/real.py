"""Real tables, read once per process."""

from __future__ import annotations

from functools import cache

import pandas as pd

from privtail.data.catalogue import located


@cache
def table(name: str) -> pd.DataFrame:
    """A table of `privtail.data.catalogue` by name."""
    path = located(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not here: `privtail data` says where to get it.")
    return pd.read_parquet(path)
