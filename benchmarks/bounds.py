"""Means, quartiles and histograms of privtail, OpenDP and diffprivlib, by how good bounds are.

    python -m benchmarks.bounds [RUNS] [--out FILE]

privtail is told no bounds. The others need them: ``tight`` ones are the quantiles .001 and .999 of
the law, which nobody knows before looking; ``generous`` ones are a hundred times as wide, around
the same middle; ``wrong`` ones are right for another unit, a hundredth of the true one. All have
epsilon 1 under replacement of one row; privtail also has delta 1e-6. An error is, in percent: of
means, of the standard deviation of the law; of quartiles, of the distance of the outer two, on
average; of histograms of 20 bins, how far the distribution function that is read from it is from
the true one at the nine deciles, on average. Medians of the runs. diffprivlib is measured where its
environment is (``make peers``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.comparison.peers import ONE_THREAD, SCRIPTS, environments
from privtail import private_histogram, private_mean, private_quantile

Doubles = NDArray[np.float64]
LAWS: dict[str, Callable[[np.random.Generator, int], Doubles]] = {
    "normal(50, 10)": lambda rng, n: rng.normal(50, 10, n),
    "lognormal(3, 1)": lambda rng, n: rng.lognormal(3, 1, n),
    "t(2.5)": lambda rng, n: rng.standard_t(2.5, n),
}
LEVELS, BINS, EPSILON, ROWS = (0.25, 0.5, 0.75), 20, 1.0, (2_000, 20_000)
DECILES = np.arange(0.1, 0.95, 0.1)
QUESTIONS = ("mean", "quartiles", "histogram")
KINDS = ("tight", "generous", "wrong")
CANDIDATES = 1_000
"""Values among which OpenDP's quantile is chosen, evenly spaced between the bounds."""


class Truth:
    """What a law is like, from four million draws."""

    def __init__(self, law: str) -> None:
        x = LAWS[law](np.random.default_rng(0), 4_000_000)
        self.mean, self.deviation = float(x.mean()), float(x.std())
        self.quartiles, self.deciles = np.quantile(x, LEVELS), np.quantile(x, DECILES)
        self.ends = np.quantile(x, [0.001, 0.999])

    def bounds(self, kind: str) -> tuple[float, float]:
        """Of this kind."""
        low, high = map(float, self.ends)
        if kind == "wrong":
            return low / 100, high / 100
        wide = (high - low) / 2 * (100 if kind == "generous" else 1)
        return (low + high) / 2 - wide, (low + high) / 2 + wide

    def error(self, question: str, said: Any) -> float:
        """In percent; see the module."""
        if question == "mean":
            return float(100 * abs(said - self.mean) / self.deviation)
        if question == "quartiles":
            wide = self.quartiles[2] - self.quartiles[0]
            return float(100 * np.mean(np.abs(said - self.quartiles)) / wide)
        edges, counts = said
        below = np.concatenate([[0.0], np.cumsum(np.maximum(counts, 0.0))])
        read = np.interp(self.deciles, edges, below[1:-1]) / max(below[-1], 1.0)
        return float(100 * np.mean(np.abs(read - DECILES)))


def ours(question: str, x: Doubles, seed: int) -> Any:
    """privtail, without bounds."""
    chance: Any = {"noise": "simulated", "random_state": seed, "epsilon": EPSILON}
    if question == "mean":
        return private_mean(x, **chance).value
    if question == "quartiles":
        return private_quantile(x, LEVELS, **chance).value
    found = private_histogram(x, BINS, **chance)
    return found.edges, np.concatenate([[found.below], found.counts, [found.above]])


