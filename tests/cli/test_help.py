"""Help and README teach by examples, and every one of them runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import privtail
from privtail.data import ADULT, adult_schema
from privtail.linear_model import DPLinearRegression

VERBS = (
    "budget", "plan", "fit", "algorithms", "theory", "mean", "count", "quantile", "histogram",
    "predict", "verify",
)  # fmt: skip
README = Path(privtail.__file__).parents[2] / "README.md"


def examples(page: str) -> list[list[str]]:
    """The commands below "For example:", without the word privtail."""
    text = page.split("For example:\n")[1].split("\n\n", maxsplit=1)[0].replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in text.splitlines()]


@pytest.fixture
def folder(shell):
    """The files that the examples name."""
    rng = np.random.default_rng(0)
    n = 400
    days, cost, job = rng.pareto(3, n), rng.pareto(3, n), rng.choice(["clerk", "cook"], n)
    claims = pa.table({"claim_id": np.arange(n), "days": days, "cost": cost})
    late = pa.array(np.where(days > 0.5, "yes", "no"))
    arrow_csv.write_csv(claims, "claims.csv")
    pq.write_table(pa.table({"days": days, "job": job, "late": late}), "loans.parquet")
    visits = {"days": days, "cost": cost, "person": rng.integers(0, 100, n)}
    pq.write_table(pa.table(visits), "visits.parquet")
    pq.write_table(pq.read_table(ADULT).slice(0, 1000), "adult.parquet")
    Path("adult.json").write_text(json.dumps(adult_schema()))
    return shell


def test_every_example_runs(folder):
    ran = 0
    for verb in VERBS:
        for words in examples(folder(verb, "--help").stdout):
            folder(*words)
            ran += words[0] == verb
    assert ran >= 12
    for made in ("ridge.png", "plan.png"):
        assert Path(made).read_bytes()[:4] == b"\x89PNG"


CLAIMED = {
    "age": [20, 30, 50, 70], "income": [0, 10, 1000],
    "region": ["north", "south"], "fuel": ["gas", "oil"],
}  # fmt: skip
"""Columns that a guide names, with their values."""


def shell_lines(page: str) -> list[list[str]]:
    """The commands of the shell blocks of a page, without the word privtail."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("privtail ")]


@pytest.mark.parametrize("page", ["budgets", "features", "means", "evaluation", "deploy"])
def test_the_shell_lines_of_a_guide_run(folder, page):
    """As they stand and in this order, beside the tables and the model that they name."""
    if page == "features":
        rng, claims = np.random.default_rng(1), arrow_csv.read_csv("claims.csv")
        for name, values in CLAIMED.items():
            claims = claims.append_column(name, pa.array(rng.choice(values, len(claims))))
        arrow_csv.write_csv(claims, "claims.csv")
    for name in ("rows", "held-out"):
        pq.write_table(pq.read_table("loans.parquet").drop(["job"]), f"{name}.parquet")
    if page in {"evaluation", "deploy"}:
        folder("fit", "rows.parquet", "--target", "late", "--classes", "no,yes", "--epsilon", 2)
        Path("other.json").write_bytes(Path("model.json").read_bytes())
    lines = shell_lines((README.parent / f"docs/guide/{page}.md").read_text(encoding="utf-8"))
    assert lines
    for words in lines:
        folder(*words)


def test_the_shell_lines_of_the_readme_run(folder, tmp_path):
    text = README.read_text().split("## On the command line")[1].split("```")[1]
    script = text.removeprefix("sh\n")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "privtail"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m privtail.cli "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(command.parent), str(Path(sys.executable).parent)])
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", script],
        env={
            **os.environ,
            "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(Path(privtail.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "differentially private" in done.stdout
    epsilon, delta = privtail.Ledger("budget.jsonl").remaining
    assert (epsilon, delta) == (pytest.approx(0.5, abs=1e-4), pytest.approx(1.8e-6))
    assert delta >= DPLinearRegression().delta, "another fit, with its defaults, is funded"


def test_pages_fit_a_terminal_of_80_columns(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for page in ((), *((verb,) for verb in VERBS), ("cross-validate",), ("demo",)):
        text = shell(*page, "--help").stdout
        assert max(map(len, text.splitlines())) <= 80, page
    for words in (("algorithms",), ("plan", "--rows", 90, "--features", 9, "--model", "logistic",
                                    "--epsilon", 0.1)):  # fmt: skip
        assert max(map(len, shell(*words).stdout.splitlines())) <= 80, words


def test_the_first_page_names_every_verb(shell):
    said = shell("--help").stdout
    for verb in (*VERBS, "cross-validate", "demo"):
        assert re.search(rf"^  {verb} +\w", said, flags=re.MULTILINE)


def test_help_is_quick_and_light():
    code = (
        "import sys\nfrom privtail.cli.application import application\n"
        "application(['fit', '--help'], standalone_mode=False)\n"
        "print(*(m for m in ('numpy', 'numba', 'sklearn', 'pyarrow', 'matplotlib') "
        "if m in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == ""


def test_the_options_are_the_parameters_of_the_models():
    from dataclasses import fields

    from privtail.cli.models import Choice, Name
    from privtail.linear_model import MODELS
    from privtail.linear_model.fitting import PrivateLinearModel

    assert set(get_args(Name)) == set(MODELS)
    shared = {f.name for f in fields(PrivateLinearModel)}
    own = {f.name for kind in MODELS.values() for f in fields(kind)} - shared - {"classes"}
    assert own == {f.name for f in fields(Choice) if f.default is None} - {"model", "exposure"}


def test_the_list_of_algorithms(shell):
    from privtail.algorithms import TABLE
    from privtail.default import AUTO
    from privtail.published import NAMES

    said = shell("algorithms").stdout
    for row in (AUTO, *TABLE):
        entry = re.search(rf"^{row.name}\n((?:  .*\n)+)", said, flags=re.MULTILINE)
        assert entry is not None
        text = " ".join(entry[1].split())
        for fact in (row.algorithm.__name__, row.must_know, row.cost, row.privacy):
            assert fact in text
        assert row.paper == "-" or f"{row.paper}, {row.box}" in text
        named = row.name in {"auto", *NAMES}
        assert (f"--algorithm {row.name}\n" in entry[1]) == named


def test_the_command_as_a_process(shell):
    out = shell.process("--version")
    assert out.returncode == 0
    assert out.stdout == f"privtail {privtail.__version__}\n"


def test_theory_says_what_runs_a_mean(shell):
    """It is in no row of `privtail algorithms`, which says how the others are run."""
    words = ("--n", 10_000, "--d", 3, "--epsilon", 1)
    assert "privtail mean --method truncated" in shell("theory", "truncated-mean", *words).stdout
    assert "run by" not in shell("theory", "catoni-descent", *words).stdout


@pytest.mark.parametrize(("epsilon", "decide"), [(0.1, False), (10, True)])
def test_theory_says_where_a_promise_is_below_what_is_possible(shell, epsilon, decide):
    """At epsilon 10 it printed 8e-09 beside a least risk of 1.05e-05, and no word."""
    words = ("--n", 100_000, "--d", 2, "--epsilon", epsilon)
    said = " ".join(shell("theory", "sample-and-aggregate", *words).stdout.split())
    assert ("constants and logarithms that it hides decide here" in said) is decide
