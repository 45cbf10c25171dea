"""The table of methods in miniature: baselines, runner, report, page, and peers that are here."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz
from scipy.special import ndtr

from benchmarks.comparison import baselines, figures, methods, page, peers, report, runner
from benchmarks.comparison.baselines import Line
from benchmarks.comparison.methods import Fitted, Method
from benchmarks.comparison.problems import Problem, Sample, problems


def sample(n: int = 2_000, d: int = 3, *, classes: int = 0, seed: int = 0) -> Sample:
    rng = np.random.default_rng(seed)
    w, X = np.array([1.0, -2.0, 0.5])[:d], rng.normal(size=(2 * n, d))
    mean = X @ w + 1
    y = mean + 0.1 * rng.normal(size=2 * n)
    if classes:
        y = np.digitize(y, [0.0, 2.0][: classes - 1]).astype(float)
    return Sample(
        X=X[:n], y=y[:n], X_test=X[n:], y_test=y[n:], mean=None if classes else mean[n:],
        slopes=None if classes else w,
    )  # fmt: skip


def easy(name: str = "easy", *, classes: int = 0, **changed: object) -> Problem:
    options = {"n": 2_000, "d": 3, "group": "laws", "epsilons": (0.5, 1.0)} | changed
    return Problem(
        name=name, classes=classes, draw=lambda r: sample(classes=classes, seed=r), **options
    )


def error(line: Line, problem: Problem, records: Sample) -> float:
    predicted = line.predict(records.X_test, problem.classes)
    return problem.scores(records, predicted, line.slopes)["error"]


# ------------------------------------------------------------------------------- baselines


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (8.0, 1e-3)])
def test_mu_spends_exactly_the_budget(epsilon: float, delta: float) -> None:
    mu = baselines.gaussian_mu(epsilon, delta)
    spent = ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2)
    assert spent == pytest.approx(delta, rel=1e-6)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_clipped_descent_learns_when_there_is_budget(classes: int) -> None:
    problem, records = easy(classes=classes), sample(classes=classes)
    line = baselines.clipped_descent(problem, records, 50.0, 0)
    limit = 0.2 if not classes else 0.15
    assert error(line, problem, records) < limit


def test_noise_of_clipped_descent_is_that_of_replaced_records() -> None:
    # Rows of zeros have no gradient in the slopes: they walk by noise alone. 4,000 slopes make the
    # relative error of a deviation 1.1 %; five of them are a chance below 1e-6.
    n, d, steps, epsilon = 50, 4_000, 20, 0.7
    records = Sample(X=np.zeros((n, d)), y=np.zeros(n), X_test=np.zeros((1, d)), y_test=np.zeros(1))
    problem = easy(d=d, n=n)
    line = baselines.clipped_descent(problem, records, epsilon, 1, steps=steps, clip=3.0)
    mu = baselines.gaussian_mu(epsilon, problem.delta)
    expected = steps * 2 * 3.0 / (n * mu)
    assert np.std(line.slopes) == pytest.approx(expected, rel=0.055)


def test_noise_of_dp_sgd_is_larger_under_smaller_budgets() -> None:
    noises = [baselines.sgd_noise(epsilon, 1e-5, 100) for epsilon in (0.5, 1.0, 2.0)]
    assert noises[0] > noises[1] > noises[2] > 0


def test_adassp_with_true_bounds_is_least_squares_when_there_is_budget() -> None:
    problem, records = easy(), sample()
    line = baselines.adassp(problem, records, 1e3, 0, baselines.oracle(records, 1.0))
    assert error(line, problem, records) < 1.02 * error(
        baselines.least_squares(problem, records), problem, records
    )
    wide = baselines.adassp(problem, records, 0.5, 0, baselines.guessed(problem))
    assert error(wide, problem, records) > 5 * error(line, problem, records)


def test_bounds_of_an_oracle_hold_and_guesses_know_nothing() -> None:
    records = sample()
    bounds = baselines.oracle(records, 1.0)
    assert (np.abs(records.X) <= bounds.features).all()
    assert (np.linalg.norm(records.X / bounds.features, axis=1) <= bounds.row).all()
    assert np.abs(records.y).max() <= bounds.target
    assert set(baselines.guessed(easy()).features) == {baselines.GUESS[0]}


@pytest.mark.parametrize(("classes", "right"), [(0, 1.0), (2, 1.0), (3, 2.0)])
def test_constant_is_the_mean_or_the_most_frequent_label(classes: int, right: float) -> None:
    y = np.array([1.0, 1.0, 1.0]) if classes < 3 else np.array([2.0, 2.0, 0.0])
    records = Sample(X=np.zeros((3, 3)), y=y, X_test=np.zeros((1, 3)), y_test=y[:1])
    line = baselines.constant(easy(classes=classes), records)
    assert line.predict(records.X_test, classes) == [right]


# -------------------------------------------------------------------------------- problems


def test_problems_are_drawn_alike_for_everybody_and_anew_for_every_repetition() -> None:
    small = [p for p in problems() if p.n <= 1_000 and p.d == 10]
    assert {p.classes for p in small} == {0, 2}
    for problem in small:
        first, again, other = problem.draw(0), problem.draw(0), problem.draw(1)
        assert first.X.shape == (problem.n, problem.d)
        assert np.array_equal(first.X, again.X)
        assert not np.array_equal(first.X, other.X)


def test_names_are_unique_and_sizes_true() -> None:
    names = [p.name for p in problems()]
    assert len(set(names)) == len(names)


def test_scores_know_the_truth_units_and_what_is_no_number() -> None:
    records = sample()
    problem = easy()
    right = problem.scores(records, records.mean, records.slopes)
    assert right["error"] == pytest.approx(0.1, rel=0.1)
    assert right["against_mean"] == right["coefficient"] == 0
    assert problem.scores(records, np.full(2_000, np.nan), None)["error"] == math.inf
    against = easy(against_mean=True).scores(records, records.mean, None)
    assert against["error"] == 0
    labelled = sample(classes=2)
    assert easy(classes=2).scores(labelled, 1 - labelled.y_test, None)["error"] == 1


# ---------------------------------------------------------------------------------- runner


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """One problem, a method that counts its fits, and one that fails."""
    calls: list[tuple[float, int]] = []
    seconds = SimpleNamespace(each=0.0)

    def fit(problem: Problem, records: Sample, epsilon: float, seed: int) -> Fitted:
        calls.append((epsilon, seed))
        return Fitted(np.zeros(len(records.y_test)), None, seconds.each)

    def fail(*_: object) -> Fitted:
        raise peers.PeerFailed("no")

    made = [
        Method(name="counted", kind="by hand", fit=fit),
        Method(name="failing", kind="peer", fit=fail, runs=1),
    ]
    monkeypatch.setattr(runner, "METHODS", made)
    monkeypatch.setattr(runner, "problems", lambda: [easy()])
    return SimpleNamespace(calls=calls, methods=made, seconds=seconds)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path, counted: SimpleNamespace) -> None:
    options = {"folder": tmp_path, "processes": 1, "tell": lambda _: None}
    assert runner.run(counted.methods, [easy()], minutes=0, **options) == 20
    assert runner.run(counted.methods, [easy()], runs=2, **options) == 0
    assert sorted(counted.calls) == [(0.5, 0), (0.5, 1), (1.0, 0), (1.0, 1)]
    assert runner.run(counted.methods, [easy()], **options) == 0
    assert len(counted.calls) == len(set(counted.calls)) == 18
    assert len(runner.read("counted", tmp_path)) == 18


def test_rows_are_thrown_away_by_problem(tmp_path: Path) -> None:
    numbers = dict.fromkeys(runner.COLUMNS[1:], 1.0)
    rows = pd.DataFrame([{"problem": name} | numbers for name in ("one", "two", "one")])
    runner.write("counted", rows, tmp_path)
    runner.forget("counted", [easy("one")], tmp_path)
    kept = runner.read("counted", tmp_path)["problem"]
    assert list(kept) == list(kept.cat.categories) == ["two"]


def test_slow_fits_are_repeated_less(tmp_path: Path, counted: SimpleNamespace) -> None:
    counted.seconds.each = 0.5
    runner.run(counted.methods, [easy()], folder=tmp_path, processes=1, tell=lambda _: None)
    assert {seed for _, seed in counted.calls} == {0, 1, 2}


def test_what_fails_has_no_error(tmp_path: Path, counted: SimpleNamespace) -> None:
    runner.run(counted.methods[1:], [easy()], folder=tmp_path, processes=1, tell=lambda _: None)
    assert runner.read("failing", tmp_path)["error"].isna().all()


def test_every_method_fits_a_problem_and_has_a_file_of_its_own() -> None:
    names = [m.name for m in methods.METHODS]
    assert len({runner.path_of(n) for n in names}) == len(names)
    fits = [any(m.fits(p) for p in problems()) for m in methods.METHODS]
    assert all(fits)


# ---------------------------------------------------------------------------------- report


def results(folder: Path, **errors: dict[str, float | tuple[float, ...]]) -> pd.DataFrame:
    """Medians of made-up rows: of a method, by problem, an error or one per repetition."""
    for method, mine in errors.items():
        name = method.replace("_", " ")
        references = ("constant", "least squares", "Huber")
        rows = [
            dict.fromkeys(runner.COLUMNS, math.nan)
            | {"problem": problem, "epsilon": math.inf if name in references else 1.0,
               "repetition": r, "error": e, "mae": e, "seconds": 0.1}
            for problem, given in mine.items()
            for r, e in enumerate(given if isinstance(given, tuple) else (given,))
        ]  # fmt: skip
        runner.write(name, pd.DataFrame(rows), folder)
    return report.medians(folder)


@pytest.fixture
def made_up(tmp_path: Path) -> pd.DataFrame:
    nan = math.nan
    return results(
        tmp_path,
        privtail={"won": (0.9, 1.0, 1.4), "near": 1.04, "lost": 1.5},
        Opacus={"won": 2.0, "near": 1.0, "lost": 1.0},
        diffprivlib={"won": 3.0, "near": 9.0, "lost": (0.1, nan, nan)},
        AdaSSP={"won": 9.0, "near": 9.0, "lost": 1.2},
        **{"AdaSSP,_true_bounds": {"won": 0.1, "near": 0.1, "lost": 0.1}},
        constant={"won": 4.0, "near": 4.0, "lost": 1.25},
        least_squares={"won": 0.5, "near": 1.0, "lost": 1.0},
    )


def test_an_error_counts_by_its_place_between_the_references_of_its_own_data(
    tmp_path: Path,
) -> None:
    """The second repetition is twice as hard as the first, the third beyond any fit."""
    found = results(
        tmp_path,
        privtail={"heavy": (7.0, 14.0, 30.0)},
        Opacus={"heavy": 5.5},
        constant={"heavy": (10.0, 20.0, 15.0)},
        least_squares={"heavy": (4.0, 8.0, 14.99)},
    ).set_index("method")["error"]
    halfway = (15 + 6) / 2
    assert found["privtail"] == pytest.approx(halfway)  # the third counts as twice the constant
    assert found["Opacus"] == pytest.approx(15 - 9 * 3 / 4)
    assert (found["constant"], found["least squares"]) == (15.0, 6.0)


def test_standings_rank_what_may_be_ranked(made_up: pd.DataFrame) -> None:
    table = report.standings(made_up).set_index("problem")
    assert dict(table["rank"]) == {"won": 1, "near": 2, "lost": 3}
    assert set(table["best"]) == {"Opacus"}  # neither an oracle nor what mostly refuses
    assert table.loc["won", "to_best"] == 1
    assert table.loc["lost", "to_best"] == pytest.approx(1.5)
    assert table.loc["won", "closed"] == pytest.approx(3 / 3.5)
    assert table.loc["lost", "to_constant"] == pytest.approx(1.2)


def test_the_report_says_where_it_fails(made_up: pd.DataFrame) -> None:
    said = report.text(made_up)
    assert "first: 1 of 3" in said
    assert "first or within 5 %: 2 of 3" in said
    assert "worse than the constant: 1; worst 1.200 (lost" in said
    lost = next(line for line in said.splitlines() if line.startswith("lost ") and "/5" not in line)
    assert "beaten" not in lost or "Opacus" in lost
    assert list(report.beaten(report.standings(made_up))["problem"]) == ["lost", "near"]
    assert "AdaSSP, true bounds" in said
    assert "AdaSSP, true bounds" not in report.text(made_up, summary=True)


def test_the_part_of_a_gap_in_absolute_errors(tmp_path: Path) -> None:
    found = results(tmp_path, privtail={"p": 2.0}, constant={"p": 3.0}, Huber={"p": 1.0})
    assert report.closed_mae(found, "p", 1.0) == pytest.approx(0.5)
    assert math.isnan(report.part(1.0, 2.0, 2.5))


# ------------------------------------------------------------------------ figures and page


def test_a_figure_has_a_panel_per_problem(made_up: pd.DataFrame) -> None:
    shown = [easy(name, epsilons=(1.0,)) for name in ("won", "near", "lost")]
    figure = figures.draw(made_up, shown)
    titles = [axes.get_title() for axes in figure.axes if axes.axison]
    assert titles == ["won", "near", "lost"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[0] == "privtail"
    assert legend[-2:] == ["constant", "without privacy"]
    assert all("(" in axes.get_ylabel() for axes in figure.axes if axes.axison)


def test_what_leaves_a_panel_is_marked_and_half_of_the_errors_lie_in_a_bar(
    tmp_path: Path,
) -> None:
    found = results(
        tmp_path,
        privtail={"p": (1.0, 1.1, 1.2, 1.3, 1.4)},
        diffprivlib={"p": 1e9},
        constant={"p": (2.0,) * 5},
        least_squares={"p": (1.0,) * 5},
    )
    ours = found.set_index("method").loc["privtail"]
    assert list(ours[["low", "error", "high"]]) == pytest.approx([1.1, 1.2, 1.3])
    (panel,) = (a for a in figures.draw(found, [easy("p", epsilons=(1.0,))]).axes if a.axison)
    marked = [line for line in panel.lines if line.get_marker() == "^" and len(line.get_xdata())]
    assert [line.get_color() for line in marked] == [figures.LOOKS["diffprivlib"].colour]


def test_numbers_of_a_page_are_made_from_results(made_up: pd.DataFrame) -> None:
    draft = "before\n<!-- begin beaten -->\nold\n<!-- end beaten -->\nafter"
    once = page.filled(draft, made_up)
    assert "| lost | 1 | Opacus | 1 | 1.5 | 1.50 | 1.25 |" in once
    assert once.startswith("before\n")
    assert once.endswith("\nafter")
    assert page.filled(once.replace("1.50", "1.01"), made_up) == once
    with pytest.raises(KeyError):
        page.filled("<!-- begin nothing -->\n<!-- end nothing -->", made_up)


def test_figures_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("nothing is made here", encoding="utf-8")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "FIGURES", tmp_path)
    monkeypatch.setattr(page, "FAMILIES", {"laws-labels": page.FAMILIES["laws-labels"]})
    page.publish(runner.RESULTS)
    assert (tmp_path / "laws-labels.svg").read_text(encoding="utf-8").startswith("<svg")


def test_every_made_part_of_the_page_is_what_the_results_say() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(written, report.medians(runner.RESULTS)) == written
    for name in page.PARTS:
        assert f"<!-- begin {name} -->" in written
    for name in page.FAMILIES:
        assert f"figures/{name}.svg" in written
        assert (page.FIGURES / f"{name}.svg").is_file()


# ----------------------------------------------------------------------------------- peers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diffprivlib", "Opacus", "JAX-Privacy", "DP-EBM"])
@pytest.mark.parametrize("classes", [0, 2])
def test_peers_answer(name: str, classes: int) -> None:
    method = next(m for m in methods.METHODS if m.name == name)
    if missing := methods.missing(method):
        pytest.skip(missing)
    problem, records = easy(classes=classes), sample(classes=classes)
    found = method.fit(problem, records, 3.0, 0)
    assert found.predicted.shape == records.y_test.shape
    assert found.seconds > 0
    if classes:
        assert set(found.predicted) <= {0.0, 1.0}


@pytest.mark.slow
def test_noise_of_jax_privacy_is_that_of_replaced_records() -> None:
    # As above, slopes walk by noise alone. In every fourth step a record is in the batch with
    # probability .04; a step's noise is what solving with these four bands makes of white noise.
    if missing := methods.missing(next(m for m in methods.METHODS if m.name == "JAX-Privacy")):
        pytest.skip(missing)
    n, d, steps, bands = 1_000, 4_000, 500, [0.60990065, 0.5003691, 0.45685387, 0.4110187]
    records = Sample(X=np.zeros((n, d)), y=np.zeros(n), X_test=np.zeros((1, d)), y_test=np.zeros(1))
    problem = easy(d=d, n=n)
    answer = peers.ask("jax_privacy", problem, records, epsilon=0.7, seed=1, clip=3.0, rate=0.25)
    white = baselines.sgd_noise(0.7, problem.delta, steps // 4, 0.04)
    mixed = toeplitz(bands + [0.0] * (steps - 4), np.zeros(steps))
    walked = np.linalg.norm(np.linalg.solve(mixed.T, np.ones(steps)))
    expected = 0.25 * 3.0 * white * walked / (0.01 * n)
    assert np.std(np.array(answer["w"])[:-1]) == pytest.approx(expected, rel=0.055)


@pytest.mark.slow
def test_what_a_peer_raises_is_told() -> None:
    if missing := methods.missing(next(m for m in methods.METHODS if m.name == "diffprivlib")):
        pytest.skip(missing)
    with pytest.raises(peers.PeerFailed, match=r"KeyError|TypeError"):
        peers.ask("diffprivlib", easy(), sample(), epsilon=1.0, seed=0)
