"""Objects that hold private rows stay in their process."""

from __future__ import annotations

from typing import NoReturn

from privtail.errors import NotReleased


class PrivateRows:
    """A container of private rows: it can be neither pickled nor copied."""

    def __reduce__(self) -> NoReturn:
        raise NotReleased("Private rows cannot be pickled or copied.")


class PrivateFile(PrivateRows):
    """Rows in files: what `trusted.files` reads, known by this class without loading that room."""
