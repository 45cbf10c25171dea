"""A run that is watched: what it drew, so that a naive transcription can be fed the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, softmax

from privtail.algorithms import BoostedAdaSSP, NetSearch
from privtail.calibration import calibrated
from privtail.domains import L1Ball, Slopes, Unconstrained
from privtail.losses import AbsoluteLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event
from privtail.trusted.mechanisms.noise import GaussianNoise, LaplaceNoise
from privtail.trusted.mechanisms.selection import LaplaceMax, NoisyTopK
from privtail.trusted.mechanisms.simulated import SimulatedSampler
from privtail.trusted.opening import Opening
from privtail.trusted.sampling import Sampling
from privtail.trusted.smooth.aggregate import SampleAndAggregate
from privtail.trusted.smooth.trimmed import TrimmedMean


def fits(algorithm, domain) -> bool:
    """Whether the domain has what the algorithm needs."""
    return all(hasattr(domain, name) for name in algorithm.needs)


def suited(algorithm):
    """No domain, or one that the algorithm needs."""
    return next(d for d in (Unconstrained(), L1Ball(radius=2.0)) if fits(algorithm, d))


@dataclass
class Watched:
    """One fit, and the randomness it used."""

    noise: list[np.ndarray] = field(default_factory=list)
    stds: list[float] = field(default_factory=list)
    batches: list[np.ndarray] = field(default_factory=list)
    charged: list[tuple[Sampling, list[Event]]] = field(default_factory=list)
    picks: list[int] = field(default_factory=list)
    curator: Any = None
    multiplier: float = 0.0
    result: Any = None

    def fit(
        self, algorithm, X, y, loss, *, domain=None, intercept=False, epsilon=1.0, delta=1e-5,
        neighbours="replace_one", seed=0, start=None, ledger=None, **mapped,
    ) -> np.ndarray:  # fmt: skip
        if isinstance(algorithm, NetSearch):
            loss = AbsoluteLoss()
        elif isinstance(algorithm, BoostedAdaSSP):
            loss = SquaredLoss()
        outputs = loss.outputs
        domain = suited(algorithm) if domain is None else domain
        intercept = intercept and fits(algorithm, Slopes(domain=domain))
        self.curator = Curator(
            X, y, budget=Budget(epsilon, delta, neighbours), noise="simulated", random_state=seed,
            intercept=intercept, outputs=outputs, ledger=ledger,
            classes={"real": None, "binary": [0, 1]}.get(loss.targets, range(outputs)),
        )  # fmt: skip
        domain = Slopes(domain=domain) if intercept else domain
        self.multiplier = calibrated(
            self.curator, lambda m: algorithm.plan(m, self.curator.problem)
        )
        self.result = algorithm.run(self.curator, loss, domain, self.multiplier, start, **mapped)
        return self.result.w


@pytest.fixture
def watched(monkeypatch, simulated_is_booked) -> Watched:
    """Watch the noise, batches, choices and charges of the fits of this test."""
    seen = Watched()
    release, batch = GaussianNoise.release, Curator._batch
    uniform, charge = Curator.uniform, Opening.charge
    gumbels, choose, laplace = [], NoisyTopK.release, LaplaceNoise.release

    def watch_top(self, values, scale, count):
        """`SimulatedSampler.top`, and what it drew."""
        gumbels.append(self._rng.gumbel(0.0, scale, values.shape))
        return np.argsort(-(values + gumbels[-1]), kind="stable")[:count]

    def watch_choose(self, value, sensitivity, sampler):
        gumbels.clear()
        out = choose(self, value, sensitivity, sampler)
        drawn = gumbels[0] if gumbels else np.zeros(value.shape)
        seen.noise.append(drawn * sensitivity.unit)
        return out

    def watch_maximum(self, value, sensitivity, sampler):
        drawn = np.zeros(value.shape)
        if self.multiplier:
            scale = self.multiplier * sensitivity.radius.linf
            drawn = sampler.laplace(np.zeros_like(value), scale)
        seen.noise.append(drawn * sensitivity.unit)
        return int(np.argmax(value + drawn))

    def watch_laplace(self, value, sensitivity, sampler):
        out = laplace(self, value, sensitivity, sampler)
        seen.noise.append(out - value * sensitivity.unit)
        return out

    def watch_release(self, value, sensitivity, sampler):
        out = release(self, value, sensitivity, sampler)
        seen.noise.append(out - value * sensitivity.unit)
        seen.stds.append(self.multiplier * sensitivity.radius.l2 * sensitivity.unit)
        return out

    def watch_batch(self, sampling, map_):
        opened = batch(self, sampling, map_)
        seen.batches.append(np.arange(self.problem.n)[opened._sample.within(0, self.problem.n)])
        seen.charged.append((sampling, []))
        return opened

    def watch_uniform(self, count):
        seen.picks.append(uniform(self, count))
        return seen.picks[-1]

    def watch_charge(self, event):
        seen.charged[-1][1].append(event)
        return charge(self, event)

    def watch_smooth(kind):
        original = kind.release

        def release(self, values, public, sampler):
            out = original(self, values, public, sampler)
            silent = original(replace(self, multiplier=0.0), values, public, sampler)
            seen.noise.append(out - silent)
            return out

        monkeypatch.setattr(kind, "release", release)

    watch_smooth(TrimmedMean)
    watch_smooth(SampleAndAggregate)
    monkeypatch.setattr(GaussianNoise, "release", watch_release)
    monkeypatch.setattr(LaplaceNoise, "release", watch_laplace)
    monkeypatch.setattr(LaplaceMax, "release", watch_maximum)
    monkeypatch.setattr(NoisyTopK, "release", watch_choose)
    monkeypatch.setattr(SimulatedSampler, "top", watch_top)
    monkeypatch.setattr(Curator, "_batch", watch_batch)
    monkeypatch.setattr(Curator, "uniform", watch_uniform)
    monkeypatch.setattr(Opening, "charge", watch_charge)
    return seen


def problem(kind: str, n: int = 60, d: int = 3, seed: int = 1):
    """Heavy-tailed records (X, y) and the loss they are for."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2.5, (n, d))
    score = X @ np.linspace(1.0, -1.0, d) + 0.5
    if kind == "squared":
        return X, score + rng.standard_t(2.1, n), SquaredLoss()
    if kind == "logistic":
        return X, (score + rng.logistic(size=n) > 0).astype(float), LogisticLoss()
    y = np.digitize(score + rng.normal(size=n), [-0.5, 1.0]).astype(float)
    return X, y, MultinomialLoss(classes=3)


