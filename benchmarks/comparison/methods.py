"""The methods of the table.

Kinds: ``default`` and ``sparse`` are privtail's own; ``paper`` runs a published algorithm by its
name or with `baselines.guessed` bounds, ``peer`` another library and ``by hand`` NumPy, each with
settings chosen once for all problems; these are ranked. ``oracle`` methods are given bounds or
settings that only somebody who read the records would know, so they are shown and not ranked;
``not private`` are references.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.comparison import baselines, peers
from benchmarks.comparison.baselines import Bounds, Line
from benchmarks.comparison.problems import Doubles, Problem, Sample
from privtail import linear_model
from privtail.algorithms import BoostedAdaSSP
from privtail.published.names import NAMES

Kind = Literal["default", "sparse", "paper", "peer", "by hand", "oracle", "not private"]
RANKED: tuple[Kind, ...] = ("default", "paper", "peer", "by hand")


@dataclass(frozen=True)
class Fitted:
    """Predictions of the test part; slopes of a linear model; seconds where a peer counted them."""

    predicted: Doubles
    slopes: Doubles | None = None
    seconds: float | None = None


Fit = Callable[[Problem, Sample, float, int], Fitted]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to answer.

    ``least`` and ``runs`` are its fewest and most repetitions, ``patience`` the seconds up to which
    a fit has the most.
    """

    name: str
    kind: Kind
    fit: Fit
    fits: Callable[[Problem], bool] = lambda _: True
    least: int = 1
    runs: int = 9
    patience: float = 0.2
    peer: str = ""

    def epsilons(self, problem: Problem) -> tuple[float, ...]:
        """Budgets; without privacy there is one."""
        return (math.inf,) if self.kind == "not private" else problem.epsilons


DEFAULT = "privtail"
OPACUS_EPOCHS = 5


