"""private_mean: the boxes (X23-3, T22-1, T22-3, Holland), its promises, and hostile columns."""

from __future__ import annotations

import math
from collections import deque

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from privtail import Ledger, open_table, private_mean
from privtail.algorithms.coin_press import CoinPress
from privtail.algorithms.mean_thresholds import (
    median_of_means_threshold,
    projection_threshold,
    truncation_threshold,
)
from privtail.calibration import calibrated
from privtail.errors import BudgetExceeded, InvalidInput
from privtail.influence import catoni_bound
from privtail.mean.private import METHODS, _Mean
from privtail.trusted.accountants import cost
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.dataset import Dataset

SIMULATED = {"noise": "simulated", "random_state": 1}
every_method = pytest.mark.parametrize("method", METHODS)
every_sparse_method = pytest.mark.parametrize("method", [m for m in METHODS if m != "coinpress"])


@pytest.fixture
def deals(monkeypatch):
    """The public deals into blocks of the means of this test."""
    seen = {}
    original = Dataset.deal

    def deal(self, count):
        dealt = original(self, count)
        seen[count] = dealt.labels(0, self.records.n)
        return dealt

    monkeypatch.setattr(Dataset, "deal", deal)
    return seen


# --- the boxes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 4, 5])
@pytest.mark.parametrize("method", ["clamped", "truncated"])
@pytest.mark.parametrize("n", [50, 63])
def test_medians_of_means(watched, deals, method, blocks, n):
    """X23 Algorithm 3 and T22 Algorithm 3 with groups by record id and the public divisor."""
    x = np.random.default_rng(2).standard_t(2.5, (n, 3)) + 1.0
    found = private_mean(
        x, epsilon=5.0, method=method, blocks=blocks, threshold=1.3, centre=0.5, **SIMULATED
    )
    (z,), labels = watched.noise, deals[blocks]
    for j in range(3):
        groups = [0.0] * blocks
        for i in range(n):
            value = x[i, j] - 0.5
            if method == "clamped":
                value = min(max(value, -1.3), 1.3)
            elif abs(value) > 1.3:
                value = 0.0
            groups[labels[i]] += blocks / n * value
        assert found.value[j] == pytest.approx(0.5 + np.median(groups) + z[j], abs=1e-6)
    assert found.noise_std == pytest.approx(np.full(3, watched.stds[0]))


def test_holland(watched, catoni):
    x = np.random.default_rng(2).standard_t(2.5, 50)
    found = private_mean(x, epsilon=5.0, method="catoni", threshold=4.0, smoothing=2.0, **SIMULATED)
    expected = 4.0 / 50 * sum(catoni(v / 4.0, 2.0) for v in x)
    assert float(found) == pytest.approx(expected + watched.noise[0][0], abs=4e-6)


def test_clipped_rows(watched):
    x = np.random.default_rng(2).standard_t(2.5, (50, 3))
    found = private_mean(x, epsilon=5.0, threshold=1.5, centre=[0.1, 0.2, 0.3], **SIMULATED)
    expected = np.zeros(3)
    for row in x - [0.1, 0.2, 0.3]:
        expected += row / max(1.0, np.linalg.norm(row) / 1.5) / 50
    assert np.abs(found.value - (expected + [0.1, 0.2, 0.3] + watched.noise[0])).max() < 1e-6


@pytest.mark.parametrize(("groups", "n"), [(1, 50), (5, 63), (8, 64)])
def test_kamath_singhal_ullman(watched, groups, n):
    """Algorithm 2: the median of group means that are noisy already; groups cost what one costs."""
    x = np.random.default_rng(2).standard_t(2.5, (n, 3)) + 1.0
    found = private_mean(
        x, epsilon=5.0, method="ksu", blocks=groups, threshold=1.3, centre=0.5, **SIMULATED
    )
    assert sorted(np.concatenate(watched.batches)) == list(range(n))
    noisy = []
    for group, z in zip(watched.batches, watched.noise, strict=True):
        values = np.clip((x[group] - 0.5) / 1.3, -1, 1)
        noisy.append(values.sum(axis=0) * groups / n + z)
    assert found.value == pytest.approx(0.5 + 1.3 * np.median(noisy, axis=0), abs=1e-6)
    once = private_mean(x, epsilon=5.0, method="clamped", threshold=1.3, **SIMULATED)
    plan = found.privacy_.plan
    assert cost(plan, "replace_one").mu == pytest.approx(once.privacy_.cost.mu, rel=1e-4)
    assert watched.stds[0] * 1.3 == pytest.approx(groups * once.noise_std[0], rel=1e-3)


