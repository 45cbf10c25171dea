"""Claims of the papers, and verdicts that are computed from results.

A claim is a sentence and a check, put together from building blocks over named lines:

    Claim("Algorithm 4 is comparable to RGD.", close("Algorithm 4", "RGD", within=1.5))

Blocks (a, b are names of methods; a tuple of names means "each of them"):

- ``lower(a, b)``: a's metric is below b's; ``close(a, b, within=1.5)``: at most that factor above;
- ``decreasing(a, along)``, ``increasing(a, along)``: from the first to the last value of the axis
  (``along="x"``) or of the budget (``along="epsilon"``); ``flat(a, along, within=1.3)``;
- ``slope(a, exponent, along="x", within=0.15)``: of log metric against log x (or log epsilon),
  beside the exponent ``floor`` of a lower bound of the literature;
  ``no_slower(a, exponent)`` and ``no_faster(a, exponent)``: at most, and at least, that exponent,
  for upper and lower bounds. Of means over repetitions, whose deviation is bootstrapped; they hold
  where the estimate is inside, and fail where the whole interval is outside (all other blocks hold
  only where the whole interval is inside);
- ``where_better(a, b, check)``: the check, if a is below b at the last x; else it is left open;
- ``within_set(a, most, check)``: the check, if some budget leaves a below ``most``, which is near
  the boundary of the set; else it is left open;
- ``steadier(a, b)``: a varies less over repetitions than b, in standard deviations;
- ``differ(a, beyond=1.5)``, ``agree(a, within=1.3)``: the worst of the methods a over the best;
- ``affordable(a)``: the printed noise costs no more than the stated epsilon;
- ``all_of(check, ...)``: every one of them;
- ``untestable(reason)``: left open, and why.

The others take ``metric=`` (default: the study's first; ``"seconds"`` is how long fits
took), ``epsilons=`` and ``datasets=``
(only these); ``lower`` and ``close`` take ``everywhere=True``, which judges the worst combination
of data set, x and budget instead of their mean. Of an iteration curve the last point counts.
Effects are ratios (geometric means over repetitions) with t-intervals, unless a block says so.

Every check is made twice: "as printed" and "at the stated epsilon" (a method that was not run as
printed is the same in both; so are `Auto` and fits without privacy). A claim *holds* if it does at
the stated epsilon, *fails* if it fails in both, and is true *not at equal privacy* if it holds only
as printed. What was run as printed alone can fail as printed. Where the interval decides neither
way, at the stated epsilon or after a failure there as printed, it is *inconclusive*; where there
are no rows, or no experiment could judge it, *not tested*.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from experiments.study import AS_PRINTED, AUTO, ITERATION, NO_PRIVACY, STATED, DataSet, Study

HOLDS = "holds"
FAILS = "fails"
UNEQUAL = "not at equal privacy"
INCONCLUSIVE = "inconclusive"
UNTESTED = "not tested"
OPEN = (INCONCLUSIVE, UNTESTED)

OURS = "Ours: "

LARGEST = 1e9
"""Values beyond this (a fit that diverged) and no numbers count as this."""
NO_RATE = "at the last x, where no rate shows"
AT_END = "where noise carries w to the boundary of the set"
CONFIDENCE = 0.95
DRAWS = 1000
"""Of a bootstrap."""

Doubles = NDArray[np.float64]
Names = str | tuple[str, ...]
Along = Literal["x", "epsilon"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What a check found under one accounting.

    Attributes
    ----------
    holds : None where the interval leaves it open, or rows are missing.
    effect, low, high : the effect and its 95 % interval.
    what : what the effect is, for the report.
    theory : the exponent of a theorem, where the effect is a fitted one.
    least, most : the exponents between which the fitted one may lie.
    floor : the exponent of a lower bound of the literature.
    """

    holds: bool | None
    effect: float = math.nan
    low: float = math.nan
    high: float = math.nan
    what: str = ""
    theory: float = math.nan
    least: float = -math.inf
    most: float = math.inf
    floor: float = math.nan


MISSING = Finding(holds=None, what="there are no results for it")


