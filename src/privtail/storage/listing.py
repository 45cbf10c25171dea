"""The files that a path names: those of a folder, and those that match a pattern."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

from privtail.errors import InvalidInput
from privtail.storage.remote import RemoteFile, found_at, here, is_hidden, is_url, plain


def listed(data: Any) -> tuple[Path | RemoteFile | str, tuple[Path | RemoteFile, ...]]:
    """What errors call a table, and its files, sorted by path.

    ``data`` is a path, a folder, a pattern, a URL, or a list of these.

    Raises
    ------
    InvalidInput
        If it is none of these, or names no file.
    """
    if isinstance(data, str | PathLike):
        name = str(data)
        shown = plain(name) if is_url(name) else Path(name)
        return shown, tuple(sorted(files_of(data), key=str))
    if not isinstance(data, list | tuple) or not all(
        isinstance(path, str | PathLike) for path in data
    ):
        raise InvalidInput(
            "A table on disk is a path, a folder, a pattern such as 'claims/*.parquet', or a "
            f"list of paths; got {type(data).__name__}. Pass a data frame in memory as it is, "
            "without open_table."
        )
    if not data:
        raise InvalidInput("The list of files is empty: name at least one.")
    paths = sorted((file for one in data for file in files_of(one)), key=str)
    more = len(paths) - 1
    return f"{paths[0]} and {more} more" if more else paths[0], tuple(paths)


def files_of(named: str | PathLike[str]) -> Collection[Path | RemoteFile]:
    """The files that a path, a folder, a pattern or a URL names.

    Left out of folders, and of what a pattern matches: names that begin with ``.`` or ``_``.

    Raises
    ------
    InvalidInput
        If there is none, or a folder cannot be read.
    """
    if isinstance(named, str) and is_url(named):
        local = here(named)
        return found_at(named) if local is None else _found_here(local)
    return _found_here(Path(named))


def _found_here(path: Path) -> Collection[Path]:
    if path.is_dir():
        within = _within(path)
        if not within:
            raise InvalidInput(
                f"The folder {path} holds no file. Name another, or rename its files: names that "
                "begin with '.' or '_' do not count."
            )
        return within
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    first = next(i for i, part in enumerate(path.parts) if glob.has_magic(part))
    named = any(map(is_hidden, path.parts[first:]))
    found = set()
    matches = glob.iglob(str(path), recursive=True)  # noqa: PTH207  Path.glob skips linked folders
    for match in map(Path, matches):
        if named or not any(map(is_hidden, match.parts[first:])):
            found.update(_within(match) if match.is_dir() else [match])
    if not found:
        raise InvalidInput(
            f"No file matches {path}. Check it: names that begin with '.' or '_' do not count."
        )
    return found


def _within(folder: Path) -> list[Path]:
    """The files of a folder and of those within it."""
    found = []
    for place, folders, names in os.walk(folder, onerror=_unread, followlinks=True):
        if "_delta_log" in folders:
            raise InvalidInput(
                f"{place} is a Delta table: rows that were deleted are still in its files. Write "
                "its present rows to Parquet files first, and name their folder."
            )
        folders[:] = [name for name in folders if not is_hidden(name)]
        found += [Path(place, name) for name in names if not is_hidden(name)]
    return found


def _unread(error: OSError) -> NoReturn:
    raise InvalidInput(
        f"The folder {error.filename} cannot be read: {error.strerror}. Name one that you may read."
    ) from None
