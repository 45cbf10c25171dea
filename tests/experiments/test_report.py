"""The report is built from results alone, is whole, and needs nothing else."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from experiments import estimates, figures, report, runner, verified
from experiments.claims import HOLDS, NO_RATE, Finding, judge
from experiments.papers import studies
from experiments.runner import run_study
from privtail.algorithms.theory import PROMISES

NAMES = ("wang2020-figure-1a", "wang2020-figure-4a")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for name in NAMES:
        study = studies()[name]
        small = {k: min(v, 200.0) for k, v in study.quick.fixed.items()}
        grid = replace(
            study.quick, fixed=small, points=tuple(100.0 * (i + 1) for i, _ in
            enumerate(study.quick.points)), epsilons=(1.0,), repetitions=2, varied=2,
        )  # fmt: skip
        varied = next((c.name for c in study.choices if c.variant), "")
        kept = tuple(c if c.name == varied else replace(c, other=None) for c in study.choices)
        study = replace(study, choices=kept)  # one variation is enough
        run_study(study, processes=1, build=folder / "build", results=folder, grid=grid)
    return folder


@pytest.fixture(scope="module")
def page(results):
    out = results / "reports" / "page.html"
    report.build(results, out)
    return out.with_name("page-wang2020.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def overview(results, page):
    return (results / "reports" / "page.html").read_text(encoding="utf-8")


def test_the_page_of_all_papers_says_what_was_learned_and_where_the_rest_is(overview, page):
    assert 'href="page-wang2020.html"' in overview
    assert 'href="page-wang2019.html"' not in overview, "it has no results"
    for text in (overview, page):
        assert report.LEARNED["wang2020"].replace("'", "&#x27;") in text
        assert "Claims of the paper: " in text
    assert "<svg" not in overview
    assert "0 of 2 studies were run in full; the others would take " in overview or (
        "2 of 2 studies were run in full." in overview
    )
    assert "<th>full</th>" in overview or '<th class="number">full</th>' in overview
    assert "Without results: " in overview
    assert set(report.LEARNED) == set(report.PAPERS)


def test_every_study_with_results_is_drawn_beside_its_claims(page):
    for name in NAMES:
        study = studies()[name]
        assert f'<h3 id="{name}">' in page
        for claim in study.claims:
            assert page.count(claim.sentence.replace("'", "&#x27;")) >= 2, "in both tables"
    assert page.count("<svg") == 2
    labels = re.findall(r'<svg role="img" aria-label="([^"]+)"', page)
    assert len(labels) == 2
    assert "iteration" in labels[0]


def test_a_panel_has_seven_lines_unless_more_are_asked_for(page):
    study = studies()[NAMES[0]]
    shown = figures.lines(study)
    assert len(shown) == 7
    assert {"auto", "RGD", "Algorithm 4", "Algorithm 3, κ = 2"} <= {name for name, _ in shown}
    every = figures.lines(study, 20)
    assert len(every) == 14
    assert "7 of 14 lines are not drawn" in page


def test_the_page_needs_nothing_else(page):
    assert "<script" not in page
    assert "<img" not in page
    links = re.findall(r'(?:src|href)="([^"#][^"]*)"', page)
    assert links == ["page.html"]


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    linked = set(re.findall(r'href="#([^"]+)"', page))
    assert linked <= set(ids)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)
    assert not any(" " in name for name in ids), "a blank would end the address in url()"


def test_it_says_which_lines_are_of_the_present_code(results, monkeypatch):
    known = [studies()[name] for name in NAMES]
    loaded = report.load(results, known)
    lines = sum(len(study.methods) for study in known)
    recorded = {name: {"date": "2026-01-02", "commit": "abc1234"} for name in NAMES}
    monkeypatch.setattr(verified, "remembered", lambda folder: recorded)
    monkeypatch.setattr(report, "lacking", lambda study, folder, full: [])
    said = report._versions(loaded, results)
    assert f"{lines} of {lines} lines (a method in a study) are of the present code of" in said
    assert "of 2026-01-02 (commit abc1234)." in said
    assert "Stale" not in said
    monkeypatch.setattr(
        report, "lacking", lambda s, folder, full: ["auto"] if s.name == NAMES[0] else []
    )
    said = report._versions(loaded, results)
    assert f"{lines - 1} of {lines} lines" in said
    assert f"Stale: {NAMES[0]} (auto)." in said
    assert "make stale" in said
    del recorded[NAMES[1]]
    assert f"{NAMES[1]} (all)" in report._versions(loaded, results)


def test_verdicts_that_differ_in_full_are_named(results, tmp_path):
    study = studies()[NAMES[1]]
    frame = pd.read_parquet(results / f"{study.name}.parquet")
    runner.write(frame, tmp_path / f"{study.name}.parquet", seconds=60.0)
    (quick,) = report.load(tmp_path, [study])
    assert not quick.full
    assert "verdicts differ" not in report._sizes([quick], tmp_path)
    turned = frame.assign(value=1 / frame["value"])
    runner.write(turned, tmp_path / "full" / f"{study.name}.parquet", seconds=7200.0)
    (whole,) = report.load(tmp_path, [study])
    assert whole.full
    said = report._sizes([whole], tmp_path)
    pairs = zip(quick.verdicts, whole.verdicts, strict=True)
    differ = [(a, b) for a, b in pairs if a.verdict != b.verdict]
    assert f"{len(differ)} of {len(whole.verdicts)} verdicts differ" in said
    assert differ
    assert all(b.claim.sentence in said for _, b in differ)
    assert "1 of 1 studies were run in full." in said
    assert '<td class="number">1</td></tr>' in said, "an hour of two cores"


QUOTED = {"noisy-descent", "random-round-descent"}
"""Algorithms of papers that were not at hand; the five papers compare with them."""


def test_every_theorem_of_the_papers_with_a_rate_has_a_fitted_exponent():
    for promise in PROMISES:
        if promise.name in QUOTED or not promise.studies:
            continue
        found = []
        for name in promise.studies:
            study = studies()[name]
            every = [fits(study, metric=m.name, epsilon_true=1.0) for m in study.metrics]
            frame = pd.concat(every)
            if study.axis.name == "epsilon":
                frame["x"] = frame["epsilon"]
            found += [v.finding.theory for v in judge(study, frame)]
        assert not np.isnan(found).all(), f"{promise.name}, {promise.theorem}"
    without = {p.name for p in PROMISES if not p.studies}
    assert without == {
        "one-pass-descent", "heavy-tailed-frank-wolfe", "truncated-lasso",
        "truncated-sparse-regression", "smoothed-peeling",
    }, "none of the five papers"  # fmt: skip


def test_theory_and_practice_are_one_table(tmp_path):
    study = studies()["tao2022-sparse-s"]
    frame = fits(study).assign(epsilon_true=1.0)
    result = report.Result(study, frame, full=False, verdicts=judge(study, frame))
    said = report._rates([result], "page.html")
    assert "<th>study</th>" in said
    cells = re.findall(r"<td[^>]*>(.*?)</td>", said)
    assert cells[2:5] == ["1.5", "≤ 1.7", "0.5"], "theorem, what is allowed, lower bound"
    assert report._allowed(Finding(holds=True, least=-0.65, most=-0.35)) == "−0.65 … −0.35"
    assert report._allowed(Finding(holds=True, least=-1.1)) == "≥ −1.1"
    assert report._fitted(Finding(holds=None, effect=1.0, what=f"a / b {NO_RATE}"))[0].count("–")


def test_a_page_begins_with_what_was_learned_and_ends_with_the_claims(overview, page):
    pages = [overview, page, *(p.read_text("utf-8") for p in report.PAGE.parent.glob("*.html"))]
    for text in pages:
        learned = text.index("Claims of the paper: ")
        assert learned < text.index('<h2 id="claims">')
        if "<svg" in text:
            assert learned < text.index("<svg")
            assert text.rindex("</svg>") < text.index('<h2 id="claims">')


def test_true_epsilons_choices_and_commands_are_there(page):
    assert "true ε" in page
    assert "privtail reproduce wang2020 --quick" in page
    for choice in studies()[NAMES[0]].choices:
        assert f"<code>{choice.name}</code>" in page
    assert "not measured" not in page


def test_the_same_results_give_the_same_page(results, page):
    (again,) = report.load(results, [studies()[NAMES[1]]])
    there = [r.study.name for r in report.load(results, studies().values())]
    assert report.section(again, there) in page


def test_the_claims_are_printed_too(results, page):
    assert page.endswith("</html>\n")
    loaded = report.load(results, studies().values())
    lines = list(report.lines(loaded))
    assert max(map(len, lines)) <= report.WIDE
    starts = [line for line in lines if line[:3].strip() and line.startswith("  ")]
    assert len(starts) == sum(len(studies()[name].claims) for name in NAMES)
    assert any(line.startswith(f"  {HOLDS}") for line in lines)
    counted = {(paper, whose): sum(n) for paper, whose, n in report.tallies(loaded)}
    assert counted["all", "of the paper"] + counted["all", "our own"] == len(starts)
    ours = [c for name in NAMES for c in studies()[name].claims if c.ours]
    assert counted["wang2020", "our own"] == len(ours) > 0
    assert list(report.totals(loaded))[-1].startswith("all, our own")


def test_another_reading_of_the_paper_has_verdicts_of_its_own(tmp_path):
    study = studies()["xie2023-figure-2"]
    few = {"n": 300, "batch_clipped": 0.5, "batch_holland": 0.5}
    grid = replace(study.quick, fixed=few, points=(20.0,), epsilons=(1.0,), repetitions=2)
    kept = tuple(m for m in study.methods if m.name in ("DP-SPGD", "DP-SPGD(H)"))
    study = replace(study, methods=kept)
    run_study(study, processes=1, build=tmp_path / "build", results=tmp_path, grid=grid)
    (result,) = report.load(tmp_path, [study])
    assert study.readings == {"errors = 1": "scale and shape, less the median"}
    assert set(result.frame["variant"]) == {"", "errors = 1"}
    said = report.section(result)
    assert "<th>verdict, if read as scale and shape, less the median</th>" in said
    assert said.count("Two readings: the paper&#x27;s (1/2, 1/2) log-logistic") == 1
    told = " ".join(" ".join(report.lines([result])).split())
    assert told.count("if read as scale and shape, less the median:") == len(study.claims)


def test_the_claims_alone_write_no_page(results, tmp_path, monkeypatch, capsys):
    out = tmp_path / "page.html"
    monkeypatch.setattr(
        "sys.argv", ["report", "--claims", "--results", str(results), "--out", str(out)]
    )
    report.main()
    assert NAMES[0] in capsys.readouterr().out
    assert not out.exists()


def test_figures_have_labels_with_units_and_a_method_looks_the_same_in_all_panels(results):
    study = studies()[NAMES[0]]
    frame = pd.read_parquet(results / f"{study.name}.parquet")
    figure = figures.draw(study, frame, study.metrics[0], 20)
    colours: dict[str, set[str]] = {}
    for place in figure.axes:
        assert place.get_xlabel() == study.axis.label
        for line in place.get_lines():
            colours.setdefault(line.get_label(), set()).add(line.get_color())
    assert figure.axes[0].get_ylabel() == study.metrics[0].label
    assert len(colours) >= len(study.methods)
    assert all(len(found) == 1 for found in colours.values())


def fits(study, **changed):
    """A row for every cell of a study's quick grid."""
    return pd.DataFrame([
        {
            "variant": c.variant, "dataset": c.dataset, "method": c.method, "x": c.x,
            "accounting": c.accounting, "epsilon": c.epsilon, "repetition": c.repetition,
            "metric": study.metrics[0].name, "value": 1.0 + c.repetition, **changed,
        }
        for c in study.cells()
    ])  # fmt: skip


