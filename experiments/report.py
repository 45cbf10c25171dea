"""The report: every study beside the paper's claim, on a page for each paper and one for all.

    python -m experiments.report
    python -m experiments.report --claims

It is made from ``reports/results`` alone, and the same results give the same pages. A study that
was run in full is shown in full. A page needs nothing else.
"""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import figures, verified
from experiments.claims import (
    FAILS,
    HOLDS,
    INCONCLUSIVE,
    NO_RATE,
    OPEN,
    UNEQUAL,
    UNTESTED,
    Finding,
    Verdict,
    judge,
    view,
)
from experiments.estimates import estimate
from experiments.papers import LEARNED, PAPERS, studies
from experiments.runner import RESULTS, ROOT, lacking, place, read, recorded
from experiments.study import AS_PRINTED, AUTO, STATED, Study

PAGE = ROOT / "reports" / "reproduction.html"
CLASSES = {
    HOLDS: "holds",
    FAILS: "fails",
    UNEQUAL: "unequal",
    INCONCLUSIVE: "untested",
    UNTESTED: "untested",
}
PRECISION = 3
WIDE = 100
"""Columns of the claims as text."""

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; margin: 0 auto;
       max-width: 74rem; padding: 1rem 1.5rem 4rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { border-bottom: 2px solid #0072B2; margin-top: 3rem; padding-bottom: .2rem; }
h3 { margin: 2.4rem 0 .3rem; }
p, li { max-width: 62rem; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .88rem; }
th, td { padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid #e4e4e4; }
th { font-weight: 600; border-bottom: 2px solid #bbb; }
th.number { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.verdict { font-weight: 600; white-space: nowrap; }
.holds { color: #00664b; } .holds::before { content: "✓ "; }
.fails { color: #a83f00; } .fails::before { content: "✗ "; }
.unequal { color: #8a4476; } .unequal::before { content: "≠ "; }
.untested { color: #666; } .untested::before { content: "? "; }
blockquote { border-left: 4px solid #56B4E9; margin: .5rem 0; padding: .1rem 0 .1rem .9rem;
             color: #333; max-width: 62rem; }
code, pre { background: #f4f4f4; font-size: .88rem; }
pre { padding: .5rem .8rem; overflow-x: auto; }
figure { margin: 1rem 0; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
@media (max-width: 60rem) {
  svg { max-width: none; } body { padding: 1rem; } .scroll table { min-width: 46rem; }
  details .scroll table { min-width: 0; }
}
details { margin: .5rem 0; } summary { cursor: pointer; font-weight: 600; }
nav ul { padding-left: 1.2rem; } nav a { white-space: nowrap; }
.stale { border-left: 4px solid #D55E00; padding-left: .9rem; font-size: .88rem; }
.scroll { overflow-x: auto; }
"""

INTRODUCTION = """
<p>The figures and tables of five papers, run again with privtail, and every claim of their text
with a verdict that is computed from the results. All noise is simulated: the law of the exact
noise, seeded. Two data sets are neighbours if one record was replaced, unless a study says
otherwise.</p>
<p><b>Three ways to spend.</b> <i>As printed</i>: the paper's own formula for the noise, on a budget
of what that noise truly costs (the tables of true ε). <i>At the stated ε</i>: the same algorithm,
its noise from the exact accountant. <i>auto</i>: privtail's default, which is told nothing about
the data. Dashed lines are fits without privacy.</p>
<p><b>Verdicts.</b> A claim <i>holds</i> if it does at the stated ε, <i>fails</i> if it does
neither there nor as printed, and is true <i>not at equal privacy</i> if it holds as printed alone.
Where the 95 % interval decides neither way it is <i>inconclusive</i>; what no experiment here could
judge is <i>not tested</i>, and the reason is given. A study of a small grid has too few
repetitions, or ends too early, for some claims: <code>--full</code> has more. Effects
are ratios of geometric means over repetitions unless they say otherwise. Claims that begin with
“Ours” are no sentence of the paper, or not of its own algorithm, or judge a line that is a misprint
beside the paper's own text; they are counted apart. Where a sentence of a paper has two readings,
both have verdicts, and the first is counted. Lines of a figure are medians over repetitions, bands
quartiles.</p>
"""


RATES = """
<p>Every theorem with a rate: the exponent of the number of records, of ε, of the features or of the
size of the errors, as the theorem has it and as fitted, which is the slope of a straight line
through the logarithms of the means. A claim <i>holds</i> if the fitted exponent is in the range
that is <i>allowed</i>, and <i>fails</i> if the whole interval is outside. The range leaves room for
the logarithms that a theorem hides; an upper bound may fall faster. Lower bounds are those of
Tao et al. (theorems 2, 8, 9 and 11) for the same moments. They are about the worst law, which one
law need not be; “–” means that the five papers have none. Without a fitted exponent the error is
not below that of w = 0, so that no rate shows. <code>privtail theory NAME</code> prints what a
theorem promises.</p>
"""


SIZES = """
<p>Every study has a small grid and one of the paper's size. A study that was run in full is shown
in full on its page. The hours are those of two cores, estimated from the measured seconds of the
quick rows, and measured where the study was run in full; <code>privtail reproduce LIST</code>
computes estimates, too.</p>
"""


@dataclass(frozen=True)
class Result:
    """A study, its tidy table, and what became of its claims."""

    study: Study
    frame: pd.DataFrame
    full: bool
    verdicts: list[Verdict]

    @property
    def grid(self) -> str:
        """The size of its grid in a word."""
        return "full" if self.full else "quick"


def load(folder: Path, known: Iterable[Study]) -> list[Result]:
    """The results that are there, in the order of the studies, in full where there are such."""
    found = ((load_one(folder, s, full=True) or load_one(folder, s, full=False)) for s in known)
    return [result for result in found if result is not None]


def load_one(folder: Path, study: Study, *, full: bool) -> Result | None:
    """The results of one grid of a study, if they are there."""
    frame = read(study, folder, full=full)
    if frame is None:
        return None
    frame["variant"] = frame["variant"].astype(str)
    return Result(study, frame, full, judge(study, frame))


def overview(results: list[Result], known: Iterable[Study], folder: Path, name: str) -> str:
    """The page of all papers: what was learned, the tallies, and every claim's verdict."""
    missing = sorted({s.name for s in known} - {r.study.name for r in results})
    body = ["<h1>The papers, reproduced and judged</h1>", INTRODUCTION, _versions(results, folder)]
    for paper, citation in PAPERS.items():
        if any(r.study.paper == paper for r in results):
            body.append(f'<h2 id="{paper}">{escape(citation)}</h2>{_learned(paper, results)}')
            body.append(f'<p><a href="{beside(name, paper)}">Figures and claims</a></p>')
    body += ['<h2 id="claims">Claims</h2>', _counts(results)]
    body += ['<h2 id="rates">Theory and practice</h2>', RATES, _rates(results, name)]
    body += ['<h2 id="full">Quick and full</h2>', SIZES, _sizes(results, folder)]
    if missing:
        body.append(f"<p>Without results: {escape(', '.join(missing))}.</p>")
    return _whole("privtail: the papers reproduced", body)


def page(paper: str, results: list[Result], folder: Path, name: str, most: int) -> str:
    """The page of one paper."""
    mine = [r for r in results if r.study.paper == paper]
    body = [
        f"<h1>{escape(PAPERS[paper])}</h1>",
        _learned(paper, mine),
        f'<p><a href="{escape(name)}">What verdicts mean, and the other papers</a></p>',
        _versions(mine, folder),
        _navigation(mine),
        _commands(paper, mine),
        *(section(result, [r.study.name for r in mine], most) for result in mine),
        '<h2 id="claims">All claims</h2>',
        _counts(mine),
        _claims(mine),
    ]
    return _whole(f"privtail: {paper} reproduced", body)


def beside(name: str, paper: str) -> str:
    """The file of a paper's page, in the folder of the page of all."""
    return f"{Path(name).stem}-{paper}.html"


def _whole(title: str, body: list[str]) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def _learned(paper: str, results: list[Result]) -> str:
    """The tally of the paper's own claims, and what was learned."""
    counted = {(p, whose): n for p, whose, n in tallies(results)}
    numbers = dict(zip(CLASSES, counted.get((paper, "of the paper"), []), strict=False))
    words = ", ".join(f"{count} {word}" for word, count in numbers.items() if count)
    judged = f"Claims of the paper: {words}. " if words else ""
    return f"<p><b>{escape(judged)}</b>{escape(LEARNED[paper])}</p>"


def section(result: Result, there: Collection[str] = (), most: int = figures.MOST_LINES) -> str:
    """One study: the claim of the paper, its figures, verdicts, prices and choices.

    Of other studies only those that are ``there`` on the page are links.
    """
    study = result.study
    parts = [f'<h3 id="{study.name}">{escape(study.item)}: {escape(study.title)}</h3>']
    if study.expectation:
        parts.append(f"<blockquote>{escape(study.expectation)}</blockquote>")
    for metric in study.metrics:
        drawn = figures.svg(
            figures.draw(study, result.frame, metric, most), f"{study.name}-{metric.name}",
            figures.label(study, metric, most),
        )  # fmt: skip
        parts.append(f"<figure>{drawn}</figure>")
    parts.append(_left_out(study, most))
    if study.note:
        parts.append(f"<p>{escape(study.note)}</p>")
    parts += [
        _verdicts(result),
        _details("True ε of the printed noise", _prices(result), opened=True),
        _details("privtail's default beside the best published method", _beside(result)),
        _details("What the paper left out", _choices(result, there)),
        _details("Data and sizes", _data(result)),
    ]
    return "\n".join(part for part in parts if part)


def _left_out(study: Study, most: int) -> str:
    """Lines that a figure has no room for."""
    every = [(m.name, a) for m in study.methods for a in m.accountings]
    lost = [line for line in every if line not in figures.lines(study, most)]
    if not lost or len(study.grid(full=False).points) == 1:
        return ""
    if study.panels == "overlay":
        said = "; ".join(figures.name(*line) for line in lost)
        return f"<p><small>Not drawn: {escape(said)}.</small></p>"
    return (
        f"<p><small>{len(lost)} of {len(every)} lines are not drawn, those as printed first; "
        "<code>python -m experiments.report --lines 20</code> draws them.</small></p>"
    )


# --- Parts -----------------------------------------------------------------------------------


def _navigation(results: list[Result]) -> str:
    links = [_link(r.study.name, r.study.name.removeprefix(f"{r.study.paper}-")) for r in results]
    return f"<nav>{', '.join([*links, _link('claims', 'all claims')])}</nav>"


def _versions(results: list[Result], folder: Path) -> str:
    """How many lines were last found to be those of the code, and when."""
    known = [verified.remembered(place(folder, full=full)) for full in (False, True)]
    old = {
        r.study.name: lacking(r.study, folder, full=r.full) if r.study.name in known[r.full]
        else [m.name for m in r.study.methods] for r in results
    }  # fmt: skip
    lines = sum(len(r.study.methods) for r in results)
    fresh = lines - sum(map(len, old.values()))
    there = [known[r.full][r.study.name] for r in results if r.study.name in known[r.full]]
    then = sorted({(k["date"], k["commit"]) for k in there})
    said = f"{fresh} of {lines} lines (a method in a study) are of the present code"
    said += f" of {escape(_dates(then))}." if then else "."
    if fresh == lines:
        return f"<p>{said} <code>make stale</code> computes some rows of each again.</p>"
    links = ", ".join(
        f"{r.study.name} ({_which(r.study, old[r.study.name])})"
        for r in results if old[r.study.name]
    )  # fmt: skip
    return (
        f'<p class="stale">{said} Stale: {links}. '
        "<code>make stale</code> names the commands that run them again, and no others.</p>"
    )


def _dates(then: list[tuple[str, str]]) -> str:
    """When rows were compared or run: the first and the last time, with the commits."""
    ends = [f"{date} (commit {commit})" for date, commit in dict.fromkeys((then[0], then[-1]))]
    return " to ".join(ends)


def _which(study: Study, names: list[str]) -> str:
    return "all" if len(names) == len(study.methods) else escape(", ".join(names))


def _counts(results: list[Result]) -> str:
    rows = [
        [escape(paper), escape(whose), *map(_number, counted)]
        for paper, whose, counted in tallies(results)
    ]
    return f'<div class="scroll">{_table(["paper", "claims", *CLASSES], rows)}</div>'


def _rates(results: list[Result], name: str) -> str:
    """Every exponent of a theorem beside the fitted one."""
    rows = [
        [f'<a href="{beside(name, r.study.paper)}#{r.study.name}">{escape(r.study.name)}</a>',
         escape(v.claim.sentence), _number(v.finding.theory), _cell(_allowed(v.finding)),
         _floor(r.study, v.finding), *_fitted(v.finding), _word(v)]
        for r in results for v in r.verdicts if not math.isnan(v.finding.theory)
    ]  # fmt: skip
    heads = ["study", "claim", "theorem", "allowed", "lower bound", "fitted", "95 % interval",
             "verdict"]  # fmt: skip
    return f'<div class="scroll">{_table(heads, rows)}</div>'


def _allowed(finding: Finding) -> str:
    """The range of fitted exponents with which a claim holds."""
    low, high = _short(finding.least), _short(finding.most)
    if finding.least == -math.inf:
        return f"≤ {high}"
    return f"≥ {low}" if finding.most == math.inf else f"{low} … {high}"


def _fitted(finding: Finding) -> list[str]:
    return [_cell("–")] * 2 if finding.what.endswith(NO_RATE) else _effect(finding)[:2]


def _floor(study: Study, finding: Finding) -> str:
    """The lower bound's exponent beside that of a theorem."""
    found = {study.guides[name]: floor for name, floor in study.floors.items()}
    floor = found.get(finding.theory, finding.floor)
    return _cell("–") if math.isnan(floor) else _number(floor)


def _sizes(results: list[Result], folder: Path) -> str:
    """What was run of every study, how long the full grid takes, and which verdicts it changes."""
    rows, left = [], 0.0
    for result in results:
        hours = (estimate(result.study, full=True, results=folder) or math.nan) / 3600
        taken = math.nan
        if result.full:
            path = place(folder, full=True) / f"{result.study.name}.parquet"
            taken = float(recorded(path)["seconds"]) / 7200
        else:
            left += hours
        grids = [result.study.grid(full=full) for full in (False, True)]
        rows.append([
            escape(result.study.name), escape(result.grid),
            *(_cell(f"{len(g.points) or 1} × {len(g.epsilons)} × {g.repetitions}") for g in grids),
            _number(hours), _number(taken),
        ])  # fmt: skip
    heads = ["study", "rows of", "quick: points × ε × repetitions", "full", "hours, estimated",
             "hours, measured"]  # fmt: skip
    ran = sum(r.full for r in results)
    said = f"{ran} of {len(results)} studies were run in full"
    said += f"; the others would take {left:.0f} hours." if ran < len(results) else "."
    table = f'<p>{said}</p><div class="scroll">{_table(heads, rows)}</div>'
    return table + _changed_by_size(results, folder)


def _changed_by_size(results: list[Result], folder: Path) -> str:
    """The claims whose verdict is another one in full."""
    rows, compared = [], 0
    for result in results:
        quick = load_one(folder, result.study, full=False) if result.full else None
        for small, whole in zip(quick.verdicts if quick else (), result.verdicts, strict=False):
            compared += 1
            if small.verdict != whole.verdict:
                rows.append([
                    escape(result.study.name), escape(whole.claim.sentence), _word(small),
                    *_effect(small.finding)[:2], _word(whole), *_effect(whole.finding),
                ])  # fmt: skip
    if not compared:
        return ""
    heads = ["study", "claim", "quick", "effect", "95 % interval", "full", "effect",
             "95 % interval", "of"]  # fmt: skip
    said = f"{len(rows)} of {compared} verdicts differ between the quick and the full grid."
    return f'<p>{said}</p><div class="scroll">{_table(heads, rows)}</div>'


def _claims(results: list[Result]) -> str:
    rows = [
        [escape(r.study.paper), escape(v.claim.sentence), _word(v), *_effect(v.finding),
         _link(r.study.name, r.study.item)]
        for r in results for v in r.verdicts
    ]  # fmt: skip
    heads = ["paper", "claim", "verdict", "effect", "95 % interval", "of", "study"]
    return f'<div class="scroll">{_table(heads, rows)}</div>'


def _verdicts(result: Result) -> str:
    readings = _readings(result)
    rows = [
        [escape(v.claim.sentence), _word(v), *(_word(other) for other in others),
         *_effect(v.stated), *_effect(v.printed)[:2]]
        for v, *others in zip(result.verdicts, *readings.values(), strict=True)
    ]  # fmt: skip
    if not rows:
        return ""
    heads = ["claim", "verdict", *(f"verdict, if read as {escape(name)}" for name in readings),
             "effect at the stated ε", "95 % interval", "of", "effect as printed",
             "95 % interval"]  # fmt: skip
    two = "; ".join(c.reason for c in result.study.choices if c.variant and c.reading)
    said = f"<p>Two readings: {escape(two)}. The first is counted and drawn.</p>" if two else ""
    return f'{said}<div class="scroll">{_table(heads, rows)}</div>'


def _readings(result: Result) -> dict[str, list[Verdict]]:
    """Verdicts under the other readings of the paper, by their words."""
    return {words: judge(result.study, result.frame, variant)
            for variant, words in result.study.readings.items()}  # fmt: skip


def _prices(result: Result) -> str:
    rows = result.frame[result.frame["accounting"] == AS_PRINTED]
    rows = rows[rows["variant"] == ""]
    if rows.empty:
        return ""
    spent = rows.groupby(["method", "epsilon"], observed=True)["epsilon_true"].agg(["min", "max"])
    listed = []
    for (method, epsilon), (low, high) in spent.iterrows():
        true = _short(low) if math.isclose(low, high, rel_tol=5e-3) else (
            f"{_short(low)} to {_short(high)}"
        )  # fmt: skip
        listed.append([escape(str(method)), _number(epsilon), _cell(true)])
    return _table(["method", "stated ε", "true ε"], listed)


def _beside(result: Result) -> str:
    """Geometric mean of the default over the method with the least mean logarithm, per budget."""
    seen = view(result.study, result.frame, STATED)
    rows = seen.rows[(seen.rows["metric"] == seen.metric) & (seen.rows["epsilon"] < math.inf)]
    ours = rows[rows["accounting"] == AUTO]
    theirs = rows[rows["accounting"] == STATED]
    if ours.empty or theirs.empty or (rows["value"] <= 0).any():
        return ""
    listed = []
    for dataset in dict.fromkeys(ours["dataset"]):
        for epsilon in sorted(set(ours["epsilon"]) & set(theirs["epsilon"])):
            own, other = (
                part[(part["dataset"] == dataset) & (part["epsilon"] == epsilon)]
                .assign(log=lambda f: np.log(f["value"]))
                .groupby("method", observed=True)["log"].mean().dropna()
                for part in (ours, theirs)
            )  # fmt: skip
            if len(own) and len(other):
                ratio = math.exp(min(50.0, float(own.min() - other.min())))
                listed.append([
                    escape(str(dataset)), _number(epsilon), escape(str(other.idxmin())),
                    _number(ratio),
                ])  # fmt: skip
    metric = result.study.metrics[0].label
    return _table(["data", "ε", "best published at this ε", f"auto / it, {escape(metric)}"], listed)


def _choices(result: Result, there: Collection[str]) -> str:
    rows = []
    for choice in result.study.choices:
        other, changed = "", ""
        if choice.variant:
            other = f"{choice.other:g}"
            changed = _changed(result, choice.variant)
        elif elsewhere := _varied_in(result.study, choice.name):
            shown = elsewhere.name in there
            where = _link(elsewhere.name, elsewhere.item) if shown else escape(elsewhere.item)
            changed = f"tried in {where}"
        rows.append([
            f"<code>{escape(choice.name)}</code>", _number(choice.value), escape(choice.reason),
            _cell(other), changed,
        ])  # fmt: skip
    if not rows:
        return ""
    return _table(["parameter", "value", "reason", "tried once", "and then"], rows)


def _varied_in(study: Study, name: str) -> Study | None:
    """The study of the same paper that varies a parameter, one of the same data first."""
    same = [
        s for s in studies().values()
        if s.paper == study.paper and any(c.name == name and c.variant for c in s.choices)
    ]  # fmt: skip
    kinds = {d.name for d in study.data}
    return min(same, key=lambda s: not kinds & {d.name for d in s.data}, default=None)


def _changed(result: Result, variant: str) -> str:
    """Which verdicts a variation turns round, at the budgets that it was run with."""
    frame = result.frame
    budgets = set(frame.loc[frame["variant"] == variant, "epsilon"])
    if not budgets:
        return "not run"
    plain, varied = (
        judge(result.study, frame[frame["epsilon"].isin(budgets)], name) for name in ("", variant)
    )
    turned, left_open = [], 0
    for before, after in zip(plain, varied, strict=True):
        left_open += after.verdict in OPEN
        known = not {before.verdict, after.verdict} & set(OPEN)
        if known and before.verdict != after.verdict:
            turned.append(
                f"“{before.claim.sentence}” {after.verdict}: effect {_short(after.finding.effect)}"
                f" for {_short(before.finding.effect)}"
            )
    private = ", ".join(f"{e:g}" for e in sorted(budgets) if e < math.inf)
    said = f"at ε = {private}: {'; '.join(turned) if turned else 'no verdict turns'}"
    return escape(f"{said} ({left_open} of {len(varied)} left open)" if left_open else said)


def _data(result: Result) -> str:
    study, frame = result.study, result.frame
    said = "".join(
        f"<li>{escape(data.name)}: {escape(data.says)}</li>" for data in study.data if data.says
    )
    seconds = float(_per_cell(frame)["seconds"].sum())
    sizes = ", ".join(f"{name} = {_range(frame[name])}" for name in ("n", "d"))
    repetitions = int(frame["repetition"].max()) + 1
    return (
        f"<ul>{said}</ul><p>{escape(sizes)}; {repetitions} repetitions; δ = "
        f"{escape(_range(frame['delta']))}; neighbours: {study.neighbours}; {result.grid} grid, "
        f"privtail {escape(', '.join(sorted(set(frame['version']))))}, "
        f"{len(_per_cell(frame))} fits, {seconds:.0f} seconds of one core.</p>"
    )


def _per_cell(frame: pd.DataFrame) -> pd.DataFrame:
    cell = ["variant", "dataset", "method", "accounting", "epsilon", "repetition", "seconds"]
    return frame.drop_duplicates(cell)


def _commands(paper: str, results: list[Result]) -> str:
    size = "--full" if all(r.full for r in results) else "--quick"
    return (
        f"<pre>privtail reproduce {paper} {size}     # these studies\n"
        f"privtail reproduce {results[0].study.name} --full     # one of them, in full\n"
        "python -m experiments.report     # this page</pre>"
    )


# --- Pieces of a page --------------------------------------------------------------------------


def _table(heads: Iterable[str], rows: list[list[str]]) -> str:
    if not rows:
        return ""
    number = '<td class="number"'
    top = "".join(
        f'<th class="number">{head}</th>' if cell.startswith(number) else f"<th>{head}</th>"
        for head, cell in zip(heads, rows[0], strict=True)
    )
    return f"<table><tr>{top}</tr>{''.join(map(_row, rows))}</table>"


def _row(cells: list[str]) -> str:
    return f"<tr>{''.join(c if c.startswith('<td') else f'<td>{c}</td>' for c in cells)}</tr>"


def _cell(text: str) -> str:
    return f'<td class="number">{escape(text)}</td>'


def _number(value: float) -> str:
    return _cell(_short(value))


def _details(title: str, content: str, *, opened: bool = False) -> str:
    if not content:
        return ""
    head = f"<details{' open' if opened else ''}><summary>{escape(title)}</summary>"
    return f'{head}<div class="scroll">{content}</div></details>'


def _link(anchor: str, text: str) -> str:
    return f'<a href="#{anchor}">{escape(text)}</a>'


def _word(verdict: Verdict) -> str:
    said = f'<span class="verdict {CLASSES[verdict.verdict]}">{verdict.verdict}</span>'
    return f"{said}<br><small>{escape(verdict.reason)}</small>" if verdict.reason else said


def _effect(finding: Finding) -> list[str]:
    if math.isnan(finding.effect):
        return [_cell("–"), _cell("–"), ""]
    low, high = _short(finding.low), _short(finding.high)
    return [_number(finding.effect), _cell(f"{low} … {high}"), escape(finding.what)]


def _range(values: pd.Series) -> str:
    low, high = float(values.min()), float(values.max())
    return _short(low) if low == high else f"{_short(low)} … {_short(high)}"


def _short(value: float) -> str:
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "–")
    if value == int(value) and abs(value) < 1e7:
        return f"{int(value):,}"
    text = f"{value:.{PRECISION}g}"
    return text.replace("-", "−").replace("e−0", "e−").replace("e+0", "e")


def lines(results: list[Result]) -> Iterator[str]:
    """The table of claims as plain text, in at most `WIDE` columns."""
    for result in results:
        yield result.study.name
        readings = _readings(result)
        for v, *others in zip(result.verdicts, *readings.values(), strict=True):
            notes = [note for note in (_effects(v.finding), v.reason) if note]
            notes += [f"if read as {n}: {o.verdict}" for n, o in zip(readings, others, strict=True)]
            said = f"{v.claim.sentence} [{'; '.join(notes)}]"
            first = f"  {v.verdict:<21}"
            yield from textwrap.wrap(
                said, WIDE, initial_indent=first, subsequent_indent=" " * len(first)
            )


def _effects(finding: Finding) -> str:
    if math.isnan(finding.effect):
        return ""
    low, high = _short(finding.low), _short(finding.high)
    return f"{_short(finding.effect)}, {low} … {high}: {finding.what}"


def tallies(results: list[Result]) -> Iterator[tuple[str, str, list[int]]]:
    """How many claims of each paper hold, and how many checks of our own beside them."""
    for whose, ours in (("of the paper", False), ("our own", True)):
        for paper in (*PAPERS, "all"):
            words = [
                v.verdict for r in results if paper in (r.study.paper, "all")
                for v in r.verdicts if v.claim.ours is ours
            ]  # fmt: skip
            if words:
                yield paper, whose, [words.count(word) for word in CLASSES]


def totals(results: list[Result]) -> Iterator[str]:
    """The tallies as plain text."""
    yield f"{'':<24}" + "".join(f"{word:>22}" for word in CLASSES)
    for paper, whose, counted in tallies(results):
        yield f"{f'{paper}, {whose}':<24}" + "".join(f"{count:>22}" for count in counted)


def build(
    results: Path = RESULTS, out: Path = PAGE, most: int = figures.MOST_LINES
) -> list[Result]:
    """Write the pages of the results that are there; return them."""
    known = list(studies().values())
    loaded = load(results, known)
    out.parent.mkdir(parents=True, exist_ok=True)
    pages = {out: overview(loaded, known, results, out.name)}
    for paper in dict.fromkeys(r.study.paper for r in loaded):
        where = out.with_name(beside(out.name, paper))
        pages[where] = page(paper, loaded, results, out.name, most)
    for where, text in pages.items():
        draft = where.with_suffix(".draft")
        draft.write_text(text, encoding="utf-8")
        draft.replace(where)
    return loaded


def main() -> None:
    """Build the report, or print the table of claims alone."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=PAGE)
    parser.add_argument("--lines", type=int, default=figures.MOST_LINES, help="of a panel")
    parser.add_argument("--claims", action="store_true", help="print every claim; write no page")
    asked = parser.parse_args()
    if asked.claims:
        results = load(asked.results, studies().values())
        print("\n".join(lines(results)), end="\n\n")
    else:
        results = build(asked.results, asked.out, asked.lines)
    print("\n".join(totals(results)))
    if not asked.claims:
        print(f"wrote {asked.out} and a page beside it for each paper; --claims prints every claim")


if __name__ == "__main__":
    main()
