"""The plan of most descents: rounds that each release one noisy gradient."""

from __future__ import annotations

from privtail.trusted.events import Plan, Round
from privtail.trusted.means import RobustMean
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Sampling


def gradient_rounds(
    sampling: Sampling, steps: int, mean: RobustMean, multiplier: float, problem: Problem
) -> Plan:
    """``steps`` batches of ``sampling``, with one Gaussian release of a gradient each."""
    event = GaussianNoise(multiplier).event(problem.sampled(sampling).gradient(mean))
    return (Round(sampling=sampling, events=(event,), times=steps),)
