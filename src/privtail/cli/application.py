"""The verbs, put together."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from privtail import __version__
from privtail.cli.algorithms import algorithms
from privtail.cli.budget import budget
from privtail.cli.compare import compare
from privtail.cli.console import reporting, show
from privtail.cli.count import count
from privtail.cli.cross_validate import cross_validate
from privtail.cli.data import data
from privtail.cli.demo import demo
from privtail.cli.evaluate import evaluate
from privtail.cli.export import export
from privtail.cli.fit import fit
from privtail.cli.histogram import histogram
from privtail.cli.matrices import correlation, covariance
from privtail.cli.mean import mean
from privtail.cli.options import spelled_out
from privtail.cli.plan import plan
from privtail.cli.predict import predict
from privtail.cli.quantile import quantile
from privtail.cli.refusals import Command, Group
from privtail.cli.report import report
from privtail.cli.reproduce import reproduce
from privtail.cli.summarize import summarize
from privtail.cli.theory import theory
from privtail.cli.verify import verify

application = typer.Typer(
    name="privtail",
    cls=Group,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for verb in (
    fit,
    predict,
    evaluate,
    cross_validate,
    compare,
    export,
    report,
    summarize,
    mean,
    count,
    quantile,
    histogram,
    covariance,
    correlation,
    verify,
    plan,
    budget,
    algorithms,
    theory,
    demo,
    reproduce,
    data,
):
    # After \b a paragraph keeps its lines.
    page = inspect.cleandoc(verb.__doc__ or "").replace("\n\nFor example", "\n\n\b\nFor example")
    name = verb.__name__.replace("_", "-")
    application.command(name, cls=Command, help=page)(reporting(spelled_out(verb)))


def _version(asked: bool) -> None:
    if asked:
        show(f"privtail {__version__}")
        raise typer.Exit


@application.callback()
def privtail(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Differentially private learning on heavy-tailed data.

    Privacy holds for every input, and you need no bounds on the data. Start with

      privtail demo

    which fits, predicts and verifies on data inside the package and shows every command it runs.
    A command explains itself with examples, for instance

      privtail fit --help

    Exit codes: 0 done, 1 a statement that does not hold, 2 unusable arguments or files, 3 a refused
    budget, 130 interrupted, 141 nobody reads the output.
    """
