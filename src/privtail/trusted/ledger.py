"""The total budget of a data set: what may be spent, and what has been.

Formal guarantee
----------------
A ledger is a privacy filter: its limits are fixed when it is made, each plan is admitted or refused
from public numbers before a record is read, nothing is ever refunded, and all admitted plans
together are (epsilon, delta)-DP, also when each is chosen after seeing the releases of those before
it. Three filters are proved for such fully adaptive choices:

============  ==================================  ==================================================
composition   limits                              proof
============  ==================================  ==================================================
``basic``     sum epsilon_i <= epsilon and        Rogers, Roth, Ullman, Vadhan 2016
              sum delta_i <= delta
``zcdp``      sum rho_i <= R and                  Feldman and Zrnic 2021; with slack (approximate
              sum slack_i <= delta / 100          zCDP) Whitehouse, Ramdas, Rogers, Wu 2023
``gdp``       sum mu_i^2 <= M^2 and               Smith and Thakurta 2022; Koskela, Tobaben, Honkela
              sum slack_i <= delta / 100          2023
============  ==================================  ==================================================

R and M are the largest that ``ZeroConcentratedDP`` and ``GaussianDP`` convert to (epsilon, 0.99
delta). A slack is the probability that the theorem does not apply to a plan: the failure of a label
release (zcdp), (1 + e^epsilon) times the total-variation distance of integer noise from continuous
noise (gdp; additive along every path by the triangle inequality, see ``OnGrid``). The two limits
are fixed apart from each other because no filter is proved for a limit on a function of both sums.
Privacy loss distributions are never added. The guarantee is that of the whole budget: ``spent`` is
bookkeeping, not a smaller promise made afterwards.

Sums are exact fractions of the decimals that ``repr`` shows: ten fits of 0.1 fill 1.0. A decimal
differs from its double by less than one part in 10^15.

A file ledger is one JSON line per plan behind a header. A line is appended under an exclusive lock
and is on the disk before ``reserve`` returns, so a crash can waste budget but never hides a
release. A line that a crash tore was never confirmed to anybody and is cut off before the next one.
Every line ends with the SHA-256 of itself and names that of the line before it. This shows editing
and reordering, not forgery: whoever can write the file can rewrite it from its beginning.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import numbers
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from privtail.errors import BudgetExceeded, InvalidInput, UnsupportedAccounting
from privtail.trusted.budget import Budget, Neighbours
from privtail.trusted.events import plan_from_json

if sys.platform != "win32":
    import fcntl

Composition = Literal["basic", "zcdp", "gdp"]
Unit = Literal["row", "person"]
Amount = Fraction | float  # a float only when infinite

_Made = TypeVar("_Made")

_SLACK_SHARE = Fraction(1, 100)
_HEAD = b'{"format": "privtail-ledger", "version": 1, '
_SEAL = ', "sha256": "%s"}'
_SEAL_LENGTH = len(_SEAL) - 2 + 64


# --- what is written ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Terms:
    """What a ledger promises in total; fixed for ever when it is made."""

    epsilon: float
    delta: float = 0.0
    neighbours: Neighbours = "replace_one"
    composition: Composition = "basic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon))
        object.__setattr__(self, "delta", _number("delta", self.delta))
        Budget(self.epsilon, self.delta, self.neighbours)
        if self.composition not in ("basic", "zcdp", "gdp"):
            raise InvalidInput(
                f"composition must be 'basic', 'zcdp' or 'gdp', got {self.composition!r}."
            )
        if self.composition != "basic" and (self.delta == 0 or math.isinf(self.epsilon)):
            raise InvalidInput(
                f"composition={self.composition!r} needs a finite epsilon and a delta above 0, for "
                f"example epsilon=1.0, delta=1e-6; got {self.epsilon!r}, {self.delta!r}. "
                "composition='basic' takes both."
            )

    @functools.cached_property
    def limits(self) -> tuple[Amount, Amount]:
        """Largest sums of losses and of slacks."""
        loss, delta = _decimal(self.epsilon), _decimal(self.delta)
        if self.composition == "basic":
            return loss, delta
        from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP

        curve = {"zcdp": ZeroConcentratedDP, "gdp": GaussianDP}[self.composition]
        target = self.delta * (1 - float(_SLACK_SHARE)) * (1 - 1e-12)
        largest = _largest(lambda x: curve(x).delta(self.epsilon) <= target)
        power = 2 if self.composition == "gdp" else 1
        return Fraction(largest) ** power, delta * _SLACK_SHARE

    def __str__(self) -> str:
        return (
            f"ε = {self.epsilon:.6g}, δ = {self.delta:.6g}, {self.neighbours.replace('_', '-')} "
            f"neighbours, {self.composition} composition"
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One reserved plan.

    Attributes
    ----------
    number : 1 for the first plan of the ledger.
    label : what was fitted.
    epsilon, delta, mu, rho : its cost; mu and rho where the theorem applies.
    slack : probability that mu (or rho) does not describe the plan.
    neighbours : the relation of the cost.
    plan : its rounds, as JSON.
    time, pid : when, in UTC, and by which process; for the reader only.
    unit : whose neighbours: those of one row, or of one person with several.
    """

    number: int
    label: str
    epsilon: float
    delta: float
    mu: float | None
    rho: float | None
    slack: float
    neighbours: Neighbours
    plan: list[dict[str, Any]]
    time: str
    pid: int
    unit: Unit = "row"

    def __post_init__(self) -> None:
        if self.unit not in ("row", "person"):
            raise InvalidInput(f"unit must be 'row' or 'person', got {self.unit!r}.")
        _require_line("label", self.label)
        _require_line("time", self.time)
        for name in ("epsilon", "delta", "mu", "rho", "slack"):
            value = getattr(self, name)
            if value is not None or name not in ("mu", "rho"):
                object.__setattr__(self, name, _number(name, value))
        if self.delta >= 1:
            raise InvalidInput(f"delta must lie in [0, 1), got {self.delta!r}.")