def test_noise_before_the_median_is_less_than_noise_after_it():
    x = np.random.default_rng(2).standard_t(2.5, 20_000)
    arguments = {"epsilon": 0.5, "threshold": 10.0, "blocks": 15}
    before, after = (
        [
            float(private_mean(x, method=method, noise="simulated", random_state=seed, **arguments))
            for seed in range(40)
        ]
        for method in ("ksu", "clamped")
    )
    assert np.std(before) < 0.5 * np.std(after)


@pytest.mark.parametrize("d", [1, 4])
def test_coinpress(watched, d):
    """MVM with a gamma for deviations of 1: clip, noise, re-centre, three times."""
    n, R = 400, 3.0
    x = np.random.default_rng(2).standard_t(3, (n, d)) + 4.0
    found = private_mean(x, epsilon=5.0, method="coinpress", threshold=R, centre=2.0, **SIMULATED)
    length = math.sqrt(d + 2 * math.sqrt(d * math.log(100)) + 2 * math.log(100))
    z, c, r = (x - 2.0) / R, np.zeros(d), 2 * math.sqrt(d)
    total = cost(found.privacy_.plan, "replace_one").mu
    for share, noise in zip((0.1, 0.2, 0.7), watched.noise, strict=True):
        m = 2 / total / math.sqrt(share)
        gamma = max(length, math.sqrt(d / (4 * m * math.sqrt(d) / n)))
        B = r + gamma
        shifted = z - c
        shifted *= np.minimum(1, B / np.linalg.norm(shifted, axis=1))[:, None]
        sd = m * B / n  # the paper's 2 B/(n sqrt(2 rho)) with mu = 2/m
        c = c + shifted.mean(axis=0) + noise
        r = math.sqrt(1 / n + sd**2) * length + d / (4 * gamma)
    assert found.value == pytest.approx(2.0 + R * c, abs=1e-5)
    assert found.noise_std == pytest.approx(np.full(d, R * sd), rel=1e-5)


def test_coinpress_is_refused_where_it_cannot_centre_and_costs_nothing():
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    x = np.ones((100, 2))
    for wrong in ({"x": sparse.csr_matrix(x)}, {"blocks": 3}):
        with pytest.raises(InvalidInput, match="clipped"):
            private_mean(
                **({"x": x, "epsilon": 0.5, "method": "coinpress", "ledger": ledger} | wrong)
            )
    assert ledger.entries() == ()


def test_a_wide_prior_costs_coinpress_little():
    """Its point: the last ball is small however large the first one was."""
    x = np.random.default_rng(2).normal(3.0, 1.0, (50_000, 1))
    stds = {}
    for radius in (5.0, 500.0):
        curator = Curator(x, budget=Budget(1.0, 1e-6), noise="simulated", random_state=1)
        press = CoinPress(radius=radius)
        multiplier = calibrated(curator, lambda m, p=press, c=curator: p.plan(m, c.problem))
        mean, stds[radius], _ = press.run(curator, multiplier, np.ones(1), np.zeros(1))
        assert abs(mean[0] - 3.0) < 4 * stds[radius][0] + 0.02
    assert stds[500.0] < 1.5 * stds[5.0]
    clipped = private_mean(x, epsilon=1.0, method="clipped", threshold=500.0, **SIMULATED)
    assert stds[500.0] < 0.2 * clipped.noise_std


def test_the_threshold_of_theorem_3():
    """T22 Algorithm 3: m = 4 log(2 d/xi) and the tau at which both terms are equal."""
    n, d, u, v, epsilon, delta, xi = 50_000, 5, 3.0, 0.5, 0.5, 1e-5, 0.01
    tau, m = median_of_means_threshold(
        n, d, epsilon, delta, moment=u, order=v, failure_probability=xi
    )
    assert m == round(4 * math.log(2 * d / xi))
    noise = tau * (math.sqrt(d) + math.sqrt(math.log(1 / xi))) * math.log(d / xi)
    noise *= math.sqrt(math.log(1 / delta)) / (epsilon * n)
    assert u / tau**v == pytest.approx(noise)
    x = np.random.default_rng(0).standard_t(1.8, (n, d))
    found = private_mean(
        x, epsilon=epsilon, delta=delta, method="truncated", threshold=tau, blocks=m, **SIMULATED
    )
    assert np.isfinite(found.value).all()
    assert median_of_means_threshold(3, 1, 1.0, 1e-5, moment=1.0)[1] == 3


