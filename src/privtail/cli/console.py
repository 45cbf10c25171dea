"""What the commands say: results on standard output, everything else on standard error."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

import typer
from rich.console import Console

from privtail.errors import BudgetExceeded, PrivtailError

_Options = ParamSpec("_Options")


def show(text: str) -> None:
    """Print a result."""
    typer.echo(text)


def say(text: str) -> None:
    """Print what is not a result: plans, progress, errors."""
    typer.echo(text, err=True)


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show a moving sign while this runs, if somebody is watching."""
    with Console(stderr=True).status(text):
        yield


def reporting(verb: Callable[_Options, None]) -> Callable[_Options, None]:
    """Turn the errors of a verb into one line and an exit code."""

    @functools.wraps(verb)
    def run(*args: _Options.args, **kwargs: _Options.kwargs) -> None:
        try:
            verb(*args, **kwargs)
        except BudgetExceeded as error:
            say(f"Budget refused. {error}")
            raise typer.Exit(3) from None
        except PrivtailError as error:
            say(f"Error. {error}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            say(
                "Interrupted. No file was left half-written; a ledger keeps what was charged to it."
            )
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
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
