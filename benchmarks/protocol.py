"""How everything here is measured: interleaved pairs in one process, the best of three processes.

A ratio of two times that alternate in one process says more on a busy machine than either time.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAIRS = 15
PROCESSES = 3
THREADS = 2


def machine(*packages: str) -> str:
    """One line: processor, cores, load, versions."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        name = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), name)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    versions = [f"{p} {importlib.metadata.version(p)}" for p in ("privtail", "numpy", *packages)]
    python = platform.python_version()
    return (
        f"{name}, {os.cpu_count()} cores, load {load:.1f}; Python {python}, {', '.join(versions)}"
    )


def pairs(ours: Callable[[], Any], theirs: Callable[[], Any], count: int = PAIRS) -> dict[str, Any]:
    """Median ratio of interleaved pairs, and the least time of each, after one call of each."""
    ours(), theirs()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        ours()
        middle = time.perf_counter()
        theirs()
        times.append((middle - start, time.perf_counter() - middle))
    return {
        "ratio": statistics.median(a / b for a, b in times),
        "ours": min(a for a, _ in times),
        "theirs": min(b for _, b in times),
    }


def in_a_process(*arguments: str, **environment: str) -> Any:
    """What ``python arguments`` prints, as JSON, in a fresh process with two threads."""
    names = ("PRIVTAIL_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    env = {**os.environ, **dict.fromkeys(names, str(THREADS)), **environment}
    out = subprocess.run([sys.executable, *arguments], env=env, check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)
