"""The checks that two papers need beside the common ones, on results that hold and that fail."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from experiments import wang2019, xie2023
from experiments.claims import View, lower
from experiments.study import STATED
from privtail.algorithms import NoisyDescent, ProximalGradient
from privtail.trusted.budget import Budget
from privtail.trusted.problem import Problem


def seen(laws, *, datasets=("a",), accounting=STATED):
    """Six repetitions of law(x, epsilon, dataset), with scatter."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "dataset": dataset, "method": method, "accounting": accounting, "epsilon": epsilon,
            "x": x, "repetition": repetition, "metric": "error",
            "value": law(x, epsilon, dataset) * math.exp(0.03 * rng.standard_normal()),
        }
        for method, law in laws.items()
        for dataset in datasets
        for epsilon in (0.5, 2.0)
        for x in (10.0, 100.0, 1000.0)
        for repetition in range(6)
    ]  # fmt: skip
    frame = pd.DataFrame(rows)
    return View(frame, "error", frame)


def of_budget(x, epsilon, dataset):
    return 1 / epsilon


def of_x(x, epsilon, dataset):
    return x**-0.5 / epsilon**0.1


def level(x, epsilon, dataset):
    return 1.0 if dataset == "a" else 2.0


def weaker(method):
    return wang2019.weaker_than_budget(method, epsilon=2.0, steps=100.0)


LAWS = {"of budget": of_budget, "of x": of_x, "level": level}


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        (weaker("of budget"), weaker("of x")),
        (wang2019.smaller_on("a", "b", "level"), wang2019.smaller_on("b", "a", "level")),
        (xie2023.at(10, lower("level", "of budget", epsilons=(0.5,))),
         xie2023.at(10, lower("level", "of budget", epsilons=(2.0,)))),
        (xie2023.less_moved("level", "of x", "x"), xie2023.less_moved("of x", "level", "x")),
        (xie2023.less_moved("of x", ("of budget",), "epsilon"),
         xie2023.less_moved("of budget", ("of x", "level"), "epsilon")),
    ],
)  # fmt: skip
def test_a_check_tells_what_holds_from_what_fails(holds, fails):
    view = seen(LAWS, datasets=("a", "b"))
    yes, no = holds(view), fails(view)
    assert yes.holds is True
    assert no.holds is False
    for finding in (yes, no):
        assert finding.low <= finding.effect <= finding.high
        assert finding.what


@pytest.mark.parametrize(
    "check",
    [
        weaker("nobody"), wang2019.smaller_on("a", "b", "level"),
        xie2023.less_moved("nobody", "level", "x"),
    ],
)  # fmt: skip
def test_a_check_without_results_is_open(check):
    assert check(seen(LAWS)).holds is None


def test_line_3_loses_at_a_small_budget_what_the_text_gains():
    """The square of rho costs what zCDP gains."""
    line = wang2019.less_noise(200, 0.5, power=1.0)(seen(LAWS))
    text = wang2019.less_noise(200, 0.5, power=0.5)(seen(LAWS))
    assert line.holds is False
    assert text.holds is True
    assert text.effect < 0.1


def test_the_printed_noises_of_wang2019_are_those_of_the_formulas():
    problem, budget = Problem(n=1000, d=7), Budget(0.5, 1e-3)
    mine = ProximalGradient(steps=200, step_size=1.0, threshold=1.0)
    logs = math.log(1000)
    rho = (math.sqrt(logs + 0.5) - math.sqrt(logs)) ** 2
    assert rho + 2 * math.sqrt(rho * logs) == pytest.approx(0.5)
    # The multiplier counts in 1/n, the l2 radius of a mean of gradients of norm 1.
    assert wang2019.line_3(mine, problem, budget) == pytest.approx(math.sqrt(400) / rho)
    assert wang2019.text(mine, problem, budget) == pytest.approx(math.sqrt(400 / rho))
    other = NoisyDescent(steps=200, step_size=1.0, threshold=1.0)
    assert wang2019.moments(other, problem, budget) == pytest.approx(math.sqrt(400 / rho))


def test_the_printed_noises_of_xie2023_are_those_of_the_boxes():
    n, d, budget = 1000, 9, Budget(0.5, 1e-3)
    problem, logs, m = Problem(n=n, d=d), math.sqrt(math.log(1000)), 500
    sgd = xie2023.StochasticProximalGradient
    common = {"batch": m, "step_size": 1.0}

    def std(algorithm, multiplier):
        answer = problem.sampled(algorithm.sampling).gradient(algorithm.mean)
        return multiplier / xie2023.gaussian_multiplier(1.0, answer)

    clipped = sgd.clipped(n, threshold=3.0, **common)
    found = std(clipped, xie2023.printed_clipped(clipped, problem, budget))
    assert found == pytest.approx(3 * logs / (m * 0.5))
    kamath = sgd.kamath(n, d, budget, width=2.0, **common)
    found = std(kamath, xie2023.printed_kamath(kamath, problem, budget))
    assert found == pytest.approx(2 * kamath.mean.blocks * math.sqrt(d) * logs / (m * 0.5))
    holland = sgd.holland(n, budget, second_moment=1.0, **common)
    found = std(holland, xie2023.printed_holland(holland, problem, budget))
    assert found == pytest.approx(4 * holland.mean.scale * math.sqrt(2 * d) * logs / (3 * m * 0.5))
