"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import errno
import functools
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

from privtail.cli.options import advice, promised
from privtail.errors import (
    AccuracyWarning,
    BudgetExceeded,
    DeltaWarning,
    PrivacyWarning,
    PrivtailError,
)
from privtail.ledgers import charged
from privtail.spelling import counted, printable

if TYPE_CHECKING:
    from privtail.statement import Statement
    from privtail.trusted.budget import Budget
    from privtail.trusted.ledger import Ledger

_Options = ParamSpec("_Options")

_PAUSE = 30.0
"""Seconds between two lines about long work that nobody watches on a terminal."""


def show(text: str) -> None:
    """Print a result."""
    if sys.stdout is None:  # closed by the shell, where Typer would write nothing and go on
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")
    typer.echo(printable(text, sys.stdout))


def say(text: str) -> None:
    """Print what is not a result: plans, progress, errors. If nobody reads it, work goes on."""
    with suppress(OSError):
        typer.echo(printable(text, sys.stderr), err=True)


def show_released(text: str, name: str) -> None:
    """Print what a budget was spent on; if standard output fails, into a new file: say where."""
    try:
        show(text)
    except OSError:
        say(f"Standard output failed. What the budget paid for is {_kept(text, name)}")


def deliver(
    name: str, text: str, statement: Statement, content: Mapping[str, Any], out: Path | None, *,
    overwrite: bool, warned: Iterable[str] = (),
) -> None:  # fmt: skip
    """Print what was released, its statement and warnings, and write ``content`` where asked."""
    from privtail.written import written_json

    said = text.removesuffix(statement.headline).rstrip()  # the statement begins with it
    show_released(f"{said}\n\n{statement}", name)
    for warning in warned:
        say(f"\nWarning. {warning}")
    if out is not None:
        content = {"format": f"privtail-{name}", "version": 1, **content}
        written_json(out, content, overwrite=overwrite)
        say(f"\nwrote {out}")


def _kept(text: str, name: str) -> str:
    """Where the text is: a new file here or in the folder for temporary ones, else below."""
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        with (
            suppress(OSError),
            tempfile.NamedTemporaryFile(
                "w", dir=folder, prefix=f"privtail-{name}-", suffix=".txt", delete=False,
                encoding="utf-8",
            ) as file,
        ):  # fmt: skip
            file.write(text + "\n")
            file.flush()
            return f"in {file.name}"
    return f"this:\n{text}"


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a moving sign while this runs, if somebody is watching."""
    from rich.console import Console

    watched = printable("⠋", sys.stderr) == "⠋"
    with Console(stderr=True).status(
        printable(text, sys.stderr), spinner="dots" if watched else "line"
    ):
        yield


@contextmanager
def releasing(
    doing: str, told: str, budget: Budget, noise: str, rows: int, account: Ledger | None
) -> Iterator[None]:
    """Say what is promised of what, count the rounds inside, and leave warnings to the result."""
    say(f"{told}: {promised(budget, noise)}")
    warning = advice(budget, rows)
    if warning:
        say(warning)
    with charging(account, doing, budget), warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        warnings.simplefilter("ignore", DeltaWarning)  # as `advice` says it
        yield


@contextmanager
def charging(account: Ledger | None, doing: str, budget: Budget) -> Iterator[None]:
    """Count the rounds inside; where they are interrupted, say what they were charged."""
    before = 0 if account is None else len(account.entries())
    try:
        with counting(f"{doing}, ε = {budget.epsilon:g}"):
            yield
    except KeyboardInterrupt:
        say(charged(account, before))
        raise


@contextmanager
def counting(text: str, unit: str = "round") -> Iterator[None]:
    """Show the rounds of the work inside: a bar on a terminal, else a line every half minute."""
    from rich import progress
    from rich.console import Console

    from privtail.progress import watching

    console = Console(stderr=True)
    if not console.is_terminal:
        with watching(_lines(text, unit)):
            yield
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[round]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(printable(text, sys.stderr), total=None, round="")

        def move(done: int, planned: int, stage: str) -> None:
            said = f"{unit} {done:,} of {planned:,}" + (f": {stage}" if stage else "")
            bar.update(task, completed=done, total=planned, round=said)

        with watching(move):
            yield


def _lines(text: str, unit: str = "round") -> Callable[[int, int, str], None]:
    from privtail.progress import TimeLeft

    last, time_left = time.monotonic(), TimeLeft()

    def line(done: int, planned: int, stage: str) -> None:
        nonlocal last
        now, left = time.monotonic(), time_left.after(done, planned)
        if now - last >= _PAUSE and 0 < done < planned:
            last = now
            where = f" ({stage})" if stage else ""
            until = "" if left is None else f", {counted(round(left), 'second')} left"
            say(f"{text}: {unit} {done} of {planned}{where}{until}")

    return line


@contextmanager
def saying_warnings() -> Iterator[None]:
    """Print warnings from public numbers as sentences, without a line of code."""
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def sentence(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, PrivacyWarning):
                say(f"Warning. {message}")
            else:
                shown(message, category, *place)

        warnings.showwarning = sentence  # type: ignore[assignment]
        yield


def reporting(verb: Callable[_Options, None]) -> Callable[_Options, None]:
    """Turn the errors of a verb into one line and an exit code."""

    @functools.wraps(verb)
    def run(*args: _Options.args, **kwargs: _Options.kwargs) -> None:
        try:
            with saying_warnings():
                verb(*args, **kwargs)
        except BudgetExceeded as error:
            say(f"Budget refused. {error.cli}")
            raise typer.Exit(3) from None
        except PrivtailError as error:
            say(f"Error. {error.cli}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            say(
                "Interrupted. No file was left half-written; a ledger keeps what was charged to it."
            )
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BrokenPipeError:  # head has read enough
            raise typer.Exit(141) from None
        except OSError as error:
            if os.environ.get("PRIVTAIL_DEBUG"):
                raise
            say(f"Error. {_place(error)}: {error.strerror or 'it failed'}.")
            raise typer.Exit(2) from None
        except Exception as error:
            if os.environ.get("PRIVTAIL_DEBUG"):
                raise
            # Neither its text nor a traceback is shown: both may hold cells.
            say(
                f"Error. An unexpected {type(error).__name__}: please report it. The traceback may "
                "hold cells of your data; PRIVTAIL_DEBUG=1 shows it."
            )
            raise typer.Exit(2) from None

    return run


def _place(error: OSError) -> str:
    """What could not be read or written, as far as it is known."""
    return "Reading or writing" if error.filename is None else str(error.filename)
