"""Which Dask cluster computes: a client holds no record, and nothing is asked through it here."""

from __future__ import annotations

from typing import Any

from privtail.errors import InvalidInput


def found() -> Any:
    """The client of ``with client.as_current():``, or the one that was made last.

    Whoever reaches its scheduler can read the records on the workers: see *Threat model* in
    ``SECURITY.md``.

    Raises
    ------
    InvalidInput
        If there is none, or `distributed` is not installed.
    """
    try:
        from distributed import default_client
    except ImportError:
        raise InvalidInput(
            "Dask collections need the cluster of dask.distributed: pip install 'privtail[dask]'."
        ) from None
    try:
        client = default_client()
    except ValueError:
        raise InvalidInput(
            "These are Dask collections, and there is no Dask client to compute with. Start one: "
            "from dask.distributed import Client; client = Client()."
        ) from None
    if client.asynchronous:
        raise InvalidInput("A fit waits for its cluster: use a Client that is not asynchronous.")
    return client