def test_a_baseline_without_a_budget_is_a_level_line_beside_the_budgets():
    study = studies()["wang2020-aggregate-epsilon"]
    frame = fits(study)
    frame["x"] = frame["epsilon"]
    (place,) = figures.draw(study, frame, study.metrics[0]).axes
    low, high = place.get_xlim()
    assert 0.1 < low < 0.5
    assert 4 < high < 10
    assert {"no data, w = 0", "least squares, not private"} <= set(
        place.get_legend_handles_labels()[1]
    )


def test_budgets_are_overlaid_where_the_paper_overlays_them():
    study = studies()["wang2019-figure-1"]
    frame = fits(study, metric=study.metrics[0].name, axis="iteration")
    frame["x"] = frame["repetition"] + 1.0
    figure = figures.draw(study, frame, study.metrics[0])
    assert [place.get_title() for place in figure.axes] == [d.name for d in study.data]
    for place in figure.axes:
        said = place.get_legend_handles_labels()[1]
        assert said == ["ε = 0.1", "ε = 0.5", "ε = 2", "ε = 5", "not private"]
    assert "auto" in report._left_out(study, figures.MOST_LINES)


def test_a_lower_bound_is_a_line_where_it_is_another_slope():
    labels = {}
    for name in ("tao2022-sparse-s", "tao2022-strong-d", "wang2022-n"):
        study = studies()[name]
        places = figures.draw(study, fits(study), study.metrics[0]).axes
        labels[name] = places[0].get_legend_handles_labels()[1]
    assert {"slope of the theorem", "slope of the lower bound"} <= set(labels["tao2022-sparse-s"])
    assert "slope of the theorem and of the lower bound" in labels["tao2022-strong-d"]
    assert not any("lower" in label for label in labels["wang2022-n"])


