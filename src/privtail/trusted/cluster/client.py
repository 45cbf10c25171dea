"""Which Dask cluster computes.

Formal guarantee
----------------
None is needed: a client holds no record, and nothing is asked through it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from privtail.errors import InvalidInput

_chosen: ContextVar[Any] = ContextVar("client", default=None)


@contextmanager
def workers(client: Any) -> Iterator[None]:
    """Let the workers of a Dask client answer for Dask collections in this block.

    Without it the client that was made last is used, as everywhere in Dask. Whoever reaches its
    scheduler can read the records on the workers: see *Threat model* in ``SECURITY.md``.

    Parameters
    ----------
    client : distributed.Client
        A synchronous client.

    Yields
    ------
    None

    Raises
    ------
    InvalidInput
        If it is none, or an asynchronous one.

    Examples
    --------
    >>> import privtail
    >>> with privtail.workers(client):  # doctest: +SKIP
    ...     model.fit(ddf[features], ddf["cost"])
    """
    token = _chosen.set(_checked(client))
    try:
        yield
    finally:
        _chosen.reset(token)


def found() -> Any:
    """The client of this block, or the one that was made last.

    Raises
    ------
    InvalidInput
        If there is none, or `distributed` is not installed.
    """
    if _chosen.get() is not None:
        return _chosen.get()
    try:
        from distributed import default_client
    except ImportError:
        raise InvalidInput(
            "Dask collections need the cluster of dask.distributed: pip install 'privtail[dask]'."
        ) from None
    try:
        return _checked(default_client())
    except ValueError:
        raise InvalidInput(
            "These are Dask collections, and there is no Dask client to compute with. Start one: "
            "from dask.distributed import Client; client = Client()."
        ) from None


def _checked(client: Any) -> Any:
    if not hasattr(client, "submit") or not hasattr(client, "who_has"):
        raise InvalidInput(
            f"workers() needs a dask.distributed.Client, got {type(client).__name__}: "
            "from dask.distributed import Client; client = Client(address)."
        )
    if client.asynchronous:
        raise InvalidInput("A fit waits for its cluster: pass a Client that is not asynchronous.")
    return client