@dataclass(frozen=True)
class View:
    """The rows of one study, one variant and one accounting: one row per cell and metric.

    ``printed`` are those as printed, whatever the accounting.
    """

    rows: pd.DataFrame
    metric: str
    printed: pd.DataFrame

    def only(
        self, method: str, metric: str | None, epsilons: Sequence[float] | None,
        datasets: Sequence[str] | None,
    ) -> pd.DataFrame:  # fmt: skip
        """The rows of a method; the metric ``"seconds"`` is how long its fits took."""
        rows = self.rows
        name = self.metric if metric in (None, "seconds") else metric
        if metric == "seconds":
            rows = rows.assign(value=rows["seconds"])
        keep = (rows["method"] == method) & (rows["metric"] == name)
        if epsilons is not None:
            keep &= rows["epsilon"].isin([*epsilons, math.inf])
        if datasets is not None:
            keep &= rows["dataset"].isin(datasets)
        return rows[keep]


Check = Callable[[View], Finding]


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper and its check; one of our own begins with `OURS`."""

    sentence: str
    check: Check

    @property
    def ours(self) -> bool:
        """Whether no paper says it: a check of our own, or of another algorithm than its own."""
        return self.sentence.startswith(OURS)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim and what became of it."""

    claim: Claim
    verdict: str
    printed: Finding
    stated: Finding

    @property
    def finding(self) -> Finding:
        """What decided."""
        printed = self.verdict == UNEQUAL or self.stated.what == MISSING.what
        return self.printed if printed else self.stated

    @property
    def reason(self) -> str:
        """Why a claim was left open; nothing where it was not."""
        if self.verdict not in OPEN:
            return ""
        if self.verdict == UNTESTED:
            return self.finding.what
        if self.stated.holds is False:
            return f"it fails at the stated ε; as printed {_undecided(self.printed)}"
        return _undecided(self.finding)


def _undecided(finding: Finding) -> str:
    """Why a finding is open."""
    if finding.what.endswith(NO_RATE):
        return "it is not surely better than w = 0 at the last x"
    if finding.what.endswith(AT_END):
        return "noise carries w to the boundary of the set, which hides it"
    return "the interval decides neither way"


def judge(study: Study, frame: pd.DataFrame, variant: str = "") -> list[Verdict]:
    """The verdicts on a study's claims from its tidy table."""
    printed, stated = (view(study, frame, a, variant) for a in (AS_PRINTED, STATED))
    return [verdict_of(claim, claim.check(printed), claim.check(stated)) for claim in study.claims]


def verdict_of(claim: Claim, printed: Finding, stated: Finding) -> Verdict:
    """Holds at equal privacy, only without it, or not at all."""
    if stated.holds:
        word = HOLDS
    elif stated.holds is None and not (stated.what == MISSING.what and printed.holds is False):
        word = UNTESTED if math.isnan(stated.effect) else INCONCLUSIVE
    elif stated.holds is False and printed.holds is None and not math.isnan(printed.effect):
        word = INCONCLUSIVE
    else:
        word = UNEQUAL if printed.holds else FAILS
    return Verdict(claim=claim, verdict=word, printed=printed, stated=stated)


def view(study: Study, frame: pd.DataFrame, accounting: str, variant: str = "") -> View:
    """One accounting; methods that were not run in it as they were run at the stated epsilon."""
    rows = frame[frame["variant"] == variant]
    printed = rows[rows["accounting"] == AS_PRINTED]
    has = set(rows.loc[rows["accounting"] == accounting, "method"])
    same = rows["accounting"].isin([accounting, AUTO, NO_PRIVACY])
    rows = rows[same | ((rows["accounting"] == STATED) & ~rows["method"].isin(has))]
    if study.axis.name == ITERATION:
        cell = ["dataset", "method", "accounting", "epsilon", "repetition", "metric"]
        rows = rows.sort_values("x", kind="stable").drop_duplicates(cell, keep="last")
        rows = rows.assign(x=0.0)
    values = rows["value"].astype(float).fillna(LARGEST).clip(-LARGEST, LARGEST)
    return View(rows.assign(value=values), study.metrics[0].name, printed)


# --- Statistics ------------------------------------------------------------------------------