@dataclass(frozen=True)
class Reservation:
    """Proof that a plan has been charged: its releases may follow."""

    number: int
    label: str
    epsilon: float
    delta: float


# --- the ledger -----------------------------------------------------------------------------------


class Ledger:
    """The total budget of a data set, in memory or in a file that processes share.

    Parameters
    ----------
    path : file of the ledger; None keeps it in the memory of this process. An existing file brings
        its own budget: give the path alone, or the same numbers again.
    epsilon, delta : the total that may be spent (delta is 0 if not given).
    neighbours : the relation that all plans are stated for; ``"replace_one"`` if not given.
    composition : ``"basic"`` (if not given) takes every plan; ``"zcdp"`` and ``"gdp"`` admit many
        more small ones, of those that have a rho, or are Gaussian only.

    Raises
    ------
    InvalidInput
        If the numbers cannot be used, differ from those of the file, or the file cannot be read,
        locked or trusted.

    Notes
    -----
    Copies (``copy``, ``deepcopy``, ``sklearn.clone``) are the same ledger. A file ledger pickles as
    its path; one in memory refuses to be pickled and to be charged after a fork.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: Neighbours | None = None,
        composition: Composition | None = None,
    ) -> None:
        asked = {
            "epsilon": epsilon,
            "delta": delta,
            "neighbours": neighbours,
            "composition": composition,
        }
        asked = {name: value for name, value in asked.items() if value is not None}
        if path is not None:
            self.path: Path | None = Path(path).absolute()
            file = _File(self.path)
            self._pages: _Pages = file
            self.terms = file.begin(asked)
        elif epsilon is None:
            raise InvalidInput(
                "A ledger needs a total budget: Ledger(epsilon=1.0, delta=1e-6), or the path of an "
                "existing one."
            )
        else:
            self.path = None
            self._pages = _Memory()
            self.terms = Terms(**asked)  # type: ignore[arg-type]

    def reserve(
        self,
        *,
        label: str,
        epsilon: float,
        delta: float,
        neighbours: Neighbours,
        plan: list[dict[str, Any]],
        mu: float | None = None,
        rho: float | None = None,
        unit: Unit = "row",
    ) -> Reservation:
        """Charge a plan, before any of its releases. Nothing is ever refunded.

        Parameters
        ----------
        label : what will be fitted.
        epsilon, delta : cost of the plan.
        neighbours : relation of that cost.
        plan : the plan, by `plan_to_json`.
        mu, rho : its Gaussian-DP and zCDP parameters, None where there is none.
        unit : whether that relation is about one row or about one person with several.

        Raises
        ------
        BudgetExceeded
            If too little is left. Nothing has been read from the records.
        UnsupportedAccounting
            If this ledger's composition has no theorem for the plan, or it counts another unit.
        InvalidInput
            If a number cannot be used, or the file cannot be read, trusted or written.
        """
        entry = Entry(
            number=0,
            label=label,
            epsilon=epsilon,
            delta=delta,
            mu=mu,
            rho=rho,
            slack=_slack(plan, self.terms),
            neighbours=neighbours,
            plan=plan,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            pid=os.getpid(),
            unit=unit,
        )
        self._require_theorem(entry)
        with self._pages.open(write=True) as (entries, append):
            if entries and entries[0].unit != unit:
                raise UnsupportedAccounting(
                    f"This ledger counts what one {entries[0].unit} loses and {label} is stated "
                    f"for one {unit}; their epsilons do not add. Fit every time with groups= and "
                    "max_rows=, or never, or keep a second ledger."
                )
            losses, slacks = self._total([*entries, entry])
            most, slackest = self.terms.limits
            if losses > most or slacks > slackest:
                raise BudgetExceeded(self._refusal(entry, entries))
            entry = replace(entry, number=len(entries) + 1)
            append(entry)
        return Reservation(entry.number, label, entry.epsilon, entry.delta)

    def entries(self) -> tuple[Entry, ...]:
        """Everything that was reserved, oldest first."""
        with self._pages.open(write=False) as (entries, _):
            return tuple(entries)

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of everything reserved so far; bookkeeping, not a smaller promise."""
        return self._spent(self.entries())

    @property
    def remaining(self) -> tuple[float, float]:
        """(epsilon, delta) that one more fit may ask for (zcdp, gdp: a fit of Gaussian noise)."""
        return self._remaining(self.entries())

    def to_text(self) -> str:
        """A page for people: the budget, what was spent on what, what is left."""
        entries = self.entries()
        rows = [("", "time", "fit", "ε", "δ")]
        rows += [
            (str(e.number), e.time, e.label, f"{e.epsilon:.6g}", f"{e.delta:.6g}") for e in entries
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        lines = [
            f"privtail ledger {self.path or 'in memory'}",
            f"budget  {self.terms}",
            "spent   ε = {:.6g}, δ = {:.6g}".format(*self._spent(entries)),
            "left    ε = {:.6g}, δ = {:.6g}".format(*self._remaining(entries)),
        ]
        return "\n".join([*lines, "", *table] if entries else lines)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        arguments = [repr(str(self.path))] if self.path else []
        arguments += [f"{f.name}={getattr(self.terms, f.name)!r}" for f in fields(self.terms)]
        return f"Ledger({', '.join(arguments)})"

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self

    def __reduce__(self) -> tuple[type[Ledger], tuple[str]]:
        if self.path is None:
            raise InvalidInput(
                "A ledger in memory cannot be pickled or sent to another process: the copy would "
                "not know what this one spends. Use a file: Ledger('budget.jsonl', "
                f"epsilon={self.terms.epsilon!r}, delta={self.terms.delta!r}); or n_jobs=1; or set "
                "ledger=None before saving an estimator."
            )
        return Ledger, (str(self.path),)

    # ---------------------------------------------------------------- arithmetic

    def _require_theorem(self, entry: Entry) -> None:
        terms = self.terms
        if entry.neighbours != terms.neighbours:
            raise UnsupportedAccounting(
                f"This ledger counts {terms.neighbours!r} neighbours and {entry.label} is stated "
                f"for {entry.neighbours!r}; their epsilons do not add. Fit with "
                f"neighbours={terms.neighbours!r}."
            )
        if math.isinf(entry.epsilon) and math.isfinite(terms.epsilon):
            raise BudgetExceeded(
                f"{entry.label} asks for an infinite epsilon, which is no privacy, and this ledger "
                f"promises epsilon={terms.epsilon!r}. Nothing was read from the records. Give the "
                "fit a finite epsilon; a ledger for fits without privacy is "
                "Ledger(epsilon=float('inf'))."
            )
        parameter = {"basic": "epsilon", "zcdp": "rho", "gdp": "mu"}[terms.composition]
        if getattr(entry, parameter) is None:
            needs = "full batches" if parameter == "rho" else "Gaussian noise on full batches"
            raise UnsupportedAccounting(
                f"{entry.label} has no {parameter}, which composition={terms.composition!r} adds. "
                f"Fit with {needs}, or keep the budget in a ledger with composition='basic'."
            )

    def _total(self, entries: list[Entry] | tuple[Entry, ...]) -> tuple[Amount, Amount]:
        kind = self.terms.composition
        if kind == "basic":
            pairs = [(_decimal(e.epsilon), _decimal(e.delta)) for e in entries]
        elif kind == "zcdp":
            pairs = [(_decimal(e.rho or 0.0), _decimal(e.slack)) for e in entries]
        else:
            pairs = [(_decimal(e.mu or 0.0) ** 2, _decimal(e.slack)) for e in entries]
        zero: Amount = Fraction(0)
        return sum((p[0] for p in pairs), zero), sum((p[1] for p in pairs), zero)

    def _spent(self, entries: tuple[Entry, ...]) -> tuple[float, float]:
        losses, slacks = self._total(entries)
        if self.terms.composition == "basic":
            return _float_above(losses), _float_above(slacks)
        if not losses and not slacks:
            return 0.0, 0.0
        from privtail.trusted.accounting.curves import GaussianDP, ZeroConcentratedDP

        delta = self.terms.delta * (1 - float(_SLACK_SHARE))
        if self.terms.composition == "zcdp":
            return ZeroConcentratedDP(float(losses)).epsilon(delta), self.terms.delta
        return GaussianDP(math.sqrt(losses)).epsilon(delta), self.terms.delta

    def _remaining(self, entries: tuple[Entry, ...] | list[Entry]) -> tuple[float, float]:
        (losses, slacks), (most, slackest) = self._total(entries), self.terms.limits
        if self.terms.composition == "basic":
            left = most if math.isinf(most) else max(most - losses, Fraction(0))
            return _float_below(left), _float_below(max(slackest - slacks, Fraction(0)))
        from privtail.trusted.accounting.curves import GaussianDP

        squared = max(most - losses, Fraction(0)) * (2 if self.terms.composition == "zcdp" else 1)
        exact = GaussianDP(math.sqrt(squared) * (1 - 1e-12)).epsilon(self.terms.delta)
        # Six digits, rounded down: what is printed can be typed, and fits.
        step = Fraction(10) ** (math.floor(math.log10(exact)) - 5) if exact > 0 else Fraction(1)
        epsilon = _float_below(math.floor(Fraction(exact * (1 - 1e-9)) / step) * step)
        return epsilon, self.terms.delta if epsilon else 0.0

    def _refusal(self, entry: Entry, entries: list[Entry]) -> str:
        terms = self.terms
        unread = "Nothing was read from the records."
        slack_left = terms.limits[1] - self._total(entries)[1]
        if terms.composition != "basic" and _decimal(entry.slack) > slack_left:
            return (
                f"{entry.label} needs slack {entry.slack:.3g} (label discovery, or a coarse noise "
                f"grid), and {float(slack_left):.3g} of delta / 100 is left. {unread} Declare the "
                "labels, or keep the budget in a ledger with composition='basic'."
            )
        epsilon, delta = self._remaining(entries)
        if epsilon <= 0:
            mend = "Nothing can be fitted any more unless the owner of the data grants a new budget"
        elif terms.composition == "basic":
            mend = f"Ask for at most epsilon={epsilon!r}, delta={delta!r}"
        else:
            mend = f"Ask for at most epsilon={epsilon!r} at delta={delta!r}, with Gaussian noise"
        return (
            f"{entry.label} asks for epsilon={entry.epsilon!r}, delta={entry.delta!r}; of epsilon="
            f"{terms.epsilon!r}, delta={terms.delta!r} this ledger has epsilon={epsilon!r}, "
            f"delta={delta!r} left. {unread} {mend}; spent budget never comes back."
        )


# --- where it is kept -----------------------------------------------------------------------------


class _Pages(Protocol):
    """Exclusive or shared sight of all entries, and a way to append one."""

    @contextmanager
    def open(self, *, write: bool) -> Iterator[tuple[list[Entry], Callable[[Entry], None]]]: ...


class _Memory:
    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._lock, self._pid = threading.Lock(), os.getpid()

    @contextmanager
    def open(self, *, write: bool) -> Iterator[tuple[list[Entry], Callable[[Entry], None]]]:
        if write and os.getpid() != self._pid:
            raise InvalidInput(
                "A ledger in memory cannot be charged from a forked process: its parent would not "
                "see it. Use a file: Ledger('budget.jsonl', epsilon=..., delta=...)."
            )
        with self._lock:
            yield list(self._entries), self._entries.append


@dataclass(frozen=True)
class _Page:
    """The complete lines of a ledger file."""

    terms: Terms
    entries: list[Entry]
    seals: list[str]
    size: int


class _File:
    def __init__(self, path: Path) -> None:
        if sys.platform == "win32":
            raise InvalidInput(
                "A ledger file needs fcntl.flock, which Windows does not have. Use a ledger in "
                "memory: Ledger(epsilon=..., delta=...), or WSL."
            )
        self._path = path
        self._seen = (0, "")

    def begin(self, asked: dict[str, Any]) -> Terms:
        """Read the header, or write it if there is none; refuse other terms than the file's."""
        wanted = Terms(**asked) if "epsilon" in asked else None
        with self._locked(write=wanted is not None, create=wanted is not None) as fd:
            data = _read(fd)
            if _is_torn_header(data):
                if wanted is None:
                    raise InvalidInput(f"{self._path} is empty. {_how_to_start(self._path)}")
                os.ftruncate(fd, 0)
                self._write(fd, _header(wanted)[0])
                _sync_directory(self._path.parent)
                return wanted
            found = self._parse(data).terms
        for name, value in asked.items():
            if value != getattr(found, name):
                raise InvalidInput(
                    f"{self._path} has {name}={getattr(found, name)!r}, and {name}={value!r} was "
                    f"asked for. Open it with Ledger({str(self._path)!r}) alone; a budget cannot "
                    "be changed."
                )
        return found

    @contextmanager
    def open(self, *, write: bool) -> Iterator[tuple[list[Entry], Callable[[Entry], None]]]:
        with self._locked(write=write) as fd:
            page = self._parse(_read(fd))

            def append(entry: Entry) -> None:
                os.ftruncate(fd, page.size)  # a torn line was confirmed to nobody
                line, seal = _sealed({"previous": page.seals[-1], **_encoded(asdict(entry))})
                self._write(fd, line)
                self._seen = (len(page.seals), seal)

            yield page.entries, append

    @contextmanager
    def _locked(self, *, write: bool, create: bool = False) -> Iterator[int]:
        fd = self._descriptor(write=write, create=create)
        try:
            yield fd
        finally:
            # Said aloud: a process forked meanwhile holds a copy of the descriptor.
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def _descriptor(self, *, write: bool, create: bool) -> int:
        flags = os.O_RDWR | os.O_APPEND if write else os.O_RDONLY
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        while True:
            try:
                fd = os.open(self._path, flags, 0o666)
            except OSError as error:
                raise self._unusable(error, write=write) from None
            try:
                if self._lock(fd, write=write):
                    return fd
                os.close(fd)
            except OSError as error:
                os.close(fd)
                raise self._unusable(error, write=write) from None
            except BaseException:
                os.close(fd)
                raise

    def _lock(self, fd: int, *, write: bool) -> bool:
        """Wait for the lock; False if the name was given to another file meanwhile."""
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise InvalidInput(f"{self._path} is not a file, so it cannot be a ledger.")
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
                raise self._broken(i + 1, "does not follow the line before it")
            entries.append(self._made(i + 1, Entry, content))
        header = {f.name: opened[0][0].get(f.name) for f in fields(Terms)}
        terms = self._made(1, Terms, header)
        seals = [seal for _, seal in opened]
        count, seal = self._seen
        if count >= len(seals) or (seal and seals[count] != seal):
            raise self._broken(count + 1, "has been removed since this process read it")
        self._seen = (len(seals) - 1, seals[-1])
        return _Page(terms, entries, seals, len(data) - len(tail))

    def _opened(self, number: int, line: bytes) -> tuple[dict[str, Any], str]:
        try:
            return _opened(line)
        except (ValueError, AttributeError, RecursionError):
            raise self._broken(number, "was altered or damaged") from None

    def _made(self, number: int, kind: type[_Made], content: dict[str, Any]) -> _Made:
        try:
            return kind(**content)
        except (TypeError, ValueError):
            raise self._broken(number, "was altered or damaged") from None

    def _write(self, fd: int, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(fd, line) :]
            _sync(fd)
        except OSError as error:
            raise InvalidInput(
                f"Could not write to the ledger {self._path}: {error.strerror}. Nothing was read "
                "from the records. Make room, or mend the disk, and fit again."
            ) from None

    def _broken(self, number: int, what: str) -> InvalidInput:
        return InvalidInput(
            f"Line {number} of the ledger {self._path} {what}: an entry was edited, deleted or "
            "reordered, so what was spent is not known. Restore the file from a backup; only the "
            "owner of the data can grant a new budget."
        )

    def _unusable(self, error: OSError, *, write: bool) -> InvalidInput:
        path = self._path
        if isinstance(error, FileNotFoundError):
            if path.parent.is_dir():
                return InvalidInput(f"There is no ledger at {path}. {_how_to_start(path)}")
            return InvalidInput(
                f"The folder {path.parent} does not exist. Make it first: mkdir -p '{path.parent}'."
            )
        if isinstance(error, IsADirectoryError | NotADirectoryError):
            return InvalidInput(f"{path} is not a file. Give a file name, like 'budget.jsonl'.")
        if isinstance(error, PermissionError):
            what, mode = ("write", "u+rw") if write else ("read", "u+r")
            return InvalidInput(
                f"No permission to {what} the ledger {path}. Ask its owner, or: chmod {mode} "
                f"'{path}' (and w on its folder to start a new one)."
            )
        return InvalidInput(
            f"The ledger {path} cannot be opened or locked: {error.strerror}. Put it on a local, "
            "writable disk."
        )


def _is_torn_header(data: bytes) -> bool:
    """Whether a file was being made when its maker died; its budget was confirmed to nobody."""
    begun = _HEAD.startswith(data) or data.startswith(_HEAD)
    return begun and b"\n" not in data and len(data) < 512


def _how_to_start(path: Path) -> str:
    return f"To start one: Ledger({path.name!r}, epsilon=1.0, delta=1e-6)."


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


# --- lines ----------------------------------------------------------------------------------------


def _header(terms: Terms) -> tuple[bytes, str]:
    budget = {f.name: getattr(terms, f.name) for f in fields(terms)}
    return _sealed({"format": "privtail-ledger", "version": 1, **_encoded(budget)})


def _sealed(content: dict[str, Any]) -> tuple[bytes, str]:
    """A line that ends with the SHA-256 of what is before it."""
    body = json.dumps(content, allow_nan=False)
    seal = hashlib.sha256(body.encode()).hexdigest()
    return f"{body[:-1]}{_SEAL % seal}\n".encode(), seal


def _opened(line: bytes) -> tuple[dict[str, Any], str]:
    """Inverse of `_sealed` without the line end; ValueError if the seal does not fit."""
    body, seal = line[:-_SEAL_LENGTH] + b"}", line[-_SEAL_LENGTH:].decode()[-66:-2]
    if hashlib.sha256(body).hexdigest() != seal or not line.endswith((_SEAL % seal).encode()):
        raise ValueError
    content = json.loads(body)
    return {k: math.inf if v == "inf" and k != "label" else v for k, v in content.items()}, seal


def _encoded(content: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity."""
    return {k: "inf" if v == math.inf else v for k, v in content.items()}


# --- numbers --------------------------------------------------------------------------------------


def _slack(plan: list[dict[str, Any]], terms: Terms) -> float:
    """Probability that rho (zcdp) or mu (gdp) does not describe the plan, rounded up."""
    rounds = plan_from_json(plan)
    if terms.composition == "basic":
        return 0.0
    events = [(e, r.times) for r in rounds for e in r.events if r.times]
    if terms.composition == "zcdp":
        total = math.fsum(e.delta * times for e, times in events if e.law == "labels")
        return total * (1 + 1e-15)
    draws = [(e.scale, e.coordinates * times) for e, times in events if e.law == "gaussian"]
    if any(scale < 64 for scale, _ in draws) or terms.epsilon > 700:
        return math.inf
    roughness = math.fsum(count / scale / scale for scale, count in draws)
    return (1 + math.exp(terms.epsilon)) * 0.05 * roughness * (1 + 1e-12)


def _require_line(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.isprintable():
        raise InvalidInput(f"{name} must be one line of printable text, got {value!r}.")


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not number >= 0:
        raise InvalidInput(f"{name} must not be negative or NaN, got {value!r}.")
    return number


def _decimal(x: float) -> Amount:
    """The decimal number that ``repr`` shows."""
    return Fraction(repr(x)) if math.isfinite(x) else x


def _float_above(x: Amount) -> float:
    nearest = float(x)
    return nearest if _decimal(nearest) >= x else math.nextafter(nearest, math.inf)


def _float_below(x: Amount) -> float:
    nearest = float(x)
    return nearest if _decimal(nearest) <= x else math.nextafter(nearest, 0.0)


def _largest(admitted: Callable[[float], bool]) -> float:
    """The largest double, up to one part in 10^12 and rounded down, that is admitted."""
    low, high = 0.0, 1.0
    while admitted(high):
        low, high = high, 2 * high
    while high - low > 1e-12 * high and high > 1e-300:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return low