def opendp(question: str, x: Doubles, bounds: tuple[float, float]) -> Any:
    """Its Laplace mechanism, and its noisy maximum of quantile scores."""
    import opendp.prelude

    dp: Any = opendp.prelude
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    rows = len(x) if question == "mean" else None
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=rows)
    space: Any = (domain, dp.symmetric_distance())

    def asked(of: Callable[[float], Any], epsilon: float) -> Any:
        return dp.binary_search_chain(of, d_in=2, d_out=epsilon)(x.tolist())

    if question == "mean":
        mean = space >> dp.t.then_clamp(bounds) >> dp.t.then_mean()
        return asked(lambda scale: mean >> dp.m.then_laplace(scale), EPSILON)
    if question == "quartiles":
        values = np.linspace(*bounds, CANDIDATES)

        def one(level: float) -> float:
            scores = space >> dp.t.then_quantile_score_candidates(values.tolist(), level)
            law = dp.max_divergence()
            part = EPSILON / len(LEVELS)
            return float(
                values[asked(lambda s: scores >> dp.m.then_noisy_max(law, s, negate=True), part)]
            )

        return np.array([one(level) for level in LEVELS])
    edges = np.linspace(*bounds, BINS + 1)
    cells = list(range(BINS + 2))
    counts = (
        space
        >> dp.t.then_find_bin(edges.tolist())
        >> dp.t.then_count_by_categories(cells, null_category=False)
    )
    return edges, np.array(asked(lambda scale: counts >> dp.m.then_laplace(scale), EPSILON))


class Diffprivlib:
    """A process in an environment of its own."""

    def __init__(self) -> None:
        python = environments() / "diffprivlib" / "bin" / "python"
        limited = {**os.environ, **ONE_THREAD}
        limited.pop("PYTHONPATH", None)
        self._process = python.exists() and subprocess.Popen(
            [python, SCRIPTS / "describe_diffprivlib.py"], text=True, env=limited,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def __bool__(self) -> bool:
        return bool(self._process)

    def __call__(self, question: str, x: Doubles, bounds: tuple[float, float], seed: int) -> Any:
        request = {
            "question": "quantiles" if question == "quartiles" else question, "x": x.tolist(),
            "bounds": bounds, "epsilon": EPSILON, "levels": LEVELS, "bins": BINS, "seed": seed,
        }  # fmt: skip
        assert self._process
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        said = np.array(json.loads(self._process.stdout.readline()))
        if not said.size:  # it raised an error
            return np.nan if question != "histogram" else (np.array([0.0, 1.0]), np.full(3, np.nan))
        if question == "mean":
            return said[0]
        if question == "quartiles":
            return said
        edges = np.linspace(*bounds, BINS + 1)  # rows outside are counted nowhere
        return edges, np.concatenate([[0.0], said, [0.0]])


def measured(runs: int) -> list[dict[str, Any]]:
    """The median error of every library, question, law, size and kind of bounds."""
    theirs, rows = Diffprivlib(), []
    for law, draw in LAWS.items():
        truth = Truth(law)
        for n in ROWS:
            columns = [draw(np.random.default_rng(seed + 1), n) for seed in range(runs)]
            for question in QUESTIONS:
                answers: dict[tuple[str, str], list[Any]] = {
                    ("privtail", "none"): [ours(question, x, k) for k, x in enumerate(columns)]
                }
                for kind in KINDS:
                    bounds = truth.bounds(kind)
                    answers["OpenDP", kind] = [opendp(question, x, bounds) for x in columns]
                    if theirs:
                        answers["diffprivlib", kind] = [
                            theirs(question, x, bounds, k) for k, x in enumerate(columns)
                        ]
                for (library, kind), found in answers.items():
                    error = float(np.nanmedian([truth.error(question, said) for said in found]))
                    rows.append(
                        {"law": law, "n": n, "question": question, "library": library,
                         "bounds": kind, "error": error}
                    )  # fmt: skip
                    print(
                        f"{law:16} {n:>6,} {question:10} {library:12} {kind:9} {error:10.3g} %",
                        flush=True,
                    )
    return rows


def main() -> None:
    """Print every line, and write them."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="?", type=int, default=20)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = measured(asked.runs)
    if asked.out:
        asked.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
