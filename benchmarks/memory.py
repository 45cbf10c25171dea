"""Peak memory of a gradient beyond the data, and of a whole fit; needs Linux.

``python -m benchmarks.memory``. n = 1e6, d = 50, two threads. The kernels are compiled before, on
a few rows; then the peak of the resident memory is reset and read again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.protocol import in_a_process, machine

LIMIT = 64.0
KINDS = ("float64", "float32", "column-major", "CSR")


def resident(which: str) -> float:
    """``VmRSS`` or its peak ``VmHWM`` of this process, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(which):
            return int(line.split()[1]) / 1024
    raise OSError(which)


def measured(kind: str) -> dict[str, float]:
    """Peaks of a clipped and a smoothed Catoni gradient, in MB beyond what was there."""
    from gradients import MEANS, gradient, problem

    peaks = {}
    X, y, w, loss = problem(kind=kind)
    for name, mean in MEANS.items():
        gradient(X[:10_000], y[:10_000], w, loss, mean)()
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        before = resident("VmRSS")
        ask = gradient(X, y, w, loss, mean)
        ask()
        peaks[name] = resident("VmHWM") - before
    return peaks


def main() -> None:
    """Measure in fresh processes and print the table."""
    if not Path("/proc/self/clear_refs").exists():
        print("memory: needs Linux")
        return
    print(machine("numba"))
    print(f"\n{'MB beyond the data':36}{'clipped':>9}{'Catoni':>9}{'at most':>9}")
    for kind in KINDS:
        peaks = in_a_process("-m", "benchmarks.memory", "--measure", kind)
        print(f"{kind:36}{peaks['clipped']:9.1f}{peaks['Catoni']:9.1f}{LIMIT:9.0f}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        main()
