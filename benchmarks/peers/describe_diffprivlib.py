"""Means, quantiles and histograms by diffprivlib: JSON requests in, numbers out.

Run by `benchmarks.bounds` in the environment of `diffprivlib.txt`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from diffprivlib import tools


def main() -> None:
    """Answer every line; an empty list where it raises an error."""
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception:  # noqa: BLE001  what it raises is its answer
            said = []
        print(json.dumps([float(number) for number in said]), flush=True)


def answer(asked: dict[str, Any]) -> Any:
    """Numbers for a column, a question, epsilon, bounds and a seed."""
    x, bounds = np.array(asked["x"]), tuple(asked["bounds"])
    shared = {"epsilon": asked["epsilon"], "random_state": asked["seed"]}
    if asked["question"] == "mean":
        return [tools.mean(x, bounds=bounds, **shared)]
    if asked["question"] == "quantiles":
        return tools.quantile(x, asked["levels"], bounds=bounds, **shared)
    return tools.histogram(x, bins=asked["bins"], range=bounds, **shared)[0]


if __name__ == "__main__":
    main()
