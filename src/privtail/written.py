"""Files that are written whole, or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from privtail.errors import InvalidInput

_TRIAL = 4096
"""Bytes that are written to see whether a file can be."""


def require_writable(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that could not be written, before work is done for it.

    A draft beside it is written and removed: permissions alone do not tell, for example of a name
    that is too long, a full disk or a folder of ``/proc``.

    Raises
    ------
    InvalidInput
        If the file exists (without ``overwrite``), or nothing can be written in its folder.
    """
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder. Give the name of a file.")
    if path.exists() and not overwrite:
        raise InvalidInput(
            f"{path} exists already.",
            "Choose another name, or pass overwrite=True.",
            cli="Choose another name, or add --force.",
        )
    target = path.resolve()
    if _is_device(target):
        if not os.access(target, os.W_OK):
            raise InvalidInput(f"No permission to write to {path}. Choose another name.")
        return
    folder = target.parent if path.is_symlink() else path.parent
    if not folder.is_dir():
        raise InvalidInput(
            f"The folder {folder} does not exist. Make it first: "
            f"mkdir -p {shlex.quote(str(folder))}"
        )
    with _drafted(path) as file:
        file.write(bytes(_TRIAL))


@contextlib.contextmanager
def written_whole(path: Path, *, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file that appears under its name when it is complete, or not at all.

    A link stays, and what it leads to is replaced. What is no regular file, such as ``/dev/null``
    or a pipe, is written to as it is.
    """
    require_writable(path, overwrite=overwrite)
    target = path.resolve()
    if not _is_device(target):
        with _drafted(path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(target)
        return
    with _refused(path), target.open("wb") as file:
        yield file


def written_json(path: Path, content: Any, *, overwrite: bool) -> None:
    """Write an object as JSON, in a file that is complete or not there."""
    with written_whole(path, overwrite=overwrite) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n")


@contextlib.contextmanager
def _drafted(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside what ``path`` leads to; it is removed in the end, if it is still there."""
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    with _refused(path):
        try:
            with draft.open("xb") as file:
                if target.exists():  # nobody may read it who might not read what it replaces
                    draft.chmod(stat.S_IMODE(target.stat().st_mode))
                yield file
        finally:
            draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    """A failure to write as an error that names the file."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror}. Choose another place."
        ) from None


def _is_device(target: Path) -> bool:
    """Whether something is there that is neither a regular file nor a folder."""
    return target.exists() and not target.is_file()