@pytest.mark.parametrize("k", [2.0, 4.0])
def test_the_radius_of_kamath_singhal_ullman(k):
    """4 sqrt(d)/alpha^(1/(k-1)) at the alpha with n = d/(sqrt(rho) alpha^(k/(k-1)))."""
    n, d, rho = 100_000, 6, 0.03
    alpha = (d / (math.sqrt(rho) * n)) ** ((k - 1) / k)
    expected = 4 * math.sqrt(d) / alpha ** (1 / (k - 1))
    assert projection_threshold(n, d, rho, order=k) == pytest.approx(expected)
    assert projection_threshold(1, 50, 1e-4) == 4 * math.sqrt(50)
    with pytest.raises(InvalidInput):
        projection_threshold(n, d, rho, order=1.0)


def test_the_threshold_of_t22():
    """B = (u n eps / (log(1/xi) sqrt(log(1.25/delta))))^(1/(1+v)), and the noise is no larger."""
    n, u, v, epsilon, delta, xi = 10_000, 3.0, 0.5, 0.5, 1e-5, 0.01
    B = (u * n * epsilon / (math.log(1 / xi) * math.sqrt(math.log(1.25 / delta)))) ** (1 / (1 + v))
    found = truncation_threshold(n, epsilon, delta, moment=u, order=v, failure_probability=xi)
    assert found == pytest.approx(B)
    x = np.random.default_rng(0).standard_t(1.8, n)
    estimate = private_mean(
        x, epsilon=epsilon, delta=delta, method="truncated", threshold=found, **SIMULATED
    )
    printed = math.sqrt(8 * B**2 / (n**2 * epsilon**2) * math.log(1.25 / delta))
    assert 0.5 * printed < estimate.noise_std < printed


# --- accuracy with nothing but a budget --------------------------------------------------------

LAWS = {
    "gaussian": (lambda rng, n: rng.normal(3.0, 2.0, n), 3.0, 4.0),
    "lognormal": (lambda rng, n: rng.lognormal(0, 1.0, n), math.exp(0.5), (math.e - 1) * math.e),
    "pareto": (lambda rng, n: rng.pareto(2.5, n), 1 / 1.5, 2.5 / (1.5**2 * 0.5)),
    "student": (lambda rng, n: rng.standard_t(2.5, n) - 1, -1.0, 5.0),
}
"""Draws, mean and variance."""


def reach_of(estimate):
    """How far the mean could see: its noise over that planned for a reach of one."""
    (event,) = estimate.privacy_.plan[-1].events
    return estimate.noise_std / (event.scale * event.unit)


@every_method
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.inf])
def test_error_is_noise_sampling_and_bias(method, law, epsilon):
    """Within 4 standard deviations of noise and of sampling, and the bias of the method.

    v = E (x - c)^2 <= 2 Var x, since a median is within a deviation of the mean, and E of what a
    reach s loses is at most v/(4 s) clipped, v/s truncated and v (1 + 1/beta)/(2 s) for Catoni's.
    """
    draw, mean, variance = LAWS[law]
    n = 20_000
    x = draw(np.random.default_rng(7), n)
    found = private_mean(x, epsilon=epsilon, method=method, **SIMULATED)
    bias = 1e-3
    if epsilon < math.inf:
        loss = {"truncated": 1.0, "catoni": (1 + 1 / 3) / 2}.get(method, 0.25)
        bias = 2 * variance * loss / reach_of(found)
    allowed = 4 * (found.noise_std + x.std() / math.sqrt(n)) + bias
    assert found.reliable
    assert abs(float(found) - mean) < allowed
    assert (found.noise_std == 0) == math.isinf(epsilon)
    assert found.noise_std < math.sqrt(variance) / (2 if epsilon < 1 else 10)
    assert allowed < (2.0 if epsilon < 1 else 0.5) * math.sqrt(variance)


