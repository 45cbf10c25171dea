"""How a peer answers: JSON lines in, JSON lines out, in an environment of its own.

A request is ``{"problem": "file.npz", "epsilon": 1.0, "seed": 0, "bounds": {...}, ...}``; the file
holds X, y, X_test, classes (0 for numbers) and delta. An answer is ``{"w": [[...], ...]}``, slopes
and the intercept last, or ``{"predicted": [...]}``, and its seconds of the processor.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

Request = dict[str, Any]
Answer = dict[str, Any]


@lru_cache(maxsize=1)
def _records(path: str) -> dict[str, Any]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def serve(fit: Callable[[dict[str, Any], Request], Answer]) -> None:
    """Answer until there are no more requests."""
    warnings.simplefilter("ignore")
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        request = json.loads(line)
        records = _records(request["problem"])
        begun = time.process_time()
        try:
            answer = fit(records, request)
        except Exception as error:  # noqa: BLE001  (whatever a peer raises is its answer)
            answer = {"error": f"{type(error).__name__}: {error}"}
        answer["seconds"] = time.process_time() - begun
        print(json.dumps(answer), file=answers, flush=True)


def linear(slopes: Any, intercept: Any) -> Answer:
    """The answer of a linear model with slopes (K, d)."""
    w = np.vstack([np.atleast_2d(slopes).T, np.ravel(intercept)])
    return {"w": w.tolist()}
