"""``privtail theory``: what the theorem of a published algorithm promises."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privtail.cli.console import show
from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from privtail.algorithms.theory import Promise, Setting


def theory(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="One that privtail algorithms lists, or truncated-mean.",
        ),
    ],
    n: Annotated[int, typer.Option("--n", show_default=False, help="Number of rows.")],
    d: Annotated[int, typer.Option("--d", show_default=False, help="Number of features.")],
    epsilon: Annotated[float, typer.Option(show_default=False, help="The budget's ε.")],
    delta: Annotated[float, typer.Option(help="The budget's δ.")] = 1e-6,
    moments: Annotated[
        float, typer.Option(help="Order of the highest finite moment of the data.")
    ] = 2.0,
    sparsity: Annotated[int, typer.Option(help="Number of features that matter.")] = 10,
) -> None:
    """Say what the theorem of a published algorithm promises.

    It prints the bound on the risk with all constants set to 1, and without the logarithms that
    the paper hides. So it says how the risk grows and falls, not how large it is. A lower bound for
    every private method follows, if the paper proves one. Then come the assumptions of the theorem
    about the data, the experiments that measure it, and in a copy of the repository what the
    nearest of them found. It reads no data of yours and costs nothing.

    For example:
      privtail theory catoni-descent --n 100000 --d 10 --epsilon 1
    """
    from privtail.algorithms.theory import MEANS, Setting, promises
    from privtail.statement import hanging

    setting = Setting(n=n, d=d, epsilon=epsilon, delta=delta, moments=moments, sparsity=sparsity)
    for promise in promises(name):
        measured = " ".join(promise.studies)
        facts: dict[str, str] = {
            "promises": f"{promise.quantity} {promise.formula}",
            "here": f"{promise.bound(setting):.3g}, with constants 1",
            "least": _least(promise, setting),
            "assumes": promise.assumes,
            "measured": f"privtail reproduce {measured}" if measured else "by no experiment here",
            "nearest": _nearest(promise, setting),
            "run by": MEANS.get(name, ""),
        }
        show(f"\n{name}, {promise.theorem}")
        for fact, said in facts.items():
            if said:
                show(hanging(f"  {fact:<9} ", said))


def _nearest(promise: Promise, setting: Setting) -> str:
    """The measured number at the nearest sizes, where the repository is there."""
    from privtail.cli.reproduce import require_repository

    try:
        require_repository()
    except InvalidInput:
        return ""
    experiments: Any = importlib.import_module("experiments.nearest")
    asked = {"n": setting.n, "d": setting.d, "epsilon": setting.epsilon}
    return str(experiments.nearest(promise.studies, promise.line, promise.quantity, asked))


def _least(promise: Promise, setting: Setting) -> str:
    """A lower bound for every method, where one is known for moments of this order."""
    if promise.least is None or setting.moments > 2:
        return ""
    least = promise.least.bound(setting)
    found = f"{least:.3g}, with constants 1: {promise.least.formula} ({promise.least.theorem})"
    if least > promise.bound(setting):
        found += "; more than is promised, so constants and logarithms that it hides decide here"
    return found
