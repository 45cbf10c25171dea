"""Shrinkage of noisy slopes by empirical Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

Doubles = NDArray[np.float64]

ROUNDS = 200
"""Number of EM iterations, which is enough for convergence."""
CERTAIN = float(np.finfo(np.float64).max) ** 0.2
"""Slopes and noise are clipped at this, in units of a median noise: 4th powers stay finite."""


def probabilities(slopes: Doubles, deviations: Doubles, prior: float) -> Doubles:
    """The posterior probability that each slope is nonzero (Johnstone and Silverman 2004).

    The prior is a mixture: a slope is zero with probability 1 - p, and normal around zero with
    probability p. A released slope also has normal noise. p and the prior variance are estimated by
    EM. It starts with p = 1/2 and the variance mean(slope^2 - noise^2), or a tenth of mean(noise^2)
    if that is more, because EM does not leave zero. If no slope is zero, p is near 1.

    Parameters
    ----------
    slopes : (d, K).
    deviations : (d,) standard deviations of their noise; a slope without noise has probability 1.
    prior : the Beta prior of p counts like ``prior`` / (number of slopes) nonzero slopes, and half
        a zero slope, because few slopes are little evidence of p.

    Returns
    -------
    (d, K) in [0, 1].
    """
    result = np.ones_like(slopes)
    noisy = deviations > 0
    if not noisy.any():
        return result
    unit = float(np.median(deviations[noisy]))
    noise = np.clip(deviations[noisy, None] / unit, 1 / CERTAIN, CERTAIN)
    squares = np.clip(slopes[noisy] / unit, -CERTAIN * noise, CERTAIN * noise) ** 2
    noise = noise**2
    prior /= squares.size
    p, added = 0.5, max(float((squares - noise).mean()), 0.1 * float(noise.mean()))
    for _ in range(ROUNDS):
        odds = 0.5 * (squares / noise - squares / (noise + added) - np.log1p(added / noise))
        posterior = expit(odds + logit(p))
        p = (float(posterior.sum()) + prior) / (squares.size + prior + 0.5)
        shrunk = added / (added + noise)
        variance = shrunk**2 * squares + shrunk * noise
        added = float(np.sum(posterior * variance) / posterior.sum())
    result[noisy] = posterior
    return result
