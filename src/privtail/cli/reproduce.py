"""``privtail reproduce``: the experiments of the papers, from a copy of the repository."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import privtail
from privtail.cli.console import counting, say, show
from privtail.errors import InvalidInput

NEEDED = ("pandas", "pyarrow", "matplotlib")


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="LIST|NAME...", show_default=False, help="LIST, papers, studies, or all."
        ),
    ],
    full: Annotated[
        bool,
        typer.Option("--full/--quick", help="The papers' grids, up to two hours a study."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            help="Folder for results; by default reports/results. Full ones go to full/ in it.",
        ),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="How many run at a time.")] = 2,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run again what is finished, and start over.")
    ] = False,
) -> None:
    """Run the papers' experiments, and say which claims hold.

    LIST shows the studies: what they reproduce, how long they take, whether their data are here,
    and when their results were last compared with the code. A run that was killed goes on where it
    stopped, and what is finished is not run again without --fresh. Noise is simulated: it has the
    distribution of exact noise, and a seed. make reproduce runs all quick studies and builds the
    report.

    For example:
      privtail reproduce LIST
      privtail reproduce wang2020-figure-1a
      privtail reproduce wang2020 xie2023 --full --out results/
    """
    require_repository()
    runner: Any = importlib.import_module("experiments.runner")
    papers: Any = importlib.import_module("experiments.papers")
    if names == ["LIST"]:
        _list(runner, papers, importlib.import_module("experiments.estimates"))
        return
    try:
        papers.chosen(names)
    except ValueError as error:
        raise InvalidInput(f"{error} To see what there is: privtail reproduce LIST") from None
    folder = runner.RESULTS if out is None else out
    try:
        with counting("running studies", "cell"):
            paths = runner.run_all(
                names, full=full, processes=processes, results=folder, tell=say, fresh=fresh
            )
    except KeyboardInterrupt:
        say("Finished cells are kept: the same command goes on there. No private data were read.")
        raise
    report: Any = importlib.import_module("experiments.report")
    written = {path.stem for path in paths}
    known = [study for study in papers.chosen(names) if study.name in written]
    for line in report.lines([report.load_one(folder, study, full=full) for study in known]):
        show(line)
    if paths:
        show(f"results: {folder}")
        show("python -m experiments.report draws them beside the papers' claims")


def require_repository() -> None:
    """Make ``experiments`` importable, or say why it is not."""
    root = Path(privtail.__file__).resolve().parents[2]
    if not (root / "experiments" / "runner.py").is_file():
        raise InvalidInput(
            "The experiments are in the repository, not in the installed package. Clone it and "
            "type: make reproduce"
        )
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidInput(
            f"The experiments need {', '.join(missing)}. Type: pip install {' '.join(missing)}"
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))


def _list(runner: Any, papers: Any, estimates: Any) -> None:
    paper, sums = "", [0.0, 0.0]
    for study in papers.studies().values():
        if study.paper != paper:
            paper = study.paper
            show(f"\n{papers.PAPERS[paper]}\n")
        missing = runner.missing_data(study)
        there = f"no {', '.join(missing)}" if missing else "data here"
        times = [estimates.estimate(study, full=f) for f in (False, True)]
        sums = [total + (time or 0.0) for total, time in zip(sums, times, strict=True)]
        quick, whole = map(_duration, times)
        state = runner.state(study)
        show(f"  {study.name:<24} {study.title}")
        show(f"  {'':<24} {study.item}; {there}; quick {quick}, full {whole} on two cores; {state}")
    quick, whole = map(_duration, sums)
    show(f"\nAll: quick {quick}, full {whole}. Times are estimated from reports/results.")


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "not measured"
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
