"""Verdicts on made-up results that hold, that fail, and that hold at unequal privacy only."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.claims import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    UNEQUAL,
    UNTESTED,
    Claim,
    affordable,
    agree,
    all_of,
    close,
    decreasing,
    differ,
    flat,
    increasing,
    judge,
    lower,
    no_faster,
    no_slower,
    slope,
    steadier,
    untestable,
    where_better,
    within_set,
)
from experiments.runner import table
from experiments.study import AS_PRINTED, NO_PRIVACY, STATED, Axis, Grid, Metric, Study

GRID = Grid(fixed={}, points=(10.0, 100.0, 1000.0), epsilons=(0.1, 1.0), repetitions=6)


def study(check, axis="n"):
    return Study(
        name="paper-figure-1", item="figure 1", title="", axis=Axis(name=axis, label="n"),
        metrics=(Metric(name="error", label="error"),), data=(), methods=(), quick=GRID, full=GRID,
        delta=lambda n: 1 / n, claims=(Claim("it is so", check),),
    )  # fmt: skip


def results(laws, *, accounting=STATED, axis="n", seed=0, spread=0.05):
    """Rows whose value is law(x, epsilon) with lognormal scatter; a spread of one may differ."""
    rng = np.random.default_rng(seed)
    rows = []
    for method, law in laws.items():
        wide = spread[method] if isinstance(spread, dict) else spread
        private = method != "baseline"
        epsilons = GRID.epsilons if private else (math.inf,)
        rows += [
            {
                "study": "paper-figure-1", "variant": "", "dataset": "made up", "method": method,
                "accounting": accounting if private else NO_PRIVACY, "epsilon": epsilon,
                "epsilon_true": epsilon, "delta": 1e-3, "n": 100, "d": 2, "axis": axis, "x": x,
                "repetition": repetition, "metric": "error",
                "value": law(x, epsilon) * math.exp(wide * rng.standard_normal()),
                "seconds": 0.0, "version": "0", "statement": "",
            }
            for epsilon in epsilons
            for x in GRID.points
            for repetition in range(GRID.repetitions)
        ]  # fmt: skip
    return rows


def verdict(check, rows, axis="n"):
    return judge(study(check, axis), table(rows))[0]


def falls(x, epsilon):
    return x**-0.5 / epsilon


def grows(x, epsilon):
    return x**0.5 * epsilon


def level(x, epsilon):
    return 1.0


def twice(x, epsilon):
    return 2.0


def jumps(x, epsilon):
    return 3.0 if x == 100.0 else 0.5


LAWS = {"falls": falls, "grows": grows, "level": level, "twice": twice, "jumps": jumps,
        "baseline": level}  # fmt: skip


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        (lower("level", "twice"), lower("twice", "level")),
        (lower("level", "twice", everywhere=True), lower("jumps", "twice", everywhere=True)),
        (lower("level", ("twice", "twice")), lower("twice", ("level", "baseline"))),
        (close("level", "baseline", within=1.2), close("twice", "baseline", within=1.2)),
        (close("twice", "baseline", within=2.5), close("twice", "baseline", within=1.5)),
        (decreasing("falls"), decreasing("grows")),
        (decreasing("falls", "epsilon"), decreasing("grows", "epsilon")),
        (increasing("grows"), increasing("falls")),
        (flat("level"), flat("falls")),
        (slope("falls", -0.5), slope("falls", -1.0)),
        (differ(("level", "twice")), differ(("level", "baseline"))),
        (agree(("level", "baseline")), agree(("level", "twice"))),
        (
            all_of(decreasing("falls"), flat("level")),
            all_of(decreasing("falls"), decreasing("level"), flat("falls")),
        ),
    ],
)
def test_a_check_tells_what_holds_from_what_fails(holds, fails):
    rows = results(LAWS)
    assert verdict(holds, rows).verdict == HOLDS
    assert verdict(fails, rows).verdict == FAILS


def test_the_steadier_one():
    rows = results({"calm": level, "wild": level}, spread={"calm": 0.02, "wild": 1.0})
    assert verdict(steadier("calm", "wild"), rows).verdict == HOLDS
    assert verdict(steadier("wild", "calm"), rows).verdict == FAILS


def test_an_effect_comes_with_an_interval_that_holds_it():
    found = verdict(lower("level", "twice"), results(LAWS)).stated
    assert found.low < found.effect < found.high
    assert found.effect == pytest.approx(0.5, abs=0.05)
    slopes = verdict(slope("falls", -0.5), results(LAWS, seed=1)).stated
    assert slopes.low < -0.5 < slopes.high


def test_what_holds_as_printed_only_is_not_at_equal_privacy():
    rows = results({"ours": level, "theirs": twice}, accounting=AS_PRINTED)
    rows += results({"ours": twice, "theirs": level}, accounting=STATED)
    found = verdict(lower("ours", "theirs"), rows)
    assert found.verdict == UNEQUAL
    assert found.finding is found.printed
    turned = verdict(lower("theirs", "ours"), rows)
    assert turned.verdict == HOLDS, "what holds at equal privacy holds"


def test_a_failure_at_the_stated_epsilon_is_open_while_the_printed_one_is():
    rows = results({"ours": level, "theirs": lambda x, e: 1.01}, accounting=AS_PRINTED, spread=1.0)
    rows += results({"ours": twice, "theirs": level}, accounting=STATED)
    found = verdict(lower("ours", "theirs"), rows)
    assert found.stated.holds is False
    assert found.verdict == INCONCLUSIVE
    assert found.reason == ("it fails at the stated ε; as printed the interval decides neither way")


def test_what_a_method_does_at_the_end_of_the_set_is_not_seen():
    rows = results({"falls": falls, "level": lambda x, e: 10.0, "twice": twice})
    check = lower("level", "twice")
    assert verdict(check, rows).verdict == FAILS
    stuck = verdict(within_set(("falls", "level"), 9.0, check), rows)
    assert stuck.verdict == INCONCLUSIVE
    assert "boundary of the set" in stuck.reason
    assert verdict(within_set("falls", 9.0, check), rows).verdict == FAILS
    assert verdict(within_set("level", math.inf, check), rows).verdict == FAILS


def test_a_method_that_was_never_printed_is_compared_in_both():
    rows = results({"ours": level}, accounting=AS_PRINTED)
    rows += results({"ours": twice, "theirs": lambda x, e: 1.5}, accounting=STATED)
    assert verdict(lower("ours", "theirs"), rows).verdict == UNEQUAL


def test_an_interval_that_leaves_it_open_is_inconclusive_and_missing_rows_are_not_tested():
    rows = results({"a": level, "b": lambda x, e: 1.01}, spread=1.0)
    assert verdict(lower("a", "b"), rows).verdict == INCONCLUSIVE
    assert verdict(lower("a", "nobody"), rows).verdict == UNTESTED
    assert verdict(decreasing("nobody"), rows).verdict == UNTESTED
    assert verdict(lower("a", "b", metric="nothing"), rows).verdict == UNTESTED


def test_one_repetition_decides_nothing():
    rows = [r for r in results(LAWS) if r["repetition"] == 0]
    assert verdict(lower("level", "twice"), rows).verdict == INCONCLUSIVE


def test_only_some_budgets_and_data_sets():
    rows = results(LAWS)
    assert verdict(lower("falls", "baseline", epsilons=(1.0,)), rows).verdict == HOLDS
    assert verdict(lower("falls", "baseline", epsilons=(0.1,)), rows).verdict != HOLDS
    assert verdict(lower("level", "twice", datasets=("another",)), rows).verdict == UNTESTED


def test_a_fit_that_diverged_loses():
    rows = results({"a": lambda x, e: math.nan, "b": level, "c": lambda x, e: math.inf})
    assert verdict(lower("b", ("a", "c")), rows).verdict == HOLDS
    assert verdict(lower("a", "b"), rows).verdict == FAILS


def test_the_printed_noise_is_priced_wherever_it_is_looked_at():
    rows = results({"a": level}, accounting=AS_PRINTED)
    assert verdict(affordable("a"), rows + results({"a": level})).verdict == HOLDS
    for row in rows:
        row["epsilon_true"] = 2.5 * row["epsilon"]
    found = verdict(affordable("a"), rows + results({"a": level}))
    assert found.verdict == FAILS
    assert found.stated.effect == pytest.approx(2.5)


def test_of_a_curve_the_last_point_counts():
    rows = results({"falls": falls, "baseline": level}, axis="iteration")
    check = close("falls", "baseline", within=0.05, epsilons=(1.0,))
    assert verdict(check, rows, axis="iteration").verdict == HOLDS
    for row in rows:
        row["x"] = math.nan if row["method"] == "baseline" else row["x"]
    assert verdict(check, rows, axis="iteration").verdict == HOLDS


# --- Bounds on slopes, rates that do not show, lines that were run as printed alone ---


def word(check, rows):
    return verdict(check, rows).verdict


RATES = {
    "falls": lambda x, e: x**-0.5 / e,
    "levels": lambda x, e: 0.9 / e,
    "baseline": lambda x, e: 0.5,
}


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        (no_slower("falls", -0.5), no_slower("falls", -0.7)),
        (no_slower("falls", -0.3), no_slower("levels", -0.3)),
        (no_faster("falls", -0.5), no_faster("falls", -0.3)),
        (no_faster("falls", -1.0), no_faster("falls", 0.0)),
    ],
)
def test_bounds_on_slopes(holds, fails):
    rows = results(RATES)
    assert word(holds, rows) == HOLDS
    assert word(fails, rows) == FAILS


def test_a_bound_within_the_interval_is_left_open():
    rows = results(RATES, spread=0.8)
    found = verdict(no_slower("falls", -0.5), rows).stated.effect
    assert word(no_slower("falls", found - 0.02, within=0.0), rows) == INCONCLUSIVE


def test_a_rate_that_does_not_show_is_left_open():
    rows = results(RATES)
    check = no_slower("levels", 0.0)
    assert word(check, rows) == HOLDS
    assert word(where_better("levels", "baseline", check), rows) == INCONCLUSIVE
    assert word(where_better("falls", "baseline", no_slower("falls", -0.5)), rows) == HOLDS


def test_slopes_along_the_budget_where_it_is_the_axis():
    rows = results({"falls": lambda x, e: 1 / x})
    rows = [row | {"epsilon": row["x"]} for row in rows]
    assert word(no_slower("falls", -1.0), rows) == HOLDS
    assert word(no_slower("falls", -1.5), rows) == FAILS


def test_what_is_run_as_printed_alone_fails_as_printed():
    rows = results({"levels": lambda x, e: 9.0}, accounting=AS_PRINTED)
    baseline = results({"baseline": lambda x, e: 1.0})
    both = rows + baseline
    found = verdict(lower("levels", "baseline"), both)
    assert found.verdict == FAILS
    assert found.finding.effect == pytest.approx(9.0, rel=0.2)
    assert math.isnan(found.stated.effect)
    assert word(lower("baseline", "levels"), both) == UNTESTED


def test_an_interval_with_the_limit_inside_decides_nothing_whichever_side_its_middle_is():
    for seed in range(6):
        rows = results({"a": falls, "b": falls}, spread=0.5, seed=seed)
        found = verdict(lower("a", "b"), rows)
        inside = found.stated.low < 1 < found.stated.high
        assert (found.verdict == INCONCLUSIVE) == inside
        assert bool(found.reason) == inside


def test_what_no_experiment_can_judge_is_left_open_with_its_reason():
    found = verdict(untestable("a matter of taste"), results({"a": falls}))
    assert found.verdict == UNTESTED
    assert found.reason == "a matter of taste"