@every_method
def test_the_stated_noise_is_the_noise(method, watched):
    """What is released is centre + scale x noisy mean: the noise of a column follows its scale."""
    sizes = np.logspace(-2, 2, 32)
    x = np.random.default_rng(3).normal(size=(20_000, 32)) * sizes
    found = private_mean(x, epsilon=1.0, method=method, threshold=5.0, **SIMULATED)
    unit = {"ksu": 5 * math.sqrt(math.pi / 2 / (14 + math.pi / 2)), "coinpress": 5}.get(method, 1)
    assert found.noise_std == pytest.approx(np.full(32, unit * watched.stds[-1]))
    found = private_mean(x, epsilon=5.0, method=method, **SIMULATED)
    assert found.reliable.all()
    assert np.ptp(np.log(found.noise_std / sizes)) < math.log(8)
    drawn = watched.noise[-1] / watched.stds[-1]
    assert 0.4 < drawn.std() < 2.0


@pytest.mark.parametrize("method", ["clipped", "catoni"])
def test_noise_is_never_taken_for_a_tail(method):
    x = np.random.default_rng(3).normal(3.0, 2.0, 2_000)
    stds = [
        private_mean(x, epsilon=1.0, method=method, noise="simulated", random_state=s).noise_std
        for s in range(70)
    ]
    assert max(stds) < 10 * np.median(stds)


@every_method
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3, 1e6])
def test_units_do_not_matter(method, size):
    """A factor that is no power of two moves the cells of the histogram, nothing else."""
    x = np.random.default_rng(4).standard_t(2.5, 20_000) + 1
    one, other = (private_mean(s * x, epsilon=1.0, method=method, **SIMULATED) for s in (1, size))
    assert other.reliable
    assert 1 / 3 < other.noise_std / size / one.noise_std < 3
    assert abs(float(other) / size - float(one)) < 5 * (one.noise_std + other.noise_std / size)
    exact, scaled = (
        private_mean(s * x, epsilon=math.inf, method=method, **SIMULATED) for s in (1, 1024.0)
    )
    assert float(scaled) == pytest.approx(1024 * float(exact), rel=1e-6)


@every_method
@pytest.mark.parametrize("shift", [-1e6, 1e6])
def test_far_from_zero_the_error_is_relative(method, shift):
    """Cells are powers of two: a far column costs noise in proportion to its distance."""
    x = np.random.default_rng(4).standard_t(2.5, 20_000) + shift
    found = private_mean(x, epsilon=1.0, method=method, **SIMULATED)
    assert abs(float(found) - shift) < 4 * found.noise_std
    assert found.noise_std < 0.01 * abs(shift)


NARROW = {
    "years of birth": lambda rng, n, d: np.round(rng.normal(1965, 15, (n, d))),
    "1e4 +- 1": lambda rng, n, d: rng.normal(1e4, 1, (n, d)),
    "units": lambda rng, n, d: (1 + rng.normal(size=(n, d))) * 10.0 ** rng.uniform(-6, 6, d),
}