def interval(values: Doubles) -> tuple[float, float, float]:
    """Mean and t-interval of independent repetitions."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, -math.inf, math.inf
    wide = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    half = wide * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def _ratio(logs: Doubles, what: str, least: float, most: float) -> Finding:
    """Geometric mean ratio of repetitions; holds if it lies between ``least`` and ``most``."""
    if not len(logs):
        return MISSING
    effect, low, high = (math.exp(min(x, 700)) for x in interval(logs))
    return Finding(
        holds=_sure(low, high, least, most), effect=effect, low=low, high=high, what=what
    )


def _sure(low: float, high: float, least: float, most: float) -> bool | None:
    """Whether the interval lies inside; None where it does not lie outside either."""
    if least <= low and high <= most:
        return True
    return False if high < least or low > most else None


def _log(values: Any) -> Doubles:
    return np.asarray(np.log(np.maximum(np.asarray(values, dtype=float), 1 / LARGEST)))


def _paired(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Rows of a beside those of b on the same records and budget; a baseline serves all budgets."""
    keys = ["dataset", "x", "repetition"]
    either = np.isinf(a["epsilon"]).all() or np.isinf(b["epsilon"]).all()
    both = a.merge(b, on=keys if either else [*keys, "epsilon"], suffixes=("", "_b"))
    if either and "epsilon_b" in both:
        both["epsilon"] = np.minimum(both["epsilon"], both["epsilon_b"])
    return both.assign(log=_log(both["value"]) - _log(both["value_b"]))


