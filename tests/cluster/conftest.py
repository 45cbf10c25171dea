"""A Dask cluster of two processes on this machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")


@contextmanager
def processes(workers: int = 2, **options: Any) -> Iterator[Any]:
    """A client of a cluster; what distributed warns of (ports, clocks, slow starts) is its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=workers, dashboard_address=None, processes=True,
            **{"memory_limit": 0, "threads_per_worker": 1, **options},
        )  # fmt: skip
        client = distributed.Client(cluster)
        try:
            yield client
        finally:
            client.close()
            cluster.close()


@pytest.fixture(scope="session", name="processes")
def clusters() -> Any:
    """Return how to start one of another size."""
    return processes


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with processes() as made:
        yield made
