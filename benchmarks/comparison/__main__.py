"""The table of methods and problems: computed, printed, drawn.

    python -m benchmarks.comparison run [--methods NAME ...] [--minutes 3] [--again]
    python -m benchmarks.comparison report [--summary]
    python -m benchmarks.comparison publish
    python -m benchmarks.comparison quick

``run`` computes what is missing in ``benchmarks/results`` (``--again`` throws the rows of the named
methods and problems away first), ``report`` prints the table, ``publish`` writes the figures and
the numbers of ``docs/which-method.md``, and ``quick`` computes and prints a table of its own, of
the problems with 1,000 records, once each. Real tables are read from the folder that PRIVTAIL_DATA
names, or from ../shared/data; peers from the environments of ``make peers``.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "PRIVTAIL_THREADS")
for name in THREADS:
    os.environ.setdefault(name, "1")

from benchmarks.comparison import methods, problems, report, runner  # noqa: E402


def main() -> None:
    """One of the four commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=("run", "report", "publish", "quick"))
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="a method or a kind")
    parser.add_argument("--problems", default="", help="a group, or what a name holds")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after these")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--runs", type=int, default=runner.ALL, help="repetitions, 9 by default")
    parser.add_argument("--again", action="store_true", help="throw away what is there")
    parser.add_argument("--summary", action="store_true", help="without the rows of the methods")
    parser.add_argument("--results", type=Path, default=runner.RESULTS)
    asked = parser.parse_args()
    if asked.command == "run":
        _run(asked)
    elif asked.command == "quick":
        asked.results, asked.runs, asked.again = Path("build") / "comparison", 1, True
        _run(asked, most=1_000)
        print(report.text(report.medians(asked.results)))
    elif asked.command == "report":
        print(report.text(report.medians(asked.results), summary=asked.summary))
    else:
        from benchmarks.comparison import page

        page.publish(asked.results)


def _run(asked: argparse.Namespace, most: float = math.inf) -> None:
    """``most`` is the most training rows of a problem."""
    chosen = [
        m for m in methods.METHODS
        if not asked.methods or m.name in asked.methods or m.kind in asked.methods
    ]  # fmt: skip
    there = [
        p for p in problems.problems()
        if (asked.problems in p.name or asked.problems == p.group) and p.n <= most
    ]  # fmt: skip
    if not chosen or not there:
        names = methods.METHODS if not chosen else problems.problems()
        raise SystemExit(f"Nothing is called so. There are: {'; '.join(x.name for x in names)}.")
    for method in chosen:
        if said := methods.missing(method):
            print(f"skipped {said}")
    chosen = [m for m in chosen if not methods.missing(m)]
    for problem in there:
        if not problems.here(problem):
            print(f"skipped {problem.name}: its table is not here (privtail data)")
    there = [p for p in there if problems.here(p)]
    for method in chosen if asked.again else []:
        runner.forget(method.name, there, asked.results)
    runner.run(
        chosen, there, folder=asked.results, minutes=asked.minutes, processes=asked.processes,
        runs=asked.runs,
    )  # fmt: skip


if __name__ == "__main__":
    main()