def _each(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


# --- Blocks ----------------------------------------------------------------------------------


def lower(a: Names, b: Names, *, everywhere: bool = False, **only: Any) -> Check:
    """Whether a's metric is below b's; effect: a over b."""
    return _compared(a, b, 1.0, everywhere, only)


def close(a: Names, b: Names, *, within: float, everywhere: bool = False, **only: Any) -> Check:
    """Whether a's metric is at most ``within`` times b's; effect: a over b."""
    return _compared(a, b, within, everywhere, only)


def _compared(a: Names, b: Names, most: float, everywhere: bool, only: dict[str, Any]) -> Check:
    def one(seen: View, first: str, second: str) -> Finding:
        both = _paired(_rows(seen, first, only), _rows(seen, second, only))
        what = f"{first} / {second}"
        if not everywhere:
            return _ratio(_by_repetition(both), what, 0.0, most)
        found = [
            _ratio(_by_repetition(part), f"{what} at its worst", 0.0, most)
            for _, part in both.groupby(["dataset", "x", "epsilon"], observed=True)
        ]
        return max(found, key=lambda f: f.effect) if found else MISSING

    def check(seen: View) -> Finding:
        return _worst([one(seen, f, s) for f in _each(a) for s in _each(b)])

    return check


def decreasing(a: Names, along: Along = "x", **only: Any) -> Check:
    """Whether the metric falls along the axis; effect: its last value over the first."""
    return _moved(a, along, 0.0, 1.0, only)


def increasing(a: Names, along: Along = "x", **only: Any) -> Check:
    """Whether the metric grows along the axis; effect: its last value over the first."""
    return _moved(a, along, 1.0, math.inf, only)


def flat(a: Names, along: Along = "x", *, within: float = 1.3, **only: Any) -> Check:
    """Whether the metric hardly moves along the axis; effect: its last value over the first."""
    return _moved(a, along, 1 / within, within, only)


def _moved(a: Names, along: Along, least: float, most: float, only: dict[str, Any]) -> Check:
    other = "epsilon" if along == "x" else "x"

    def one(seen: View, name: str) -> Finding:
        rows = _rows(seen, name, only)
        ends = rows[along].agg(["min", "max"])
        if rows.empty or ends["min"] == ends["max"]:
            return MISSING
        first, last = (rows[rows[along] == end] for end in ends)
        both = last.merge(first, on=["dataset", other, "repetition"], suffixes=("", "_b"))
        both = both.assign(log=_log(both["value"]) - _log(both["value_b"]))
        what = f"{name}: {along} = {ends['max']:g} over {ends['min']:g}"
        return _ratio(_by_repetition(both), what, least, most)

    return lambda seen: _worst([one(seen, name) for name in _each(a)])


def slope(
    a: Names, exponent: float, *, along: Along = "x", within: float = 0.15,
    floor: float = math.nan, **only: Any,
) -> Check:  # fmt: skip
    """Whether the metric goes as x^exponent; effect: the slope of its logarithm."""
    return _sloped(a, exponent, (exponent - within, exponent + within), along, floor, only)


def no_slower(
    a: Names, exponent: float, *, along: Along = "x", within: float = 0.05,
    floor: float = math.nan, **only: Any,
) -> Check:  # fmt: skip
    """Whether the metric is O(x^exponent); effect: the slope of its logarithm."""
    return _sloped(a, exponent, (-math.inf, exponent + within), along, floor, only)


def no_faster(
    a: Names, exponent: float, *, along: Along = "x", within: float = 0.05,
    floor: float = math.nan, **only: Any,
) -> Check:  # fmt: skip
    """Whether x^exponent is O(the metric); effect: the slope of its logarithm."""
    return _sloped(a, exponent, (exponent - within, math.inf), along, floor, only)


def _sloped(
    a: Names, exponent: float, allowed: tuple[float, float], along: Along, floor: float,
    only: dict[str, Any],
) -> Check:  # fmt: skip
    least, most = allowed

    def one(seen: View, name: str) -> Finding:
        rows = _rows(seen, name, only)
        if rows[along].nunique() < 3:
            return MISSING
        other = "epsilon" if along == "x" else "x"
        fixed = [] if (rows["x"] == rows["epsilon"]).all() else [other]
        tables = [
            part.pivot_table(index=along, columns="repetition", values="value", observed=True)
            for _, part in rows.groupby(["dataset", *fixed], observed=True)
        ]
        effect, low, high = _slopes(tables)
        inside = least <= effect <= most
        sure = inside or high < least or low > most
        return Finding(
            holds=inside if sure else None, effect=effect, low=low, high=high,
            what=f"slope of {name} against {exponent:.3g}", theory=exponent, least=least, most=most,
            floor=floor,
        )  # fmt: skip

    return lambda seen: _worst([one(seen, name) for name in _each(a)])


def _slopes(tables: list[pd.DataFrame]) -> tuple[float, float, float]:
    """Slope of the logarithm of the mean over repetitions, and its bootstrap over them."""
    rng = np.random.default_rng(0)
    found = []
    for table in tables:
        values = np.asarray(table.dropna(axis=1), dtype=float)
        count = values.shape[1]
        seats = np.vstack([np.arange(count), rng.integers(count, size=(DRAWS, count))])
        logs = _log(values[:, seats].mean(axis=2))
        x = np.log(np.asarray(table.index, dtype=float))
        x = x - x.mean()
        found.append(x @ logs / (x @ x))
    slopes = np.mean(found, axis=0)
    count = min(table.shape[1] for table in tables)
    if count < 2:
        return float(slopes[0]), -math.inf, math.inf
    wide = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1))
    half = wide * float(np.std(slopes[1:])) * math.sqrt(count / (count - 1))
    return float(slopes[0]), float(slopes[0]) - half, float(slopes[0]) + half


def where_better(a: str, b: str, check: Check, **only: Any) -> Check:
    """The check, left open where a is not below b at the last x: no rate shows there."""

    def judged(seen: View) -> Finding:
        found = check(seen)
        both = _paired(_rows(seen, a, only), _rows(seen, b, only))
        ends = both[both["x"] == both["x"].max()]
        ratio = _ratio(_by_repetition(ends), f"{a} / {b} {NO_RATE}", 0.0, 1.0)
        return found if ratio.holds else replace(
            ratio, holds=None, theory=found.theory, least=found.least, most=found.most,
            floor=found.floor,
        )  # fmt: skip

    return judged


def within_set(a: Names, most: float, check: Check, **only: Any) -> Check:
    """The check, left open where one of a is beyond ``most`` at every budget."""

    def judged(seen: View) -> Finding:
        found = check(seen)
        for name in _each(a):
            rows = _rows(seen, name, only)
            if not rows.empty and rows.groupby("epsilon")["value"].median().min() > most:
                return replace(found, holds=None, what=f"{found.what} {AT_END}")
        return found

    return judged