def test_a_study_of_one_x_has_a_row_for_every_variation_and_all_accountings():
    study = studies()["xie2023-parameters-lasso"]
    (place,) = figures.draw(study, fits(study), study.metrics[0]).axes
    rows = [label.get_text() for label in place.get_yticklabels()]
    assert rows == ["as chosen", *(c.variant for c in study.choices if c.variant)]
    said = place.get_legend_handles_labels()[1]
    assert {"DP-SPGD, as printed", "DP-SPGD", "auto"} <= set(said)


def test_long_labels_are_broken_and_no_label_says_it_twice():
    study = studies()["xie2023-figure-3"]
    rmse = study.metrics[1]
    frame = fits(study, metric=rmse.name)
    assert "\n" in figures.draw(study, frame.assign(x=1.0), rmse).axes[0].get_ylabel()
    assert figures.name("no privacy", "no privacy") == "no privacy"
    assert figures.name("RGD", "no privacy") == "RGD, not private"


def test_a_runaway_curve_does_not_flatten_the_others():
    low, high = figures._limits(np.array([0.01, 0.1, 1.0, 1e9]), logarithmic=True)
    assert low < 0.01
    assert 1 < high < 1e6


def test_times_are_estimated_from_measured_ones(results):
    study = studies()[NAMES[0]]
    quick = estimates.estimate(study, full=False, results=results)
    full = estimates.estimate(study, full=True, results=results)
    assert 0 < quick < full
    assert estimates.estimate(study, full=False, results=results / "none") is None


