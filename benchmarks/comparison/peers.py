"""Peers, each a process in an environment of its own that `benchmarks/peers/protocol.py` feeds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.comparison.problems import Doubles, Problem, Sample

SCRIPTS = Path(__file__).resolve().parents[1] / "peers"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}  # fmt: skip


def environments() -> Path:
    """Where ``make peers`` puts them."""
    return Path(os.environ.get("PRIVTAIL_PEERS", Path(tempfile.gettempdir()) / "privtail-peers"))


def available(name: str) -> bool:
    """Whether a peer's environment was built."""
    return _python(name).exists()


def _python(name: str) -> Path:
    return environments() / name / "bin" / "python"


class PeerFailed(Exception):
    """What a peer raised, in its words."""


def ask(name: str, problem: Problem, sample: Sample, **request: Any) -> dict[str, Any]:
    """The answer of a peer: ``w`` or ``predicted``, and its seconds."""
    process = _process(name)
    assert process.stdin is not None
    assert process.stdout is not None
    written = json.dumps({"problem": _written(problem, sample), **request}, default=_plain)
    process.stdin.write(written + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline() or '{"error": "it ended"}')
    if "error" in answer:
        raise PeerFailed(answer["error"])
    return answer


def _plain(x: Doubles) -> list[float]:
    return x.tolist()  # type: ignore[no-any-return]


@cache
def _process(name: str) -> subprocess.Popen[str]:
    limited = {**os.environ, **ONE_THREAD}
    limited.pop("PYTHONPATH", None)
    process = subprocess.Popen(
        [_python(name), SCRIPTS / f"fit_{name}.py"], text=True, env=limited,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    Finalize(None, process.kill, exitpriority=1)
    return process


@cache
def _folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="privtail-problem-"))
    Finalize(None, shutil.rmtree, args=(path,), exitpriority=0)
    return path


_LAST: list[Any] = [None, 0]


def _written(problem: Problem, sample: Sample) -> str:
    """The file of a sample; only the last one is kept."""
    if _LAST[0] is not sample:
        for old in _folder().iterdir():
            old.unlink()
        _LAST[:] = [sample, _LAST[1] + 1]
        np.savez(
            _folder() / f"{_LAST[1]}.npz", X=sample.X, y=sample.y, X_test=sample.X_test,
            classes=problem.classes, delta=problem.delta,
        )  # fmt: skip
    return str(_folder() / f"{_LAST[1]}.npz")
