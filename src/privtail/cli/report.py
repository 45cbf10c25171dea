"""``privtail report``: a page about released files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import say
from privtail.cli.options import Output


def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            show_default=False,
            help="Models, evaluations, statements and other results, as JSON.",
        ),
    ],
    output: Output,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Write the page here.")] = Path(
        "report.html"
    ),
    title: Annotated[str, typer.Option(help="The title of the page.")] = "Private release",
) -> None:
    """Write a page that explains released files to others.

    It says what was fitted or measured, the promise in plain words, where the budget went, the
    numbers with their intervals as pictures, what the promise does not cover, and how to verify it.
    The page is one file, needs no network and can be printed. It reads released files alone, so it
    costs nothing.

    For example:
      privtail report model.json --out report.html
      privtail report model.json quality.json --title "Claims 2026"
    """
    from privtail.reporting import report as page
    from privtail.written import written_whole

    output.require_free(out, *files)
    text = page(*files, title=title)
    with written_whole(out, overwrite=output.force) as file:
        file.write(text.encode())
    say(f"wrote {out}")
