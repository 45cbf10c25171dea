"""What noisy histograms of many columns show together."""

from __future__ import annotations

import numpy as np
import pytest

from privtail.summaries.histograms import POWERS, Histogram
from privtail.summaries.prior import MAX_COLUMNS, described
from privtail.summaries.summary import Summary

EDGES = POWERS.edges


def counted(X):
    """Histograms of the columns, without noise."""
    cells = np.searchsorted(EDGES, X, side="right")
    return np.array([np.bincount(c, minlength=len(EDGES) + 1) for c in cells.T]).astype(float)


def described_under(std, X, rng):
    """What a first histogram release says of the columns of X under noise ``std`` in a count."""
    counts = counted(X)
    return described(counts + rng.normal(0, std, counts.shape), POWERS, std, len(X))


def octaves_off(found, X):
    """Logarithms of what scales are of those without noise."""
    true = Summary.joined([Histogram(c, POWERS, 0.0).described(len(X)) for c in counted(X)])
    return np.log2(found.scales / true.scales)


def described_as_one(units, *, std, seed):
    """Whether 20 columns of one law are described together; the second half in other units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2.5, (1_000, 20)) * np.repeat([1.0, units], 10)
    found = described_under(std, X, rng)
    return bool(found.detected.mean() > 0.5 and len(set(found.scales)) < 6)


def test_columns_that_show_in_a_run_alone_are_described_together():
    """No cell of all of them together is sure, and none of a column's runs."""
    assert sum(described_as_one(1.0, std=100, seed=seed) for seed in range(20)) >= 18


def test_columns_of_which_half_are_in_other_units_are_not():
    """All twenty would be, did the differences of all columns together not count."""
    assert sum(described_as_one(1024.0, std=60, seed=seed) for seed in range(20)) <= 10


LAWS = {
    "lognormal": lambda rng, d: rng.lognormal(0, 1.5, (1_000, d)),
    "Gaussian": lambda rng, d: rng.normal(size=(1_000, d)),
    "far from zero": lambda rng, d: rng.normal(size=(1_000, d)) + rng.uniform(-5, 5, d),
    "t": lambda rng, d: rng.standard_t(2.5, (1_000, d)),
    "counts": lambda rng, d: rng.poisson(2.0, (1_000, d)).astype(float),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [5, 20, 60])
def test_units_are_found_that_no_cell_shows(law, d):
    """Cells of a fifteenth of all records are noise; units lie up to a factor of 1,000 apart."""
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = LAWS[law](rng, d) * 10.0 ** rng.uniform(-1.5, 1.5, d)
        off.append(octaves_off(described_under(66.0, X, rng), X))
    assert np.median(np.abs(np.concatenate(off))) < 0.7
    assert np.mean(np.abs(np.concatenate(off)) > 2) < 0.1


@pytest.mark.parametrize("law", LAWS)
def test_units_that_are_alike_are_known_where_no_column_shows(law):
    """Under noise of a quarter of all records columns say nothing alone, and together enough."""
    most = 1.1 if law == "t" else 1.0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = LAWS[law](rng, 60)
        assert np.median(np.abs(octaves_off(described_under(250.0, X, rng), X))) < most


def test_a_column_in_other_units_than_all_others_is_seen():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.lognormal(0, 1.0, (1_000, 30))
        X[:, 0] *= 1e6
        assert np.abs(octaves_off(described_under(66.0, X, rng), X))[0] < 1.5


def test_amounts_that_are_zero_for_most_keep_what_they_show():
    """Three tenths of a column are amounts, under noise of a tenth of all records in a cell."""
    off = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((1_000, 20)) < 0.3, rng.lognormal(3.0, 1.0, (1_000, 20)), 0.0)
        off.append(octaves_off(described_under(100.0, X, rng), X))
    assert np.mean(np.abs(np.concatenate(off)) < 1) > 0.7
    assert np.mean(np.concatenate(off) < -2) < 0.05, "too small a unit makes rows endless"


def test_what_hardly_any_record_has_counts_for_nothing():
    """One amount in ten, in cells that noise hides."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((1_000, 20)) < 0.1, rng.lognormal(3.0, 1.0, (1_000, 20)), 0.0)
        assert described_under(100.0, X, rng).only_zeros.mean() > 0.8


def test_so_many_columns_are_described_in_parts():
    """All of a table's columns, of which a sample tells what they are like."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(0, 1.0, (1_000, 2 * MAX_COLUMNS + 3)) * 10.0 ** rng.uniform(
        -1, 1, 2 * MAX_COLUMNS + 3
    )
    off = octaves_off(described_under(66.0, X, rng), X)
    assert np.median(np.abs(off)) < 0.5


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_rows_that_do_not_count_are_not_taken_for_others(missing):
    rng = np.random.default_rng(0)
    X = rng.lognormal(0, 1.0, (1_000, 20)) * 10.0 ** rng.uniform(-1, 1, 20)
    kept = X[rng.random(1_000) >= missing]
    counts = counted(kept)
    found = described(counts + rng.normal(0, 40.0, counts.shape), POWERS, 40.0, 1_000)
    assert np.median(np.abs(octaves_off(found, kept))) < 0.6


@pytest.mark.parametrize("std", [1e-3, 1.0, 1e5, 1e300])
def test_noise_of_any_size_gives_a_description(std):
    rng = np.random.default_rng(0)
    for d in (2, 3, 40):
        found = described(rng.normal(0, std, (d, len(EDGES) + 1)), POWERS, std, 1_000)
        assert (found.scales > 0).all()
        assert np.isfinite(found.centres).all()
        assert (found.lows <= found.highs).all()