@pytest.mark.parametrize("law", NARROW)
@pytest.mark.parametrize(("n", "d"), [(1_000, 3), (2_000, 20)])
def test_columns_far_from_zero_have_means(law, n, d):
    """Of 360 such tables none held a mean that was off by a deviation."""
    rng = np.random.default_rng(11)
    off, reliable = [], []
    for seed in range(60 // d):
        x = NARROW[law](rng, n, d)
        found = private_mean(x, epsilon=0.5, noise="simulated", random_state=seed)
        off.append(np.abs(found.value - x.mean(axis=0)) / x.std(axis=0))
        reliable.append(found.reliable)
    assert np.sum(np.array(off) > 1.0) < 4
    assert np.mean(reliable) > 0.9


def test_a_mean_that_was_not_found_is_said_to_be_so():
    """n times the Gaussian-DP parameter is 5.5: found or not, it is never off silently."""
    rng = np.random.default_rng(12)
    silent = 0
    for seed in range(40):
        x = 1e4 + rng.normal(size=(200, 2))
        found = private_mean(x, epsilon=0.1, noise="simulated", random_state=seed)
        notes = [one for one in found.privacy_.notes if "lie far from all others" not in one]
        assert bool(notes) >= (not found.reliable.all())
        silent += bool(np.abs(found.value - 1e4).max() > 5) and not notes
    assert silent == 0
    sure = private_mean(x, epsilon=0.1, threshold=2.0, centre=1e4, **SIMULATED)
    assert sure.privacy_.notes == ()


def test_values_beyond_the_cells_are_not_found_and_small_ones_are_zero_to_them():
    x = np.random.default_rng(0).normal(3, 1, 20_000)
    large, small = (private_mean(size * x, epsilon=1, **SIMULATED) for size in (1e30, 1e-60))
    assert not large.reliable
    assert "Divide a column of such a size" in large.privacy_.notes[0]
    assert not small.reliable
    assert "only zeros were detected above the noise" in small.privacy_.notes[0]
    assert list(small.conf_int()) == [-math.inf, math.inf]


# --- shapes, containers, promises --------------------------------------------------------------


@every_method
def test_containers_agree(method):
    x = np.random.default_rng(5).lognormal(size=(400, 2))
    whole = private_mean(x, epsilon=1.0, method=method, **SIMULATED)
    assert whole.value.shape == whole.noise_std.shape == whole.reliable.shape == (2,)
    for other in (
        pd.DataFrame(x, columns=["a", "b"]),
        {"a": x[:, 0].tolist(), "b": deque(x[:, 1].tolist())},
        {"a": x[:, 0], "b": x[:, 1]},
        np.asfortranarray(x),
    ):
        again = private_mean(other, epsilon=1.0, method=method, **SIMULATED)
        assert np.allclose(again.value, whole.value, rtol=1e-9)
    column = x[:, 0]
    one = private_mean(column, epsilon=1.0, method=method, **SIMULATED)
    assert isinstance(one.value, float)
    assert float(one) == one.value == np.asarray(one)
    for other in (column.tolist(), pd.Series(column), column[:, None]):
        again = private_mean(other, epsilon=1.0, method=method, **SIMULATED)
        assert np.ravel(again.value) == pytest.approx([one.value])


def test_categories_beside_numbers(tmp_path):
    """Columns that encode a category are within 0 and 1 by declaration: nothing is looked for."""
    rng, n = np.random.default_rng(2), 4_000
    frame = pd.DataFrame(
        {"a": rng.normal(5, 1, n), "kind": np.where(rng.random(n) < 0.3, "u", "v")}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = open_table(tmp_path / "t.csv", categories={"kind": ["u", "v"]})
    found = private_mean(table, epsilon=2, **SIMULATED)
    assert found.reliable.all()
    true = [frame["a"].mean(), *(np.mean(frame["kind"] == kind) for kind in "uv")]
    assert np.abs(found.value - true).max() < 0.1


@every_sparse_method
def test_sparse_columns_around_zero(method):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4_000, 3)) * (rng.random((4_000, 3)) < 0.6)
    dense, csr = (
        private_mean(v, epsilon=1.0, method=method, **SIMULATED) for v in (x, sparse.csr_matrix(x))
    )
    assert np.abs(csr.value - x.mean(axis=0)).max() < 0.1
    assert np.abs(csr.value - dense.value).max() < 0.1


@every_sparse_method
def test_sparse_columns_far_from_zero(method):
    x = np.random.default_rng(6).normal(100.0, 1.0, (4_000, 1))
    found = private_mean(sparse.csr_matrix(x), epsilon=1.0, method=method, **SIMULATED)
    assert abs(found.value[0] - 100) < 5 * found.noise_std[0]


@pytest.mark.usefixtures("simulated_is_booked")
def test_statement_ledger_and_refusals(capsys):
    x = np.random.default_rng(5).lognormal(size=100)
    ledger = Ledger(epsilon=1.0, delta=1e-5)
    estimate = private_mean(x, epsilon=0.6, delta=1e-6, ledger=ledger, **SIMULATED)
    assert estimate.privacy_.cost.epsilon(1e-6) <= 0.6
    assert math.isinf(estimate.privacy_.spent)
    assert "simulated" in estimate.privacy_.headline.lower()
    assert len(ledger.entries()) == 1
    with pytest.raises(BudgetExceeded):
        private_mean(x, epsilon=0.6, delta=1e-6, ledger=ledger, **SIMULATED)
    for wrong in ({"method": "median"}, {"blocks": 0}, {"blocks": 101}, {"smoothing": 0.0}):
        with pytest.raises(InvalidInput):
            private_mean(x, epsilon=0.1, ledger=ledger, **({"method": "catoni"} | wrong))
    assert len(ledger.entries()) == 1
    free = private_mean(x, epsilon=math.inf, **SIMULATED)
    assert free.privacy_.headline.startswith("NOT PRIVATE")
    assert private_mean(x, epsilon=math.inf).privacy_.headline.startswith("NOT PRIVATE")
    true = private_mean(x, epsilon=0.4, delta=1e-6, threshold=1.0)
    assert true.privacy_.private
    assert 0.39 < true.privacy_.spent <= 0.4
    assert capsys.readouterr() == ("", "")


