"""``privtail demo``: the whole of it on real data, in minutes."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from privtail.cli.console import say, show

DELTA = "1e-6"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files of the demonstration.")] = Path(
        "demo"
    ),
) -> None:
    """Fit, predict, verify, evaluate and report on census data.

    Every command is shown before it runs, so that you can repeat it. Then the private model is
    compared with a fit without privacy, and a picture shows test accuracy against ε.

    For example:
      privtail demo --out demo/
    """
    from privtail.cli.accuracy import AcceptanceTest
    from privtail.data import ADULT, adult_schema, write_adult_splits
    from privtail.written import written_whole

    began = time.perf_counter()
    out.mkdir(parents=True, exist_ok=True)
    train, test = write_adult_splits(out)
    schema = out / "adult.json"
    with written_whole(schema, overwrite=True) as file:
        facts = {**adult_schema(), "drop": []}
        file.write(json.dumps(facts, indent=1).encode() + b"\n")
    show(f"Adult (Becker and Kohavi 1996, CC BY 4.0; {ADULT.name}), as published in two parts:")
    show(f"{train} to fit on, and {test} to score on. Both are public, so a score of the")
    show("test rows costs nothing here; on private rows of your own it would not be covered.")

    model, predictions = out / "model.json", out / "predictions.csv"
    _run(
        "fit", train, "--schema", schema, "--model", "logistic", "--epsilon", "1", "--delta", DELTA,
        "--out", model, "--force",
    )  # fmt: skip
    _run("predict", model, test, "--out", predictions, "--force")
    _run("verify", model)
    quality, page = out / "quality.json", out / "report.html"
    _run("evaluate", model, test, "--epsilon", "0.5", "--out", quality, "--force")
    _run("report", model, quality, "--title", "Census income", "--out", page, "--force")

    show("\nHow good is it? (Public rows: for private rows, these lines would be a leak.)\n")
    comparison = AcceptanceTest.of(model, train, test)
    private = comparison.score_file(predictions)
    for name, accuracy in (
        ("private, ε = 1 (model.json)", private),
        ("without privacy (scikit-learn)", comparison.open_accuracy),
        ("always the majority class", comparison.majority),
    ):
        show(f"  {name:<32} {accuracy:.2%} of {comparison.rows:,} test rows")

    picture = out / "accuracy_epsilon.png"
    say("\nmeasuring accuracy against ε, with simulated noise")
    comparison.measure()
    with written_whole(picture, overwrite=True) as file:
        comparison.draw(file, private)
    show(f"\n  ε      {'median accuracy':<16} range of {comparison.repeats} (simulated noise)")
    for epsilon, scores in comparison.curve.items():
        low, median, high = scores
        show(f"  {epsilon:<6g} {median:<16.2%} {low:.2%} to {high:.2%}")
    show(f"\npicture: {picture}\npage for people who were not there: {page}")
    say(f"{time.perf_counter() - began:.0f} seconds in all")


def _run(*words: str | Path) -> None:
    """Show a command and run exactly it; stop if it fails."""
    from privtail.cli.application import application

    arguments = [str(word) for word in words]
    show(f"\n$ privtail {shlex.join(arguments)}\n")
    code = application(arguments, prog_name="privtail", standalone_mode=False)
    if code:
        raise typer.Exit(code)
