"""A table file: how it begins, its damage, and whether somebody writes to it.

Formal guarantee
----------------
Refusals of files that are malformed, or that change while they are read, are outside the promise;
they quote no cell.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privtail.errors import InvalidInput
from privtail.schema import headers
from privtail.schema.dialect import Dialect
from privtail.storage.queries import QueryResult
from privtail.storage.remote import RemoteFile, unread

Place = Path | RemoteFile | QueryResult

_CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""How compressed files begin, and the codec of PyArrow that reads them."""


def changed(path: Place | str) -> InvalidInput:
    """The refusal of what was written to after it was opened."""
    return InvalidInput(
        f"{path} was written to after it was opened. Open it again, and do not write to it during "
        "a fit."
    )


class Source:
    """A file, as it was when it was opened.

    Attributes
    ----------
    beginning : its first eight bytes.
    untyped : whether it is a CSV.

    Raises
    ------
    InvalidInput
        If it cannot be read.
    """

    def __init__(self, path: Place, dialect: Dialect) -> None:
        self.path, self.dialect, self.untyped = path, dialect, False
        self.beginning, self._codec = b"", ""
        self.beginning = self.start(8)
        self._codec = next((c for b, c in _CODECS.items() if self.beginning.startswith(b)), "")
        self._written = self._state()

    def open(self) -> Any:
        """Its bytes, as PyArrow reads them; those of a compressed file decompressed."""
        import pyarrow as pa

        file = pa.OSFile(str(self.path)) if isinstance(self.path, Path) else self.path.open()
        return pa.CompressedInputStream(file, self._codec) if self._codec else file

    def start(self, size: int) -> bytes:
        """The first bytes."""
        if isinstance(self.path, Path) and self.path.is_dir():
            raise InvalidInput(f"{self.path} is a folder. Name a Parquet or CSV file.")
        try:
            with self.open() as file:
                return bytes(file.read(size))
        except FileNotFoundError:
            raise InvalidInput(f"There is no file {self.path}. Check the path.") from None
        except OSError as error:
            raise InvalidInput(
                f"{self.path} cannot be read: {error.strerror or 'it is damaged'}. Name a file "
                "that you may read."
            ) from None

    @property
    def kind(self) -> str:
        """Its format, by how it begins; what is neither Parquet nor Arrow is read as CSV."""
        if self.beginning[:4] == b"PAR1":
            return "Parquet"
        is_arrow = self.beginning[:6] == b"ARROW1" or self.beginning[:4] == b"\xff\xff\xff\xff"
        return "Arrow" if is_arrow else "CSV"

    def require_unchanged(self) -> None:
        """Refuse a file that was written to, by what its file system says of it."""
        if self._state() != self._written:
            raise changed(self.path)

    def _state(self) -> Hashable:
        if not isinstance(self.path, Path):
            return self.path.state()
        try:
            found = self.path.stat()
        except OSError:
            return ()
        replaced = found.st_dev, found.st_ino, found.st_ctime_ns  # which nobody can set back
        return *replaced, found.st_size, found.st_mtime_ns

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Damage as an error that quotes no cell."""
        import pyarrow as pa

        try:
            yield
        except pa.ArrowInvalid as error:
            raise self.malformed(str(error)) from None
        except UnicodeError:
            raise self.malformed("UTF8") from None
        except (pa.ArrowException, OSError):
            raise self.malformed("") from None
        except Exception as error:
            if isinstance(self.path, Path) or isinstance(error, InvalidInput):
                raise
            raise unread(self.path, error) from None  # its text may hold a key

    def malformed(self, reason: str) -> InvalidInput:
        """The refusal of a file that cannot be decoded."""
        if "UTF8" in reason and not reason.startswith("CSV parse error"):  # which quotes a row
            return headers.undecoded(self.path, self.dialect)
        if self.untyped:
            return headers.irregular(self.path)
        kind = "Arrow" if self.start(4) != b"PAR1" else "Parquet"
        return InvalidInput(f"{self.path} is a damaged {kind} file. Write it again.")
