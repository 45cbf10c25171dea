"""Which Dask cluster computes: a client holds no record, and nothing is asked through it here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
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
