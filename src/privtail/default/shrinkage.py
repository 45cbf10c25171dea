"""Shrinkage of noisy slopes by empirical Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Doubles = NDArray[np.float64]

ROUNDS = 200
"""Steps of expectation and maximization; by then they have converged."""

CERTAIN = float(np.finfo(np.float64).max) ** 0.2
"""Slopes and noise are clipped to so many units, so that fourth powers do not overflow."""


def probabilities(slopes: Doubles, deviations: Doubles, belief: float) -> Doubles:
    """The posterior probability of each slope to be more than noise (Johnstone and Silverman 2004).

    The model is a mixture of two normal laws around zero. With probability 1 - p a slope is noise
    and has the variance of its noise; with probability p it is real and has a larger variance. p
    and the added variance are estimated by expectation and maximization. They begin at 1/2 and at
    the mean of the squares less their noise, but at no less than a tenth of the noise: from zero
    they would not move. If all slopes are real, p is near 1 and nothing changes.

    Parameters
    ----------
    slopes : (d, K).
    deviations : (d,) standard deviations of their noise; a slope without noise has probability 1.
    belief : the prior of p counts like ``belief`` / (number of slopes) real slopes, and half a
        slope that is noise. Few slopes say little of p.

    Returns
    -------
    (d, K) in [0, 1].
    """
    sure = np.ones_like(slopes)
    noisy = deviations > 0
    if not noisy.any() or slopes.size == 0:
        return sure
    unit = float(np.median(deviations[noisy]))
    noise = np.clip(deviations[noisy, None] / unit, 1 / CERTAIN, CERTAIN)
    squares = np.clip(slopes[noisy] / unit, -CERTAIN * noise, CERTAIN * noise) ** 2
    noise = noise**2
    belief /= squares.size
    p, added = 0.5, max(float((squares - noise).mean()), 0.1 * float(noise.mean()))
    for _ in range(ROUNDS):
        odds = 0.5 * (squares / noise - squares / (noise + added) - np.log1p(added / noise))
        likely = expit(odds + logit(p))
        p = (float(likely.sum()) + belief) / (squares.size + belief + 0.5)
        part = added / (added + noise)
        posterior = part**2 * squares + part * noise
        added = float(np.sum(likely * posterior) / likely.sum())
    sure[noisy] = likely
    return sure
