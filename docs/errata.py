# ruff: noqa: T201
"""Shows the privacy errors of the printed papers: `python docs/errata.py`, or with a key of them.

Each function returns lines of text; what privtail does instead is in errata.md.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from scipy.stats import norm

from privtail.algorithms import (
    NetSearch,
    NoisyDescent,
    ProximalGradient,
    StochasticProximalGradient,
)
from privtail.calibration import calibrate
from privtail.robust_means import ClippedMean, SmoothedCatoniMean
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.events import Round
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import PoissonBatches


def epsilon_of(algorithm, multiplier, problem, delta, neighbours="replace_one"):
    """What the algorithm costs with this noise."""
    return cost(algorithm.plan(multiplier, problem), neighbours).epsilon(delta)


def gaussian(noise, delta, times=1):
    """Epsilon of Gaussian releases whose std is ``noise`` sensitivities."""
    answer = Problem(n=1000, d=1).gradient(ClippedMean(1.0))
    event = GaussianNoise(noise * answer.diameter.l2 / answer.radius.l2).event(answer)
    return cost((Round(events=(event,), times=times),), "replace_one").epsilon(delta)


def lower_bound(tail, one, other, delta):
    """Largest log((P(|one Z| > c) - delta) / P(|other Z| > c)) over c; ``tail`` is that of |Z|."""
    c = np.geomspace(min(one, other) / 100, max(one, other) * 100, 4000)
    p, q = tail(c / one), tail(c / other)
    return float(np.max(np.log(np.maximum(p - delta, 1e-300) / np.maximum(q, 1e-300))))


def w20_1():
    """Sample and aggregate: "the top" radii read as the largest."""
    m, epsilon, delta, d = 4_000_000, 1.0, 1e-5, 1
    s = math.isqrt(m)
    beta = epsilon / (4 * (d + math.log(2 / delta)))
    t0, a = (m + s) / 2 + 1, math.ceil(s / beta)
    k = np.arange(math.ceil(m / s) + 2)
    reach = t0 + (k + 1) * s
    # All outputs equal: every radius is 0 up to t = m. One record moves s of them by 1.
    equal = np.where(reach > m, 1.0, 0.0)
    moved = np.where(reach > m, 1.0, np.where(reach > m - s, 1.0, s / a))
    bounds = [2 * float(np.max(rho * np.exp(-beta * k))) for rho in (equal, moved)]
    yield f"smooth bounds of neighbours: {bounds[0]:.2g} and {bounds[1]:.2g} diameters"
    yield f"their ratio: {bounds[1] / bounds[0]:.2g}; allowed: e^beta = {math.exp(beta):.3f}"


def w20_2():
    """Trimmed mean: the printed bound is not smooth."""
    n, m, epsilon, delta, width = 1000, 100, 1.0, 1e-5, 2.0
    t, s = epsilon**2 / 16, epsilon / 4
    scales = [max(spread / (n - 2 * m), math.exp(-m * t) * width) for spread in (0.0, 1000.0)]
    tail = lambda z: 2 * norm.sf(np.arcsinh(z))  # noqa: E731
    found = lower_bound(tail, scales[1] / s, scales[0] / s, delta)
    yield f"n zeros, and n - 1 zeros with one 1000: scales {scales[0]:.3g} and {scales[1]:.3g}"
    yield f"ratio {scales[1] / scales[0]:.0f}, allowed {math.exp(t):.3f}"
    yield f"claimed epsilon {epsilon} at delta {delta}; true: at least {found:.0f}"


def w20_3():
    """Descent on trimmed means: epsilon / sqrt(d T) a call, where epsilon~ / sqrt(d T) is meant."""
    epsilon, delta = 1.0, 1e-5
    rho = epsilon**2 / 2
    spent = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    yield f"claimed epsilon {epsilon} at delta {delta}; by the paper's own conversion: {spent:.2f}"


def w20_4():
    """Smoothed Catoni gradients: the printed closed form (9), evaluated in doubles."""
    c, root = 2 * math.sqrt(2) / 3, math.sqrt(2)
    for beta in (math.log(20), math.log(1000)):
        a = np.geomspace(1e-2, 1e12, 4000)
        b = a / math.sqrt(beta)
        low, high = (root - a) / b, (root + a) / b
        f_low, f_high = norm.cdf(-low), norm.cdf(-high)
        e_low, e_high = np.exp(-low * low / 2), np.exp(-high * high / 2)
        two_pi = math.sqrt(2 * math.pi)
        rest = (
            c * (f_low - f_high)
            - (a - a**3 / 6) * (f_low + f_high)
            + b / two_pi * (1 - a * a / 2) * (e_high - e_low)
            + a * b * b / 2 * (f_high + f_low + (high * e_high + low * e_low) / two_pi)
            + b**3 / (6 * two_pi) * ((2 + low * low) * e_low - (2 + high * high) * e_high)
        )
        value = np.abs(a * (1 - b * b / 2) - a**3 / 6 + rest)
        beyond = a[value > c + 1e-6]
        yield f"beta = {beta:.2f}: |E phi| reaches {value.max():.2g}, the noise is for {c:.4f}"
        yield f"    it is beyond that for gradients of {beyond[0]:.2g} scales and more"


def w19_1():
    """Line 3: rho^2 for rho."""
    steps, delta, problem = 200, 1e-3, Problem(n=10_000, d=5)
    algorithm = ProximalGradient(steps=steps + 1, step_size=1.0, threshold=1.0)
    for epsilon in (0.5, 5.0, 7.0, 10.0):
        root = math.log(1 / delta)
        rho = (math.sqrt(root + epsilon) - math.sqrt(root)) ** 2
        spent = epsilon_of(algorithm, math.sqrt(2 * steps) / rho, problem, delta)
        yield f"claimed epsilon {epsilon}; true {spent:.3g}"


def w19_zhang():
    """The noise quoted for Zhang et al. has no factor T."""
    budget, problem = Budget(0.5, 1e-3), Problem(n=200_000, d=54)
    for steps in (100, 200, 1000):
        algorithm = NoisyDescent(steps=steps, step_size=1.0, threshold=1.0)
        noise = algorithm.quoted_multiplier(budget, over_steps=False)
        spent = epsilon_of(algorithm, noise, problem, 1e-3)
        yield f"T = {steps}: claimed epsilon 0.5; true {spent:.3g}"


def x23_1():
    """Clipped SPGD at T = 5 n^2/m^2."""
    n, delta = 10_000, 1e-4
    algorithm = StochasticProximalGradient.clipped(n, batch=n // 6, threshold=1.0, step_size=0.1)
    for epsilon in (0.5, 1.0, 3.0):
        noise = math.sqrt(math.log(1 / delta)) / epsilon
        spent = [
            epsilon_of(algorithm, noise, Problem(n=n, d=20), delta, near)
            for near in ("zero_out", "replace_one")
        ]
        yield f"claimed epsilon {epsilon}; true {spent[0]:.3g} (zero-out), {spent[1]:.3g} (replace)"


def x23_4():
    """Holland SPGD (and Kamath's with fixed groups) at T = 5 n^2/m^2."""
    n, delta = 10_000, 1e-4
    mean = SmoothedCatoniMean(1.0, 1.5)
    sampling = PoissonBatches((n // 6) / n)
    algorithm = StochasticProximalGradient(mean=mean, steps=180, step_size=0.1, sampling=sampling)
    for epsilon in (0.5, 1.0, 3.0):
        noise = 2 * math.sqrt(math.log(1 / delta)) / epsilon  # in units of the radius of the paper
        spent = [
            epsilon_of(algorithm, noise, Problem(n=n, d=20), delta, near)
            for near in ("zero_out", "replace_one")
        ]
        yield f"claimed epsilon {epsilon}; true {spent[0]:.3g} (zero-out), {spent[1]:.3g} (replace)"


def x23_3():
    """Groups of floor(n/q) cut from the realised batch: one absent record moves every group."""
    q, size = 17, 400
    values = np.full((q, size), -0.5)
    values[0::2, -q:] = 0.5  # tails of even groups
    values[8::2] = 0.5  # even groups from the eighth on are high
    values[1::2, : size // 2] = 0.5  # odd groups are in the middle
    flat = values.reshape(-1)

    def estimate(batch):
        group = len(batch) // q
        sums = [batch[i * group : (i + 1) * group].sum() for i in range(q)]
        return float(np.median(sums)) * q / len(batch)

    moved = abs(estimate(flat) - estimate(flat[:-1]))
    printed = q / len(flat)
    yield f"the median moves by {moved:.3g}; the noise is for {printed:.3g}"
    yield f"that is {moved / printed:.1f} times more, with q = {q} groups"


def x23_54():
    """The one-shot mean (5.4)."""
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        delta = 1e-5
        noise = math.sqrt(math.log(1 / delta)) / epsilon
        yield f"claimed epsilon {epsilon} at delta {delta}; true {gaussian(noise, delta):.3g}"


def t22_1():
    """Lemma 3, the noise of Algorithms 1 and 3, is stated for every epsilon."""
    for epsilon, delta in ((1.0, 1e-5), (10.0, 1e-3), (10.0, 1e-5)):
        noise = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        yield f"claimed epsilon {epsilon} at delta {delta:g}; true {gaussian(noise, delta):.3g}"


def t22_2():
    """Line 8 passes X for X_t: T releases of all data at epsilon each, if strongly convex."""
    epsilon, delta = 1.0, 1e-5
    noise = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    for steps in (1, 10, 40):
        yield f"T = {steps}: claimed epsilon {epsilon}; true {gaussian(noise, delta, steps):.3g}"


def w22():
    """The exponent of the exponential mechanism."""
    n, scale, epsilon = 21, 1.0, 1.0
    printed = worst = 0.0
    for k in range(n):
        laws = []
        for last in (0.0, 1.0):
            y = np.append(np.where(np.arange(n - 1) < k, 1.0, 0.0), last)
            total = np.array([np.sum(np.abs(y - w) >= 1 / scale) * math.log(2) for w in (0.0, 1.0)])
            laws.append([np.exp(-f * epsilon * total / math.log(2)) for f in (1.0, 0.5)])
        ratios = [
            np.abs(np.log(a / a.sum()) - np.log(b / b.sum())).max()
            for a, b in zip(*laws, strict=True)
        ]
        printed, worst = max(printed, ratios[0]), max(worst, ratios[1])
    yield f"claimed epsilon {epsilon}; true {printed:.3f}; with 2 in the exponent {worst:.3f}"
    algorithm = NetSearch(points=2, scale=scale)
    problem = Problem(n=n, d=1)
    m = calibrate(lambda m: algorithm.plan(m, problem), Budget(epsilon))
    yield f"privtail's noise: {m / 2:.4f} of 2 Delta/epsilon"


KEYS = {
    "W20-1": w20_1, "W20-2": w20_2, "W20-3": w20_3, "W20-4": w20_4, "W19-1": w19_1,
    "W19-Zhang": w19_zhang, "X23-1": x23_1, "X23-3": x23_3,
    "X23-4": x23_4, "X23-5.4": x23_54, "T22-1": t22_1, "T22-2": t22_2, "W22": w22,
}  # fmt: skip


def main(keys):
    """Print the lines of these keys, or of all."""
    unknown = [key for key in keys if key not in KEYS]
    if unknown:
        raise SystemExit(f"There is no {unknown[0]}. There are: {', '.join(KEYS)}.")
    for key in keys or KEYS:
        print(f"{key}: {KEYS[key].__doc__}")
        for line in KEYS[key]():
            print(f"    {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