@every_method
@pytest.mark.parametrize("neighbours", ["replace_one", "zero_out"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_planned_is_spent(watched, method, neighbours, epsilon):
    x = np.random.default_rng(5).lognormal(size=(200, 2))
    estimate = private_mean(
        x, epsilon=epsilon, delta=1e-5, method=method, neighbours=neighbours, **SIMULATED
    )
    charged = [e.question for _, events in watched.charged for e in events]
    plan = estimate.privacy_.plan
    assert charged == [e.question for r in plan for _ in range(r.times) for e in r.events]
    assert 0.99 * epsilon < estimate.privacy_.cost.epsilon(1e-5) <= epsilon


@every_method
@pytest.mark.parametrize("noise", ["exact", "simulated"])
def test_the_noise_has_the_stated_size(method, noise):
    x = np.zeros((100, 400))
    found = private_mean(x, epsilon=1.0, method=method, threshold=1.0, noise=noise, random_state=1)
    # Five standard errors; half or twice the noise is far outside.
    assert abs(np.std(found.value / found.noise_std) - 1) < 5 / math.sqrt(2 * 400)


PRESENT = {
    "missing": lambda x, rng: {"x": np.where(rng.random(len(x)) < 0.4, np.nan, x)},
    "beyond max_rows": lambda x, rng: {
        "x": x, "groups": rng.integers(0, len(x) // 10, len(x)), "max_rows": 3
    },
    "nobody's": lambda x, rng: {
        "x": x, "groups": np.where(rng.random(len(x)) < 0.9, None, np.arange(len(x))), "max_rows": 1
    },
}  # fmt: skip


@every_method
@pytest.mark.parametrize("absent", PRESENT)
def test_rows_that_do_not_count_do_not_pull_a_mean(method, absent):
    """As rows at the centre they would move it by .12 (missing), .21 and .28."""
    rng = np.random.default_rng(6)
    given = PRESENT[absent](rng.exponential(size=50_000), rng)
    found = private_mean(**given, epsilon=4.0, method=method, **SIMULATED)
    counted = {"missing": 0.6, "beyond max_rows": 0.3, "nobody's": 0.1}[absent]
    assert abs(float(found) - 1) < min(2 * found.noise_std + 0.03, 0.16)
    assert found.reliable
    note, _ = found.privacy_.notes
    said = int(note.split()[1].replace(",", "")) / 50_000
    assert said == pytest.approx(counted, rel=0.05)


def test_a_mean_says_how_many_far_rows_noise_may_hide():
    """Twice as many as it says, six deviations of a count, show; a third seldom do. Fixed seeds."""
    rows, held = None, {1 / 3: 0, 2.0: 0}
    for seed in range(6):
        for times in held:
            x = np.random.default_rng(seed).normal(139, 4, 20_000)
            x[: round(times * (rows or 200))] = -999
            found = private_mean(x, epsilon=0.5, noise="simulated", random_state=seed)
            said = found.privacy_.notes[-1]
            assert "lie far from all others" in said
            assert rows in (None, int(said.split()[4]))
            rows = int(said.split()[4])
            low, high = found.conf_int(sampling=False)
            held[times] += low <= x.mean() <= high
    assert held[2.0] == 6
    assert held[1 / 3] <= 2
    assert "a few times as many if these differ in size" in said
    assert private_mean(x, epsilon=1e6, **SIMULATED).privacy_.notes == ()


def test_far_rows_of_different_sizes_may_be_more_than_a_mean_says():
    """A fifth of the rows, more than it names, hid in every one of these; so the note says more."""
    x = np.random.default_rng(0).gamma(2, 0.18, 500)
    x[:100] = np.random.default_rng(1).lognormal(7, 1, 100)
    found = private_mean(x, epsilon=1.0, **SIMULATED)
    (said,) = (note for note in found.privacy_.notes if "lie far from all others" in note)
    assert int(said.split()[4]) < 100
    assert found.conf_int()[1] < x.mean()
    assert "a few times as many if these differ in size" in said


def test_the_noise_of_the_count_is_stated():
    """Of 100 drawn means; five standard errors."""
    x = np.random.default_rng(7).exponential(size=5_000)
    x[::2] = np.nan
    found = [
        private_mean(x, epsilon=1.0, noise="simulated", random_state=seed) for seed in range(100)
    ]
    off = [(f.value - 1) / f.noise_std for f in found]
    assert 0.6 < np.std(off) < 1.35
    assert all("rows count" in f.privacy_.notes[0] for f in found)


def test_a_ledger_may_be_the_path_of_one(tmp_path):
    path = tmp_path / "budget.jsonl"
    with pytest.raises(InvalidInput, match="Make it first"):
        private_mean([1.0, 2.0, 3.0], epsilon=1.0, ledger=path)
    with pytest.raises(InvalidInput, match="ledger must be"):
        private_mean([1.0, 2.0, 3.0], epsilon=1.0, ledger=7)
    Ledger(path, epsilon=1.0, delta=1e-6)
    private_mean([1.0, 2.0, 3.0], epsilon=0.75, delta=5e-7, ledger=str(path))
    assert Ledger(path).remaining[0] == pytest.approx(0.25, rel=0.01)


def test_without_privacy_a_column_of_nothing_has_no_mean_and_no_error():
    found = private_mean(np.full(50, np.nan), epsilon=math.inf)
    assert not found.reliable


COLUMNS = {
    "constant": np.full(1000, 7.3),
    "zero": np.zeros(1000),
    "missing": np.full(1000, np.nan),
    "half missing": np.r_[np.full(500, np.nan), np.full(500, 2.0)],
    "infinite": np.r_[np.inf, -np.inf, np.ones(998)],
    "huge": np.full(1000, 1e300),
    "largest": np.tile([1.7e308, -1.7e308], 500),
    "subnormal": np.full(1000, 5e-324),
    "one": np.array([3.0]),
    "two": np.array([np.nan, 1e308]),
    "integers": np.arange(1000),
    "booleans": np.arange(1000) % 2 == 0,
    "single precision": np.ones(1000, np.float32),
}


@every_method
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, math.inf])
def test_no_column_raises_or_warns(method, column, epsilon, half, capsys):
    x, other = COLUMNS[column], list(COLUMNS).index(column) + (epsilon == 1.0) + half
    threshold = (None, 2.0)[other % 2]
    found = private_mean(x, epsilon=epsilon, method=method, threshold=threshold, **SIMULATED)
    assert math.isfinite(float(found))
    assert 0 <= found.noise_std < math.inf
    pair = np.column_stack([x, np.ones(len(x))])
    both = private_mean(pair, epsilon=epsilon, method=method, threshold=threshold, **SIMULATED)
    assert np.isfinite(both.value).all()
    assert capsys.readouterr() == ("", "")


@every_method
def test_degenerate_columns_are_found(method):
    """With so little noise that it hides no others beside a constant."""
    for name, mean in (("constant", 7.3), ("single precision", 1.0)):
        found = private_mean(COLUMNS[name], epsilon=30.0, method=method, **SIMULATED)
        assert found.reliable
        assert abs(float(found) - mean) < 5 * found.noise_std
    for name in ("missing", "one", "zero"):
        found = private_mean(COLUMNS[name], epsilon=0.1, method=method, **SIMULATED)
        assert not found.reliable


def test_catoni_pays_for_its_bound_only(watched):
    x = np.zeros(100)
    private_mean(x, epsilon=1.0, method="catoni", threshold=1.0, smoothing=2.0, **SIMULATED)
    private_mean(x, epsilon=1.0, method="clamped", threshold=1.0, **SIMULATED)
    assert watched.stds[0] / watched.stds[1] == pytest.approx(catoni_bound(2.0), rel=1e-6)


def test_a_threshold_fits_the_noise_that_persons_with_several_rows_need(monkeypatch):
    """What the threshold is balanced against is the noise that is added."""
    reached = []
    original = _Mean._scales_and_threshold

    def reach(self, found, noise):
        reached.append((noise, original(self, found, noise)))
        return reached[-1][1]

    monkeypatch.setattr(_Mean, "_scales_and_threshold", reach)
    x = np.random.default_rng(0).standard_t(3, 4_000)
    for rows in (1, 4):
        groups = np.arange(4_000) // rows
        found = private_mean(
            x, epsilon=1.0, method="catoni", groups=groups, max_rows=rows, **SIMULATED
        )
        noise, (scales, _) = reached.pop()
        assert found.noise_std == pytest.approx(noise * catoni_bound(3.0) * scales[0], rel=1e-6)