def record_gradient(kind: str, w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    """The gradient of one record in w (D, K), from the formula of its loss."""
    margins = w.T @ x
    if kind == "squared":
        residual = margins - y
    elif kind == "logistic":
        residual = expit(margins) - y
    else:
        residual = softmax(margins) - np.eye(len(margins))[int(y)]
    return np.outer(x, residual)


@dataclass(frozen=True)
class Case:
    """One setting in which a box is compared with its transcription."""

    kind: str = "squared"
    intercept: bool = False
    storage: str = "dense"
    n: int = 60
    d: int = 3

    def records(self):
        X, y, loss = problem(self.kind, self.n, self.d)
        X[np.abs(X) < 0.4] = 0.0
        return X, y, loss

    def stored(self, X):
        return sparse.csr_matrix(X) if self.storage == "csr" else X

    def rows(self, X):
        """The records with their constant feature, for the transcription."""
        return np.column_stack([X, np.ones(len(X))]) if self.intercept else X


CASES = (
    Case(),
    Case(intercept=True),
    Case("logistic"),
    Case("logistic", intercept=True, storage="csr"),
    Case("multinomial", intercept=True),
    Case(storage="csr"),
    Case(n=50, d=1),
)


@pytest.fixture(params=CASES, ids=lambda c: f"{c.kind}-{c.intercept}-{c.storage}-{c.n}x{c.d}")
def case(request) -> Case:
    return request.param


@pytest.fixture
def gradient():
    return record_gradient


@pytest.fixture
def make_problem():
    return problem


@pytest.fixture
def keep_slopes():
    """Apply a map of the slopes and leave the intercept, if there is one, alone."""

    def apply(case: Case, w, change):
        return np.vstack([change(w[:-1]), w[-1:]]) if case.intercept else change(w)

    return apply


@pytest.fixture
def catoni():
    """E phi(a + b sqrt(nu) eta) by the closed form (9) of W20 with 60 digits.

    In doubles it cancels for large a; with 60 digits it does not.
    """
    import mpmath as mp

    def influence(a: float, nu: float) -> float:
        with mp.workdps(60):
            a = mp.mpf(float(a))
            b = abs(a) / mp.sqrt(mp.mpf(nu))
            if b == 0:
                return 0.0
            root, c = mp.sqrt(2), 2 * mp.sqrt(2) / 3
            V_minus, V_plus = (root - a) / b, (root + a) / b
            F_minus, F_plus = mp.ncdf(-V_minus), mp.ncdf(-V_plus)
            E_minus, E_plus = mp.exp(-(V_minus**2) / 2), mp.exp(-(V_plus**2) / 2)
            two_pi = mp.sqrt(2 * mp.pi)
            C = (
                c * (F_minus - F_plus)
                - (a - a**3 / 6) * (F_minus + F_plus)
                + b / two_pi * (1 - a**2 / 2) * (E_plus - E_minus)
                + a * b**2 / 2 * (F_plus + F_minus + (V_plus * E_plus + V_minus * E_minus) / two_pi)
                + b**3 / (6 * two_pi)
                * ((2 + V_minus**2) * E_minus - (2 + V_plus**2) * E_plus)
            )  # fmt: skip
            return float(a * (1 - b**2 / 2) - a**3 / 6 + C)

    return influence