def test_the_pages_that_are_there_are_small_and_say_what_their_figures_show():
    for page in report.PAGE.parent.glob("*.html"):
        assert page.stat().st_size < 1_500_000, page.name
        text = page.read_text(encoding="utf-8")
        told = re.findall(r'<svg role="img" aria-label="([^"]+)"', text)
        assert len(told) == text.count("<svg"), page.name
        lines = [label.split("Lines: ")[1] for label in told if "Lines: " in label]
        assert all(line.count(";") < figures.MOST_LINES for line in lines), page.name


@pytest.mark.parametrize("study", studies().values(), ids=lambda study: study.name)
def test_no_caption_names_a_method_that_is_not_drawn(study):
    drawn = [method for method, _ in figures.lines(study)]
    known = {m.name for other in studies().values() for m in other.methods if len(m.name) > 2}
    for text in (study.note, *(figures.label(study, metric) for metric in study.metrics)):
        named = {name for name in known if name in text}
        assert all(any(name in line for line in drawn) for name in named), named


def test_links_within_the_pages_that_are_there_lead_somewhere(root):
    for path in (root / "reports").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        named = set(re.findall(r'id="([^"]+)"', text))
        assert set(re.findall(r'href="#([^"]+)"', text)) <= named, path.name


def test_styles_that_repeat_are_said_once():
    plain = (
        "<svg><style>*{a: b}</style>" + '<path style="c: d"/>' * 5 + '<path style="e: f"/></svg>'
    )
    slim = figures._classed(plain)
    assert slim.count("c: d") == 1
    assert slim.count("<path class=") == 5
    assert '<path style="e: f"/>' in slim


def test_a_slimmer_path_goes_through_the_same_points():
    path = 'd="M 54.94 -0.06 \nL 303.99 218.00 \nC 1.00 2.50 3 4 5.55 6.05 \nz\n"'
    tokens = [re.findall(r"[A-Za-z]|-?[\d.]+", p[3:-1]) for p in (path, figures._rounded(path))]
    assert len(tokens[0]) == len(tokens[1])
    for wide, slim in zip(*tokens, strict=True):
        assert wide == slim or abs(float(wide) - float(slim)) < 0.1