def _estimator(name: str, **options: Any) -> Fit:
    """One of privtail's estimators: ``name`` of (regressor, classifier) by the problem's task."""

    def fit(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        given: dict[str, Any] = {
            "epsilon": epsilon, "delta": problem.delta, "noise": "simulated", "random_state": seed,
            **options,
        }  # fmt: skip
        if problem.classes:
            given["classes"] = [float(c) for c in range(problem.classes)]
        model = getattr(linear_model, _class(name, problem))(**given).fit(sample.X, sample.y)
        return Fitted(model.predict(sample.X_test), np.asarray(model.coef_))

    return fit


def _class(name: str, problem: Problem) -> str:
    labels = {"DPLinearRegression": "DPLogisticRegression",
              "DPSparseRegressor": "DPSparseClassifier"}  # fmt: skip
    return labels[name] if problem.classes else name


def _line(fit: Callable[..., Line], *more: Callable[[Problem, Sample], Any]) -> Fit:
    """A hand-written private method, with what ``more`` makes of the problem."""

    def run(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        given = [make(problem, sample) for make in more]
        return _fitted(fit(problem, sample, epsilon, seed, *given), problem, sample)

    return run


def _reference(fit: Callable[[Problem, Sample], Line]) -> Fit:
    return lambda problem, sample, epsilon, seed: _fitted(fit(problem, sample), problem, sample)


def _fitted(line: Line, problem: Problem, sample: Sample) -> Fitted:
    return Fitted(line.predict(sample.X_test, problem.classes), line.slopes)


def _peer(name: str) -> Fit:
    """A peer with bounds that are the same for all problems."""

    def fit(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        given = {"bounds": asdict(baselines.guessed(problem))}
        return _asked(name, problem, sample, epsilon, seed, given)

    return fit


def _opacus(clip: float, rate: float) -> Fit:
    """Five epochs of a hundredth of the rows."""

    def fit(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        noise = baselines.sgd_noise(epsilon, problem.delta, OPACUS_EPOCHS * 100)
        given = {"noise": noise, "epochs": OPACUS_EPOCHS, "clip": clip, "rate": rate}
        return _asked("opacus", problem, sample, epsilon, seed, given)

    return fit


def _jax_privacy(clip: float, rate: float) -> Fit:
    def fit(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        given = {"clip": clip, "rate": rate}
        return _asked("jax_privacy", problem, sample, epsilon, seed, given)

    return fit


def _asked(
    name: str, problem: Problem, sample: Sample, epsilon: float, seed: int, given: dict[str, Any]
) -> Fitted:
    answer = peers.ask(name, problem, sample, epsilon=epsilon, seed=seed, **given)
    if "predicted" in answer:
        return Fitted(np.array(answer["predicted"]), None, answer["seconds"])
    line = Line(np.array(answer["w"]))
    return Fitted(line.predict(sample.X_test, problem.classes), line.slopes, answer["seconds"])


SHARES = (0.9, 0.99, 1.0)


def _best(fits: Iterable[Fit]) -> Fit:
    """The best of several settings by the test part: what no user could do."""

    def fit(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        tried = [one(problem, sample, epsilon, seed) for one in fits]
        return min(tried, key=lambda f: problem.scores(sample, f.predicted, None)["error"])

    return fit


def _with_bounds(name: str, share: float) -> Fit:
    def fit(problem: Problem, sample: Sample, epsilon: float, seed: int) -> Fitted:
        given = {"bounds": asdict(baselines.oracle(sample, share))}
        return _asked(name, problem, sample, epsilon, seed, given)

    return fit


def _adassp(share: float) -> Fit:
    return _line(baselines.adassp, lambda _, sample: baselines.oracle(sample, share))


def _descent(clip: float, step: float) -> Fit:
    return _line(partial(baselines.clipped_descent, clip=clip, step=step))


def _guessed(problem: Problem, _: Sample) -> Bounds:
    return baselines.guessed(problem)


def boosted_adassp(
    problem: Problem, sample: Sample, epsilon: float, seed: int, bounds: Bounds, *,
    steps: int = 100, share: float = 1.0,
) -> Line:  # fmt: skip
    """`BoostedAdaSSP` on features that are divided by their bounds.

    Residuals are clipped to a ``share`` of the bound of the target.
    """
    algorithm = BoostedAdaSSP(
        steps=steps, radius=math.hypot(bounds.row, 1.0), threshold=share * bounds.target
    )
    model = linear_model.DPLinearRegression(
        epsilon=epsilon, delta=problem.delta, algorithm=algorithm, noise="simulated",
        random_state=seed,
    ).fit(sample.X / bounds.features, sample.y)  # fmt: skip
    return Line(np.append(model.coef_ / bounds.features, model.intercept_)[:, None])


def numbers(problem: Problem) -> bool:
    """Regression."""
    return not problem.classes


def labels(problem: Problem) -> bool:
    """Classification."""
    return problem.classes > 0


def few(problem: Problem) -> bool:
    """Few features: what takes minutes beyond is asked no more."""
    return problem.d <= 20


def anything(_: Problem) -> bool:
    """Every problem."""
    return True


def additive(problem: Problem) -> bool:
    """What DP-EBM is asked: numbers, or two labels."""
    return problem.classes < 3 and few(problem)


AGGREGATE = "sample-and-aggregate"
CLOSE = ("clipped-spgd", "one-pass-descent")
"""So near to the default somewhere that few repetitions would decide by chance."""

METHODS: tuple[Method, ...] = (
    Method(
        name=DEFAULT, kind="default", fit=_estimator("DPLinearRegression"), least=9,
    ),
    Method(
        name="privtail, ten slopes", kind="sparse", fit=_estimator("DPSparseRegressor"),
        fits=lambda p: p.wide, patience=1.0,
    ),
    Method(
        name="privtail, lasso", kind="sparse", fit=_estimator("DPLasso", alpha=0.1),
        fits=lambda p: p.wide and numbers(p), runs=3,
    ),
    *(
        Method(
            name=n, kind="paper", fit=_estimator("DPLinearRegression", algorithm=n),
            runs=1 if n == AGGREGATE else 9, fits=few if n == AGGREGATE else anything,
            patience=1.0 if n in CLOSE else 0.2,
        )
        for n in NAMES
    ),
    Method(
        name="boosted-adassp", kind="paper", fit=_line(boosted_adassp, _guessed), fits=numbers,
    ),
    Method(
        name="diffprivlib", kind="peer", fit=_peer("diffprivlib"), peer="diffprivlib",
    ),
    Method(name="Opacus", kind="peer", fit=_opacus(1.0, 1.0), peer="opacus"),
    Method(
        name="JAX-Privacy", kind="peer", fit=_jax_privacy(1.0, 0.5), peer="jax_privacy",
        patience=1.0,
    ),
    Method(
        name="DP-EBM", kind="peer", fit=_peer("interpret"), peer="interpret", runs=3,
        fits=additive,
    ),
    Method(name="clipped descent", kind="by hand", fit=_descent(1.0, 1.0)),
    Method(name="clipped SGD", kind="by hand", fit=_line(baselines.clipped_sgd)),
    Method(
        name="AdaSSP", kind="by hand", fit=_line(baselines.adassp, _guessed), fits=numbers,
    ),
    Method(name="AdaSSP, true bounds", kind="oracle", fit=_adassp(1.0), fits=numbers),
    Method(
        name="AdaSSP, best bounds", kind="oracle", fit=_best([_adassp(s) for s in SHARES]),
        fits=numbers,
    ),
    Method(
        name="clipped descent, best", kind="oracle", runs=3,
        fit=_best([_descent(c, s) for c in (1.0, 10.0, 100.0) for s in (0.1, 1.0)]),
    ),
    Method(
        name="diffprivlib, best bounds", kind="oracle", peer="diffprivlib", runs=3,
        fit=_best([_with_bounds("diffprivlib", s) for s in SHARES]),
    ),
    Method(
        name="JAX-Privacy, best", kind="oracle", peer="jax_privacy", runs=3, patience=1.0,
        fit=_best([_jax_privacy(c, r) for c in (1.0, 10.0, 100.0) for r in (0.05, 0.5)]),
    ),
    Method(
        name="Opacus, best", kind="oracle", peer="opacus", runs=1,
        fit=_best([_opacus(c, r) for c in (1.0, 10.0, 100.0) for r in (0.1, 1.0)]),
    ),
    Method(
        name="DP-EBM, best bounds", kind="oracle", peer="interpret", runs=3, fits=additive,
        fit=_best([_with_bounds("interpret", s) for s in SHARES]),
    ),
    Method(name="constant", kind="not private", fit=_reference(baselines.constant)),
    Method(
        name="least squares", kind="not private", fit=_reference(baselines.least_squares),
        fits=numbers,
    ),
    Method(name="Huber", kind="not private", fit=_reference(baselines.huber), fits=numbers, runs=3),
    Method(
        name="logistic", kind="not private", fit=_reference(baselines.logistic), fits=labels,
    ),
)  # fmt: skip


def missing(method: Method) -> str:
    """Why a method cannot be run here, or nothing."""
    if method.peer and not peers.available(method.peer):
        return f"{method.name}: no environment in {peers.environments()} (make peers)"
    return ""
