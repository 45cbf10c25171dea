"""Fits of the default on a curator, and the watched run of the published algorithms."""

from __future__ import annotations

import numpy as np

from privtail.calibration import calibrated
from privtail.default import ScaledDescent, Tuning
from privtail.default.fit import Fit, planned
from privtail.domains import Slopes, Unconstrained
from privtail.losses import SquaredLoss
from privtail.summaries.standardization import Standardization, Target
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from tests.algorithms.conftest import watched

__all__ = ["curated", "identity", "linear", "released", "staged", "watched"]


def linear(n=20_000, d=3, seed=0, sizes=1.0, shift=0.0):
    """Features of heavy tails, a target that is linear in them, and the slopes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, (n, d)) * sizes + shift
    w = np.array([1.0, -1.0, 0.5])[:d] / sizes
    return X, X @ w + 2.0 + rng.standard_t(2.5, n), w


def curated(X, y, **options):
    """A curator of simulated noise with an intercept."""
    options = {
        "budget": Budget(1.0, 1e-6), "intercept": True, "noise": "simulated", "random_state": 0
    } | options  # fmt: skip
    return Curator(X, y, **options)


def released(X, y, loss=None, epsilon=1.0, algorithm=None, domain=None, **options):
    """The result of the default, or of another ``algorithm``."""
    algorithm, loss = algorithm or ScaledDescent(), loss or SquaredLoss()
    curator = curated(X, y, budget=Budget(epsilon, 1e-6), outputs=loss.outputs, **options)
    multiplier = calibrated(curator, lambda m: algorithm.plan(m, curator.problem))
    domain = domain or Unconstrained()
    domain = Slopes(domain=domain) if curator.problem.intercept else domain
    result = algorithm.run(curator, loss, domain, multiplier)
    assert not curator._cursor, "every planned release was made"
    return result


def identity(d, **target):
    """Features that are standardized already."""
    return Standardization(np.ones(d), np.zeros(d), Target(**target))


def staged(stages, X, y, loss=None, *, tuning=None, domain=None, standard=None, **options):
    """The state of a fit after these stages alone.

    Options with the name of an attribute of the fit are set before them. Where no standardization
    is given, features are taken for standardized.
    """
    loss = loss or SquaredLoss()
    before = {name: options.pop(name) for name in [*options] if name in Fit.__dataclass_fields__}
    options = {"budget": Budget(1e30, 1e-6)} | options
    curator = curated(X, y, outputs=loss.outputs, **options)
    curator.open(planned(stages, curator.problem))
    fit = Fit(curator, loss, domain or Unconstrained(), tuning or Tuning())
    fit.standard = standard or identity(curator.problem.d)
    for name, value in before.items():
        setattr(fit, name, value)
    for stage in stages:
        stage.run(fit)
    return fit
