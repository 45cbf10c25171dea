"""Which Dask cluster computes: a client holds no record, and nothing is asked through it here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from privtail.errors import InvalidInput


def workers(client: Any) -> AbstractContextManager[Any]:
    """Let the workers of one Dask client compute, where several clients exist.

    Parameters
    ----------
    client : distributed.Client
        A client with ``asynchronous=False``. Outside ``with`` the client that was made last is
        used.

    Returns
    -------
    context manager
        For ``with``: fits and means of Dask collections within it run on these workers.

    Raises
    ------
    InvalidInput
        If this is no client.

    Examples
    --------
    >>> import privtail
    >>> with privtail.workers(client):  # doctest: +SKIP
    ...     model.fit(ddf[features], ddf["cost"])
    """
    if not hasattr(type(client), "as_current"):
        raise InvalidInput(
            f"workers needs a dask.distributed.Client, not a {type(client).__name__}."
        )
    current: AbstractContextManager[Any] = client.as_current()
    return current


def found() -> Any:
    """The client of ``with workers(client):``, or the one that was made last.

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


def is_lost(error: BaseException) -> bool:
    """Whether this says that somebody is gone, and not that a task of a user failed."""
    lost = {"CancelledError", "FutureCancelledError", "KilledWorker", "CommClosedError"}
    return bool(lost & {kind.__name__ for kind in type(error).__mro__}) or isinstance(
        error, OSError | asyncio.CancelledError
    )


def balanced(
    held: Mapping[str, Sequence[int]], lengths: Sequence[int]
) -> Iterator[tuple[int, str]]:
    """Which partition to move to which worker, in turn: from most rows to fewest, where it helps.

    A frame that was persisted on one worker would be swept by that one alone.
    """
    places = {worker: list(partitions) for worker, partitions in held.items()}

    def rows(worker: str) -> int:
        return sum(lengths[i] for i in places[worker])

    while places:
        most, fewest = max(places, key=rows), min(places, key=rows)
        gap = rows(most) - rows(fewest)
        fitting = [i for i in places[most] if 0 < 2 * lengths[i] <= gap]
        if not fitting:
            return
        one = max(fitting, key=lengths.__getitem__)
        places[most].remove(one)
        places[fewest].append(one)
        yield one, fewest
