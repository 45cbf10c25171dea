"""What accounting costs in time, and the modules that everyone imports.

    python -m benchmarks.accounting

Seconds of one processor, the least of three processes, beside the limits we set ourselves: light
modules, the noise of many rounds on batches of rows, a closed form.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.protocol import PROCESSES, in_a_process, machine

UNIT = 2.0**30
"""Steps of the grid per radius."""

IMPORTED = """
import time, numpy
start = time.process_time()
import privtail.{module}
print(time.process_time() - start)
"""

LIMITS = {
    "import privtail.losses": 0.05,
    "import privtail.domains": 0.05,
    "1,000 batches of 1 %, epsilon .1": 10.0,
    "1,000 batches of 1 %, epsilon 1": 10.0,
    "10,000 batches of .1 %, epsilon .1": 10.0,
    "10,000 batches of .1 %, epsilon 1": 10.0,
    "100 rounds of all rows, epsilon 1": 10.0,
    "price of 100 rounds": 5e-3,
}


def imported(module: str) -> float:
    """Seconds of a first import beside numpy."""
    return float(in_a_process("-c", IMPORTED.format(module=module)))


def measured() -> dict[str, float]:
    """Seconds of calibrations and of a price, in this process."""
    from privtail.calibration import calibrate
    from privtail.trusted.accountants import cost
    from privtail.trusted.budget import Budget
    from privtail.trusted.events import Event, Plan, Round
    from privtail.trusted.sampling import Everyone, PoissonBatches

    def plan(noise: float, times: int, rate: float) -> Plan:
        event = Event(
            law="gaussian", scale=noise * UNIT, radius=UNIT, diameter=2 * UNIT, coordinates=10
        )
        sampling = PoissonBatches(rate) if rate < 1 else Everyone()
        return (Round(sampling=sampling, events=(event,), times=times),)

    def calibrated(epsilon: float, times: int, rate: float) -> Callable[[], Any]:
        return lambda: calibrate(lambda m: plan(m, times, rate), Budget(epsilon, 1e-5, "zero_out"))

    rounds = plan(30.0, 100, 1.0)
    tasks: dict[str, Callable[[], Any]] = {
        "1,000 batches of 1 %, epsilon .1": calibrated(0.1, 1000, 0.01),
        "1,000 batches of 1 %, epsilon 1": calibrated(1.0, 1000, 0.01),
        "10,000 batches of .1 %, epsilon .1": calibrated(0.1, 10_000, 0.001),
        "10,000 batches of .1 %, epsilon 1": calibrated(1.0, 10_000, 0.001),
        "100 rounds of all rows, epsilon 1": calibrated(1.0, 100, 1.0),
        "price of 100 rounds": lambda: cost(rounds, "zero_out").epsilon(1e-6),
    }
    tasks["price of 100 rounds"]()
    return {name: _seconds(task) for name, task in tasks.items()}


def _seconds(task: Callable[[], Any]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def main() -> None:
    """Measure in fresh processes and print the table."""
    print(machine("scipy"))
    print(f"\n{'accounting':36}{'seconds':>10}{'at most':>10}")
    runs = [
        {f"import privtail.{module}": imported(module) for module in ("losses", "domains")}
        | in_a_process("-m", "benchmarks.accounting", "--measure")
        for _ in range(PROCESSES)
    ]
    for name, limit in LIMITS.items():
        print(f"{name:36}{min(run[name] for run in runs):10.4f}{limit:>10}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured()))
    else:
        main()
