"""Scales and centres of features, and what is known of a target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privtail.summaries.standardization import Standardization, Target
from privtail.summaries.summary import SMALLEST, UNUSED, Summary
from privtail.trusted.problem import Problem


def summary(columns=3):
    """Every column has the centre 2, the scale 3 and was detected."""
    ones, yes = np.ones(columns), np.ones(columns, dtype=np.bool_)
    return Summary(2 * ones, 3 * ones, 3 * ones, 3 * ones, ones, -ones, ones, yes, yes, ones, ~yes)


def test_raw_slopes_are_those_of_standardized_features():
    found = replace(summary(), scales=np.array([3.0, UNUSED, 5.0]))
    problem = Problem(n=10, d=2, intercept=True)
    standard = Standardization.of(found, problem, sparse=False)
    assert standard.used.tolist() == [True, False]
    assert (standard.target.location, standard.target.scale) == (2.0, 5.0)
    raw = standard.raw(np.array([[6.0], [1.0], [4.0]]), problem)
    assert raw[:, 0] == pytest.approx([2.0, 0.0, 4.0 - 2 * 2.0])
    assert not standard.only(np.zeros(2, dtype=np.bool_)).used.any()


@pytest.mark.parametrize(("intercept", "sparse"), [(True, True), (False, False)])
def test_sparse_features_and_those_beside_no_intercept_are_not_centred(intercept, sparse):
    problem = Problem(n=10, d=2, intercept=intercept)
    standard = Standardization.of(summary(), problem, sparse=sparse)
    assert not standard.centres.any()
    assert standard.target.location == 2.0 * intercept


def test_features_without_a_use_are_not_used():
    """One that is zero, and beside an intercept one of a single value."""
    single = replace(summary(2), single=np.array([True, False]))
    first = np.array([True, False])
    zeros = replace(
        summary(2), lows=np.where(first, -SMALLEST, -1), highs=np.where(first, SMALLEST, 1),
        scale_known=~first,
    )  # fmt: skip
    for found, intercept, used in ((single, True, False), (single, False, True),
                                    (zeros, False, False)):  # fmt: skip
        problem = Problem(n=10, d=2, intercept=intercept)
        standard = Standardization.of(found, problem, sparse=False)
        assert standard.used.tolist() == [used, True]


def test_a_target_that_was_not_found_has_the_scale_one():
    lost = replace(summary(), scales=np.full(3, UNUSED), deviations=np.full(3, UNUSED),
                   detected=np.zeros(3, dtype=np.bool_),
                   scale_known=np.zeros(3, dtype=np.bool_))  # fmt: skip
    target = Target.of(lost, 2, intercept=True)
    assert (target.scale, target.deviation) == (1.0, 1.0)
    assert not target.without_scale
