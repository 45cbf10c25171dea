"""Which of many noisy slopes are more than noise: empirical Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from privtail.domains import L1, L2, Domain, ElasticNet, Unconstrained, of_slopes

Doubles = NDArray[np.float64]

ROUNDS = 200
"""Steps of expectation and maximization; the last ones change nothing that is seen."""

CERTAIN = float(np.finfo(np.float64).max) ** 0.2
"""So many deviations away there is no doubt, and fourth powers do not overflow."""

SEPARATE = Unconstrained | L1 | L2 | ElasticNet
"""Domains where any slope may become 0, whatever the others are."""


def may_be_zero(domain: Domain) -> bool:
    """Whether slopes of this domain may become 0 one by one."""
    return isinstance(of_slopes(domain), SEPARATE)


def probabilities(slopes: Doubles, deviations: Doubles, belief: float) -> Doubles:
    """How likely each slope is more than noise (as Johnstone and Silverman 2004).

    Slopes are normal around zero with the variance of their noise, or with a part of probability p
    with a larger one. p and what is added to the variance are the most likely ones, by expectation
    and maximization. These begin at one half and at what the squares exceed their noise by, or at a
    tenth of the noise: at zero they would stay. Where all slopes have something to say, p is near 1
    and nothing changes.

    Parameters
    ----------
    slopes : (d, K).
    deviations : (d,) of their noise; slopes without noise are certain.
    belief : over the number of slopes: of so many p takes before any is seen that they are real.
        Few slopes say little of how many are.

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
