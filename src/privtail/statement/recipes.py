"""From what a release says of its question back to its sensitivity.

Whoever verifies a statement has n, the rows of a person, and recipes: a question with its public
parameters, then every operation on the answer. They are followed through the core's own lemmas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from privtail.errors import InvalidInput, PrivtailError
from privtail.trusted.events import Recipe
from privtail.trusted.means import Ball, CheckedMean, Interval
from privtail.trusted.problem import Problem
from privtail.trusted.sensitivity import Sensitivity


def followed(problem: Problem, recipe: Recipe) -> Sensitivity:
    """The sensitivity that a recipe leads to.

    Raises
    ------
    InvalidInput
        If the recipe is none.
    """
    try:
        (name, *parameters), *operations = recipe
        answer = _asked(problem, name, parameters)
        for name, *parameters in operations:
            answer = _changed(answer, name, parameters)
    except (TypeError, ValueError, OverflowError, ArithmeticError, PrivtailError):
        raise InvalidInput(
            "No question of privtail has these parameters. Take the file as privtail wrote it."
        ) from None
    return answer


def _asked(problem: Problem, name: str, parameters: list[Any]) -> Sensitivity:
    if name == "mean":
        question, size, blocks, *named = parameters
        return _mean(problem, question, size, CheckedMean(_range(*named), blocks))
    if name == "moments":
        radius, columns = parameters
        return replace(problem, d=columns).moments(radius)
    answers: dict[str, Callable[..., Sensitivity]] = {
        "histogram": problem.histogram,
        "cell counts": problem.cell_counts,
        "column moments": problem.column_moments,
        "derivative norms": problem.derivative_norms,
        "labels": problem.labels,
        "invalid rows": problem.invalid_rows,
    }
    if name not in answers:
        raise InvalidInput(f"There is no question {name!r}. Update privtail.")
    return answers[name](*parameters)


def _mean(problem: Problem, question: str, size: int, mean: CheckedMean) -> Sensitivity:
    """The sensitivity of a mean of ``size`` coordinates."""
    if question == "scores":
        return problem.scores(size, mean)
    if question == "derivatives":
        return replace(problem, outputs=size).derivatives(mean)
    sized = replace(problem, d=size)
    answers: dict[str, Callable[..., Sensitivity]] = {
        "gradient": sized.gradient,
        "means": sized.means,
        "improvement": sized.improvement,
        "separations": sized.separations,
    }
    if question not in answers:
        raise InvalidInput(f"There is no mean of {question!r}. Update privtail.")
    return answers[question](mean)


def _range(kind: str, radius: Any, limit: Any = 1.0, one_signed: Any = False) -> Ball | Interval:
    if kind not in ("ball", "interval"):
        raise InvalidInput(f"There is no range {kind!r}. Update privtail.")
    if kind == "ball":
        return Ball(float(radius))
    return Interval(float(radius), limit=float(limit), one_signed=bool(one_signed))


def _changed(answer: Sensitivity, name: str, parameters: list[Any]) -> Sensitivity:
    """The answer after one operation of `Sensitive`."""
    if name not in ("take", "mirror", "scale", "abs"):
        raise InvalidInput(f"There is no operation {name!r}. Update privtail.")
    changed: Sensitivity = getattr(answer, name)(*parameters)
    return changed
