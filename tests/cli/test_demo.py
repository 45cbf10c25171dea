from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time

import pytest

import privtail


@pytest.mark.slow
def test_demo(shell):
    pytest.importorskip("matplotlib")
    began = time.perf_counter()
    out = shell("demo", "--out", "demo").stdout
    assert time.perf_counter() - began < 120
    assert privtail.load("demo/model.json").statement.private
    assert (shell.folder / "demo/accuracy_epsilon.png").read_bytes()[:4] == b"\x89PNG"
    private, without, majority = (float(x) for x in re.findall(r"([\d.]+)% of 16,281", out))
    assert majority + 5 < private < without + 0.5
    commands = re.findall(r"^\$ privtail (.*)$", out, flags=re.MULTILINE)
    assert [shlex.split(command)[0] for command in commands] == ["fit", "predict", "verify"]
    for command in commands:
        shell(*shlex.split(command))


def test_help_teaches_by_example(shell):
    said = shell("--help").stdout
    for verb in ("fit", "predict", "verify", "mean", "budget", "demo"):
        assert verb in said
        page = shell(verb, "--help").stdout
        assert "For example:\n" in page
        assert f"\n    privtail {verb} " in page


def test_help_is_quick_and_light():
    code = (
        "import sys\nfrom privtail.cli.application import application\n"
        "application(['fit', '--help'], standalone_mode=False)\n"
        "print(*(m for m in ('numba', 'sklearn', 'pyarrow', 'matplotlib') if m in sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == ""


def test_the_command_as_a_process(shell):
    out = shell.process("--version")
    assert out.returncode == 0
    assert out.stdout == f"privtail {privtail.__version__}\n"
