"""The default's error over a fixed set of problems, with a part of it changed, before and after.

    python -m benchmarks.ablation run --out FILE [--groups GROUP ...] [--only-every K]
                                      [--variant NAME] [--named PATTERN] [--seeds 2] [--large]
    python -m benchmarks.ablation compare BEFORE AFTER
    python -m benchmarks.ablation page [FILE ...] [--numbers FILE ...]

``run`` fits every problem at epsilon .1, .5 and 2 with the same seeds in every run, and writes
after every problem: what is in the file already is not computed again. A variant is one change of
the algorithm, by a name of ``variants.py`` or as "NAME VALUE" of a tuned number; "as is" changes
nothing, and "other seeds" only the noise. ``compare`` prints, by
group, how the error changed: by chance alone single cells do (see "other seeds"), fewer with more
``--seeds`` of the problems whose name has the pattern ``--named``. ``page`` joins runs into
``benchmarks/results/ablation.parquet`` and fills ``docs/ablation.md`` from it; runs of numbers are
compared with the "as is" among them. To measure another
checkout, put its ``src`` first in PYTHONPATH. Without "large" all takes about six minutes of one
core.

Replace-one, delta = 1e-6, noise simulated. An error is that of ``benchmarks/drawn.py`` on test
records over the error of the best constant of the training records; of labels the log loss is
measured in the same way. ``slopes`` is the distance to the true slopes, where these are known.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "PRIVTAIL_THREADS")
for _name in THREADS:
    os.environ.setdefault(_name, "1")

from benchmarks.ablation.page import publish  # noqa: E402
from benchmarks.ablation.problems import GROUPS  # noqa: E402
from benchmarks.ablation.report import compare  # noqa: E402
from benchmarks.ablation.runner import run  # noqa: E402


def main() -> None:
    """One of the three commands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fit = commands.add_parser("run")
    fit.add_argument("--out", type=Path, required=True)
    fit.add_argument("--groups", nargs="+", choices=GROUPS, metavar="GROUP")
    fit.add_argument("--only-every", type=int, default=1, metavar="K")
    fit.add_argument("--named", default="", metavar="PATTERN", help="in the name")
    fit.add_argument("--seeds", type=int, default=2)
    fit.add_argument("--variant", default="as is", metavar="NAME")
    fit.add_argument("--large", action="store_true", help="n = 100,000 too")
    both = commands.add_parser("compare")
    both.add_argument("before", type=Path)
    both.add_argument("after", type=Path)
    paged = commands.add_parser("page")
    paged.add_argument("runs", type=Path, nargs="*")
    paged.add_argument("--numbers", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    if asked.command == "compare":
        compare(asked.before, asked.after)
    elif asked.command == "page":
        publish(asked.runs, asked.numbers)
    else:
        groups = asked.groups or [name for name in GROUPS if name != "large" or asked.large]
        run(
            asked.out, groups, every=asked.only_every, named=asked.named, seeds=asked.seeds,
            variant=asked.variant,
        )  # fmt: skip


if __name__ == "__main__":
    main()
