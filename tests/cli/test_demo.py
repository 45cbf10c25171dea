from __future__ import annotations

import re
import shlex

import pytest

import privtail


@pytest.mark.slow
def test_demo(shell):
    pytest.importorskip("matplotlib")
    out = shell("demo", "--out", "demo").stdout
    assert privtail.load("demo/model.json").statement.private
    assert (shell.folder / "demo/accuracy_epsilon.png").read_bytes()[:4] == b"\x89PNG"
    private, without, majority = (float(x) for x in re.findall(r"([\d.]+)% of 16,281", out))
    assert majority + 5 < private < without + 0.5
    commands = re.findall(r"^\$ privtail (.*)$", out, flags=re.MULTILINE)
    assert [shlex.split(command)[0] for command in commands] == [
        "fit",
        "predict",
        "verify",
        "evaluate",
        "report",
    ]
    for command in commands:
        shell(*shlex.split(command))