def steadier(a: Names, b: Names, **only: Any) -> Check:
    """Whether a varies less over repetitions; effect: ratio of deviations, bootstrapped."""

    def one(seen: View, first: str, second: str) -> Finding:
        tables = [_spread(_rows(seen, name, only)) for name in (first, second)]
        if min(table.shape[1] for table in tables) < 3:
            return MISSING
        rng = np.random.default_rng(0)
        draws = np.array([_of_spreads(tables, rng) for _ in range(DRAWS)])
        low, high = np.nanquantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
        effect = _of_spreads(tables, None)
        return Finding(
            holds=_sure(low, high, 0.0, 1.0), effect=effect, low=float(low), high=float(high),
            what=f"deviation of {first} / {second}",
        )  # fmt: skip

    return lambda seen: _worst([one(seen, f, s) for f in _each(a) for s in _each(b)])


def _spread(rows: pd.DataFrame) -> Doubles:
    """Values (conditions, repetitions)."""
    if rows.empty:
        return np.zeros((0, 0))
    wide = rows.pivot_table(
        index=["dataset", "x", "epsilon"], columns="repetition", values="value", observed=True
    )
    return np.asarray(wide.dropna(axis=1), dtype=float)


def _of_spreads(tables: list[Doubles], rng: np.random.Generator | None) -> float:
    found = []
    for table in tables:
        count = table.shape[1]
        seats = np.arange(count) if rng is None else rng.integers(count, size=count)
        found.append(math.sqrt(np.mean(np.var(table[:, seats], axis=1, ddof=1))))
    return found[0] / max(found[1], 1 / LARGEST)


def differ(a: tuple[str, ...], *, beyond: float = 1.5, **only: Any) -> Check:
    """Whether the choice among a matters; effect: the worst of them over the best."""
    return _extremes(a, beyond, math.inf, only)


def agree(a: tuple[str, ...], *, within: float = 1.3, **only: Any) -> Check:
    """Whether the choice among a hardly matters; effect: the worst of them over the best."""
    return _extremes(a, 0.0, within, only)


def _extremes(a: tuple[str, ...], least: float, most: float, only: dict[str, Any]) -> Check:
    def check(seen: View) -> Finding:
        tables = {name: _rows(seen, name, only) for name in a}
        if any(table.empty for table in tables.values()):
            return MISSING
        ranked = sorted(a, key=lambda name: float(np.mean(_log(tables[name]["value"]))))
        best, worst = ranked[0], ranked[-1]
        both = _paired(tables[worst], tables[best])
        return _ratio(_by_repetition(both), f"{worst} / {best}", least, most)

    return check


def affordable(a: Names) -> Check:
    """Whether the printed noise costs the stated epsilon or less; effect: the worst ratio."""

    def check(seen: View) -> Finding:
        rows = seen.printed[seen.printed["method"].isin(_each(a))]
        if rows.empty:
            return MISSING
        times = float((rows["epsilon_true"] / rows["epsilon"]).max())
        return Finding(
            holds=times <= 1 + 1e-6, effect=times, low=times, high=times,
            what="true epsilon / stated epsilon, at most",
        )  # fmt: skip

    return check


def untestable(reason: str) -> Check:
    """A sentence that no experiment here can judge, and why."""
    return lambda seen: Finding(holds=None, what=reason)


MINIMAX = (
    "a minimax bound speaks of the worst law for every estimator; what happens on one law cannot "
    "refute it"
)


def of(*data: DataSet) -> list[str]:
    """Names of data sets, for ``datasets=``."""
    return [d.name for d in data]


def all_of(*checks: Check) -> Check:
    """Whether every check holds; effect: of the first that does not, else of the first."""
    return lambda seen: _worst([check(seen) for check in checks])


def _rows(seen: View, name: str, only: dict[str, Any]) -> pd.DataFrame:
    return seen.only(name, only.get("metric"), only.get("epsilons"), only.get("datasets"))


def _by_repetition(both: pd.DataFrame) -> Doubles:
    """One number per repetition: the mean of its logarithms."""
    if both.empty:
        return np.zeros(0)
    return np.asarray(both.groupby("repetition")["log"].mean(), dtype=float)


def _worst(found: list[Finding]) -> Finding:
    """The first that fails, else the first that is open, else the first."""
    for holds in (False, None):
        for finding in found:
            if finding.holds is holds:
                return finding
    return replace(found[0], holds=True)
