"""Poisson batches: privacy loss distributions and Renyi DP, computed by `dp_accounting`."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

from privtail.trusted.accounting.bill import BoundedLoss, SampledGaussian, gaussian_guess
from privtail.trusted.accounting.curves import first_below
from privtail.trusted.budget import Neighbours

# Larger epsilons are reported as infinite.
_LARGEST = 1e6


@functools.lru_cache(maxsize=4)
def _distribution(groups: tuple[SampledGaussian | BoundedLoss, ...], near: Neighbours) -> Any:
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import privacy_loss_distribution as pld

    relation = {
        "replace_one": NeighboringRelation.REPLACE_ONE,
        "zero_out": NeighboringRelation.REPLACE_SPECIAL,
    }[near]
    # A twentieth of the loss of one batch keeps the pessimistic rounding below 0.1 % of epsilon.
    spreads = [(g.times, g.spread(near)) for g in groups]
    total_spread = sum(t * s for t, s in spreads)
    step = 0.05 * sum(t * s * s for t, s in spreads) / total_spread if total_spread else 2e-4
    step = max(min(step, 1e-3), max(g.span() for g in groups) / 1e5)
    total = pld.identity(value_discretization_interval=step)
    for g in groups:
        if isinstance(g, SampledGaussian):
            one = pld.from_gaussian_mechanism(
                g.ratio,
                value_discretization_interval=step,
                sampling_prob=g.rate,
                neighboring_relation=relation,
            )
        else:
            bins = math.ceil(g.epsilon / step)
            mass, odds = 1 - g.delta, math.exp(-bins * step)
            one = pld.PrivacyLossDistribution.create_from_rounded_probability(
                {bins: mass / (1 + odds), -bins: mass * odds / (1 + odds)}, g.delta, step
            )
        total = total.compose(one.self_compose(g.times) if g.times > 1 else one)
    return total


@dataclass(frozen=True)
class PrivacyLoss:
    """The composed privacy loss distribution of Poisson batches and of what is beside them.

    Formal guarantee
    ----------------
    A Poisson batch of a Gaussian with ``ratio`` = std / radius is dominated by the pair (1 - q)
    N(0, 1) + q N(+-1/ratio, 1) against N(0, 1) under zero-out, and by the pair with shifts of
    opposite sign under replace-one; dominating pairs compose adaptively (Zhu, Dong, Wang 2022).
    (epsilon, delta)-DP releases enter through their own dominating pair (Kairouz, Oh, Viswanath
    2015). Losses are rounded pessimistically ("connect the dots", Doroshenko et al. 2022); the
    rounding of the Fourier transforms is covered by a guard on delta of 1e-15 per batch and
    1e-12 in all, below which no delta can be certified.
    """

    groups: tuple[SampledGaussian | BoundedLoss, ...]
    neighbours: Neighbours
    theorem: str = field(default="PLD (dp_accounting)", init=False)

    @property
    def guard(self) -> float:
        """The addition to every delta for rounding errors."""
        return 1e-12 + 1e-15 * sum(g.times for g in self.groups)

    @property
    def _hopeless(self) -> bool:
        return gaussian_guess(self.groups, self.neighbours) > math.sqrt(_LARGEST)

    def delta(self, epsilon: float) -> float:
        """The hockey-stick divergence and the guard."""
        if self._hopeless:
            return 1.0
        raw = float(_distribution(self.groups, self.neighbours).get_delta_for_epsilon(epsilon))
        return min(1.0, max(raw, 0.0) * (1 + 1e-12) + self.guard)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - instances are small, equal ones share
    def epsilon(self, delta: float) -> float:
        """The smallest epsilon whose delta, guard included, is small enough."""
        if delta >= 1:
            return 0.0
        if delta <= self.guard or self._hopeless or self.delta(_LARGEST) > delta:
            return math.inf
        start = 1e-3 + gaussian_guess(self.groups, self.neighbours)
        return first_below(self.delta, delta, start, 1e-6)


@dataclass(frozen=True)
class Renyi:
    """Renyi DP of Poisson batches of Gaussians under zero-out, beside a rho-zCDP remainder.

    Formal guarantee
    ----------------
    Mironov, Talwar, Zhang 2019 for the sampled Gaussian at every order; Renyi divergences add;
    conversion by Canonne, Kamath, Steinke 2020.
    """

    groups: tuple[SampledGaussian, ...]
    rho: float
    theorem: str = field(default="RDP", init=False)

    @functools.cached_property
    def _accountant(self) -> Any:
        import dp_accounting as dp
        from dp_accounting.rdp import RdpAccountant

        # Whole orders have a finite sum; the series of fractional ones may not converge.
        accountant = RdpAccountant(
            orders=[*range(2, 65), *range(72, 257, 8), 512, 1024, 4096],
            neighboring_relation=dp.NeighboringRelation.ADD_OR_REMOVE_ONE,
        )
        for g in self.groups:
            event = dp.PoissonSampledDpEvent(g.rate, dp.GaussianDpEvent(g.ratio))
            accountant.compose(event, g.times)
        accountant.compose(dp.ZCDpEvent(rho=self.rho))
        return accountant

    def epsilon(self, delta: float) -> float:
        """The smallest over the orders, rounded up."""
        if delta <= 0:
            return math.inf
        return float(self._accountant.get_epsilon(delta * (1 - 1e-12))) * (1 + 1e-9)
