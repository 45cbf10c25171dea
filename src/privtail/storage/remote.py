"""Files of other file systems, by their URL: those that fsspec and PyArrow know.

Formal guarantee
----------------
Nothing here reads a cell. What a file system says of a file (name, size, time, ETag or checksum) is
public. Errors of a file system may quote an address with its key, so none is shown: they become
fixed sentences, in which an address has neither user, nor password, nor query.
"""

from __future__ import annotations

import glob
import re
import urllib.request
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from privtail.errors import InvalidInput

_STATE = frozenset(
    ("checksum", "content_md5", "crc", "crc32c", "created", "etag", "generation", "last_modified",
     "lastmodified", "md5", "md5hash", "modified", "mtime", "size", "updated", "version_id",
     "versionid")
)  # fmt: skip
"""What file systems call that by which a new version of a file is known, in small letters."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a file system that is no folder of this machine.

    Attributes
    ----------
    system, path : the file system of fsspec, and the name of the file in it.
    shown : what errors call it; it holds no key.
    """

    system: Any
    path: str
    shown: str

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return PurePosixPath(self.path).suffix

    @property
    def itself(self) -> Path | tuple[Any, str]:
        """What is the same for two names of one file, also through a cache or within a folder."""
        system, path = self.system, self.path
        while "cache" in str(system.protocol) or system.protocol == "dir":
            path = f"{system.path}/{path}" if system.protocol == "dir" else path
            system = system.fs
        return Path(path) if "file" in system.protocol else (system, path)

    def open(self) -> Any:
        """The file as PyArrow reads it."""
        import pyarrow as pa

        with speechless(self.shown):
            return pa.PythonFile(self.system.open(self.path, "rb"), mode="r")

    def state(self) -> Hashable:
        """What changes with its content: size, time, ETag, checksum, as far as they are known."""
        with speechless(self.shown):
            self.system.invalidate_cache()
            found = self.system.info(self.path)
            modified = self._modified()
        known = ((k, str(v)) for k, v in found.items() if k.lower() in _STATE)
        return (*sorted(known), modified)

    def _modified(self) -> str:
        try:
            return str(self.system.modified(self.path))
        except NotImplementedError:
            return ""

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__


def is_url(path: str) -> bool:
    """Whether a path names a file system, as in ``s3://bucket/file``."""
    return re.match(r"[a-zA-Z][\w+.-]*(://|::)", path) is not None


def here(url: str) -> Path | None:
    """The path of a file or folder of this machine; None of another."""
    scheme = next((one for one in ("file://", "local://") if url.startswith(one)), None)
    return None if scheme is None else Path(urllib.request.url2pathname(url.removeprefix(scheme)))


def plain(url: str) -> str:
    """An address without user, password and query."""
    return re.sub(r"\?[^?]*=.*", "", re.sub(r"://[^/]*@", "://", url))


def found_at(url: str) -> list[RemoteFile]:
    """The files that a URL names: one, those of a folder, or those that match a pattern.

    Raises
    ------
    InvalidInput
        If there is none, or a package is missing that knows such a URL.
    """
    shown = plain(url)
    system, path = _system(url, shown)
    with speechless(shown):
        system.invalidate_cache()
        pattern = glob.has_magic(path) and not system.exists(path)
        starts = sorted(system.glob(path)) if pattern else [path]
        files = {f for one in starts for f in (system.find(one) if system.isdir(one) else [one])}
    parts = path.split("/")
    first = next((i for i, part in enumerate(parts) if pattern and glob.has_magic(part)), None)
    named = first is not None and any(map(is_hidden, parts[first:]))
    below = len(path.rstrip("/").split("/")) if first is None else first
    names = [f for f in files if named or not any(map(is_hidden, f.split("/")[below:]))]
    if any("/_delta_log/" in name for name in files):
        raise InvalidInput(
            f"{shown} is a Delta table: rows that were deleted are still in its files. Write its "
            "present rows to Parquet files first, and name their folder."
        )
    if not names:
        raise InvalidInput(
            f"No file matches {shown}. Check it: names that begin with '.' or '_' do not count."
        )
    scheme = re.split("://|::", shown)[0]
    return [
        RemoteFile(system, name, plain(name) if "://" in name else f"{scheme}://{name.lstrip('/')}")
        for name in names
    ]


def is_hidden(name: str) -> bool:
    """Whether a file or folder does not count unless it is named."""
    return name.startswith((".", "_"))


def _system(url: str, shown: str) -> tuple[Any, str]:
    """The file system of a URL: of fsspec, else of PyArrow, wrapped as one of fsspec."""
    try:
        import fsspec
        from fsspec.implementations.arrow import ArrowFSWrapper
    except ImportError:
        raise InvalidInput(
            f"{shown} is not on this machine. Files elsewhere need fsspec: pip install "
            "'privtail[remote]'."
        ) from None
    from pyarrow.fs import FileSystem

    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(url)
    except ImportError as error:
        lacking = str(error)
    except ValueError:
        lacking = (
            "No package that is installed knows such an address: pip install s3fs, or another."
        )
    except Exception as error:  # noqa: BLE001  its text may hold a key
        raise unread(shown, error) from None
    else:
        return found
    try:
        native, path = FileSystem.from_uri(url)
    except Exception:  # noqa: BLE001  its text may hold a key
        raise InvalidInput(f"{shown} cannot be read. {lacking}") from None
    return ArrowFSWrapper(native), path


@contextmanager
def speechless(shown: str) -> Iterator[None]:
    """Errors of a file system as fixed sentences: their texts may hold a key."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:  # noqa: BLE001  any package may be below
        raise unread(shown, error) from None


def unread(path: object, error: Exception) -> InvalidInput:
    """The refusal of a file that its file system does not give."""
    if isinstance(error, FileNotFoundError):
        return InvalidInput(f"There is no file {path}. Check the address.")
    return InvalidInput(
        f"{path} cannot be read ({type(error).__name__}). Check the address, and that you may "
        "read it. Keys are taken from where its package looks for them, such as the environment."
    )
