"""The command line: one file per verb; ``privtail --help`` lists them."""

from __future__ import annotations

import os
import signal
import sys
from typing import TextIO


def main() -> None:
    """Run ``privtail`` with the arguments of this process.

    Exit codes: 0 done, 1 a statement that does not hold, 2 unusable arguments or files, 3 a refused
    budget, 130 interrupted, 141 nobody reads the output.
    """
    try:
        # To be told to end is to be interrupted: drafts of files are cleared away.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        from privtail.cli.application import application
    except ModuleNotFoundError as error:
        sys.exit(f"The command line needs {error.name}. Type: pip install 'privtail[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")  # a terminal without ε shows ?, and does not fail
    try:
        application(prog_name="privtail")
    finally:
        for stream in (sys.stdout, sys.stderr):
            _let_go(stream)


def _let_go(stream: TextIO | None) -> None:
    """Write what is left; where that fails, which was said, the interpreter need not try again."""
    if stream is None:  # closed before the command began
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
