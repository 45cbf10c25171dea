"""A ledger in a locked, append-only, hash-chained file; loaded with the first one.

A file is one JSON line per plan behind a header. A line is appended under an exclusive lock and is
on the disk before it counts, so a crash can waste budget but never hides a release. A line that a
crash tore was never confirmed to anybody and is cut off before the next one; a last line that lacks
nothing but its end counts, since an editor may have taken it. Every line ends with the SHA-256 of
itself and names that of the line before it. This shows editing and reordering, not forgery, nor
lines that are missing at the end: whoever can write the file can rewrite it from its beginning.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from privtail import ledger_texts as texts
from privtail.errors import InvalidInput
from privtail.json_files import strictly
from privtail.trusted.entries import NAMES, Entry, Terms

if sys.platform != "win32":
    import fcntl

_Made = TypeVar("_Made")

_HEAD = b'{"format": "privtail-ledger", "version": 1, '
_SEAL = ', "sha256": "%s"}'
_SEAL_LENGTH = len(_SEAL) - 2 + 64
_LONGEST_HEADER = 2**16


@dataclass(frozen=True)
class _Page:
    """The complete lines of a ledger file."""

    terms: Terms
    entries: list[Entry]
    seals: list[str]
    size: int


class File:
    """Entries in a file that processes share.

    Raises
    ------
    InvalidInput
        If the file cannot be read, locked, written or trusted; the message says which line.
    """

    def __init__(self, path: Path) -> None:
        if sys.platform == "win32":
            raise InvalidInput(
                "A ledger file needs fcntl.flock, which Windows does not have. Use a ledger in "
                "memory: Ledger(epsilon=..., delta=...), or WSL."
            )
        self._path = path
        self._seen = (0, "")

    def begin(self, given: dict[str, Any]) -> Terms:
        """Read the header, or write it if there is none; refuse other terms than the file's."""
        wanted = Terms(**given) if "epsilon" in given else None
        if wanted and not self._path.exists():
            Terms.of(given)
        with self._locked(write=wanted is not None, create=wanted is not None) as fd:
            data = self._ended(fd, write=wanted is not None)
            if _is_torn_header(data):
                if wanted is None:
                    raise texts.not_started(self._path, ", which is empty")
                Terms.of(given)
                os.ftruncate(fd, 0)
                line, seal = _header(wanted)
                self._write(fd, line)
                self._seen = 0, seal
                _sync_directory(self._path.parent)
                return wanted
            found = self._parse(data).terms
        for name, value in given.items():
            if value != getattr(found, name):
                raise texts.another_budget(self._path, name, getattr(found, name), value)
        return found

    @contextmanager
    def open(self, *, write: bool) -> Iterator[tuple[list[Entry], Callable[[Entry], None]]]:
        with self._locked(write=write) as fd:
            page = self._parse(self._ended(fd, write=write))

            def append(entry: Entry) -> None:
                os.ftruncate(fd, page.size)  # a torn line was confirmed to nobody
                line, seal = _sealed({"previous": page.seals[-1], **_encoded(_said(asdict(entry)))})
                self._write(fd, line)
                self._seen = (len(page.seals), seal)

            yield page.entries, append

    @contextmanager
    def _locked(self, *, write: bool, create: bool = False) -> Iterator[int]:
        locked = False
        while not locked:
            fd = self._descriptor(write=write, create=create)
            try:  # the lock is taken in here: no interrupt leaves it behind
                locked = self._lock(fd, write=write)
                if locked:
                    yield fd
            except OSError as error:
                raise texts.unusable(self._path, error, write=write) from None
            finally:
                if locked:  # said aloud: a process forked meanwhile holds a copy of the descriptor
                    fcntl.flock(fd, fcntl.LOCK_UN)
                os.close(fd)

    def _descriptor(self, *, write: bool, create: bool) -> int:
        flags = os.O_RDWR | os.O_APPEND if write else os.O_RDONLY
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        try:
            return os.open(self._path, flags, 0o666)
        except OSError as error:
            raise texts.unusable(self._path, error, write=write) from None

    def _lock(self, fd: int, *, write: bool) -> bool:
        """Wait for the lock; False if the name was given to another file meanwhile."""
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InvalidInput(f"{self._path} is not a file, and a ledger must be one.")
        fcntl.flock(fd, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        return self._path.exists() and os.path.samestat(os.fstat(fd), self._path.stat())

    def _parse(self, data: bytes) -> _Page:
        *lines, tail = data.split(b"\n")
        if not lines or not lines[0].startswith(_HEAD):
            raise InvalidInput(
                f"{self._path} is not a privtail ledger of version 1. Choose another path; nothing "
                "was written to it."
            )
        opened = [self._opened(number, line) for number, line in enumerate(lines, 1)]
        entries: list[Entry] = []
        for i, (content, _) in enumerate(opened[1:], 1):
            if content.pop("previous", None) != opened[i - 1][1] or content.get("number") != i:
                raise texts.broken(self._path, i + 1, "does not follow the line before it")
            entries.append(self._made(i + 1, Entry, content))
        header = {f.name: opened[0][0].get(f.name) for f in fields(Terms)}
        terms = self._made(1, Terms, header)
        seals = [seal for _, seal in opened]
        count, seal = self._seen
        if count >= len(seals) or (seal and seals[count] != seal):
            raise texts.broken(self._path, count + 1, "has been removed since this process read it")
        self._seen = (len(seals) - 1, seals[-1])
        return _Page(terms, entries, seals, len(data) - len(tail))

    def _opened(self, number: int, line: bytes) -> tuple[dict[str, Any], str]:
        found = _opened(line)
        if found is None:
            raise texts.broken(self._path, number, "was altered or damaged")
        return found

    def _made(self, number: int, kind: type[_Made], content: dict[str, Any]) -> _Made:
        try:
            return kind(**content)
        except (TypeError, ValueError):
            raise texts.broken(self._path, number, "was altered or damaged") from None

    def _ended(self, fd: int, *, write: bool) -> bytes:
        """The content of the file; a whole last line gets the end that it may lack."""
        data = _read(fd)
        if _opened(data.rpartition(b"\n")[2]) is None:
            return data
        if write:
            self._write(fd, b"\n")
        return data + b"\n"

    def _write(self, fd: int, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(fd, line) :]
            _sync(fd)
        except OSError as error:
            raise InvalidInput(
                f"Could not write to the ledger {self._path}: {error.strerror}. No row was read. "
                "Make room, or mend the disk, and fit again."
            ) from None


def _is_torn_header(data: bytes) -> bool:
    """Whether a file was being made when its maker died; its budget was confirmed to nobody."""
    begun = _HEAD.startswith(data) or data.startswith(_HEAD)
    return begun and b"\n" not in data and len(data) < _LONGEST_HEADER


def _read(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    return b"".join(iter(lambda: os.read(fd, 1 << 20), b""))


def _sync(fd: int) -> None:
    """Bytes on the disk itself; macOS needs another word for that."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, full)


def _sync_directory(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _header(terms: Terms) -> tuple[bytes, str]:
    budget = _encoded(_said(terms.content))
    return _sealed({"format": "privtail-ledger", "version": 1, **budget})


def _said(content: dict[str, Any]) -> dict[str, Any]:
    """Without the names that were not given: so older versions read files without names."""
    optional = (*NAMES, "analysts")
    return {k: v for k, v in content.items() if v is not None or k not in optional}


def _sealed(content: dict[str, Any]) -> tuple[bytes, str]:
    """A line that ends with the SHA-256 of what is before it."""
    body = json.dumps(content, allow_nan=False)
    seal = hashlib.sha256(body.encode()).hexdigest()
    return f"{body[:-1]}{_SEAL % seal}\n".encode(), seal


def _opened(line: bytes) -> tuple[dict[str, Any], str] | None:
    """Inverse of `_sealed` without the line end; None if the seal does not fit."""
    try:
        body, seal = line[:-_SEAL_LENGTH] + b"}", line[-_SEAL_LENGTH:].decode()[-66:-2]
        if hashlib.sha256(body).hexdigest() != seal or not line.endswith((_SEAL % seal).encode()):
            return None
        content = strictly(body)
        return {
            k: math.inf if v == "inf" and k not in ("label", *NAMES) else v
            for k, v in content.items()
        }, seal
    except (ValueError, AttributeError, RecursionError):
        return None


def _encoded(content: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity."""
    return {k: "inf" if v == math.inf else v for k, v in content.items()}
