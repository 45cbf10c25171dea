"""What is said while a command works, and what it draws."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from privtail.cli import console, picture


def test_long_work_says_a_line_now_and_then(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    line = console._lines("fitting")
    for done in range(1, 101):
        now[0] += 1.0
        line(done, 100, "descent" if done > 50 else "")
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "fitting: round 30 of 100, 70 seconds left",
        "fitting: round 60 of 100 (descent), 40 seconds left",
        "fitting: round 90 of 100 (descent), 10 seconds left",
    ]


def test_the_time_left_does_not_count_what_is_compiled_before_the_first_round(monkeypatch, capsys):
    """Also of a second fit, which counts from one again; a first round tells no pace."""
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    line = console._lines("fitting")
    for _ in range(2):
        now[0] += 300.0
        line(0, 100, "workers")
        for done in range(1, 32):
            now[0] += 1.0 if done > 1 else 100.0
            line(done, 100, "")
    said = capsys.readouterr().err.splitlines()
    assert said == 2 * [
        "fitting: round 1 of 100",
        "fitting: round 31 of 100, 69 seconds left",
    ]


def test_short_work_says_nothing(shell, table):
    said = shell("mean", "claims.csv", "--column", "days", "--epsilon", 1).stderr
    assert len(said.splitlines()) == 1


CURVE = picture.ErrorCurve([0.1, 1.0, 10.0], [1.0, 0.1, 0.01], 1.0, 0.1, 1e-6)


@pytest.mark.parametrize(("count", "noise"), [(1, 0.0), (10, 1.0), (100, 0.0), (300, 1.0)])
def test_pictures_of_any_size(tmp_path, count, noise):
    """Rows are as high with 300 coefficients as with 10, and only the strongest are shown."""
    rng = np.random.default_rng(0)
    coefficients = picture.Coefficients(
        [f"a name that is far too long to stand beside a row, number {j}" for j in range(count)],
        10.0 ** rng.uniform(-9, 9, count), np.full(count, noise),
    )  # fmt: skip
    path = tmp_path / "fit.png"
    with path.open("wb") as file:
        picture.draw(file, "a title", CURVE, coefficients, "png")
    with Image.open(path) as made:
        width, height = made.size
    rows = min(count, picture.MOST_ROWS)
    assert width == pytest.approx(1560, abs=2)
    assert height / rows > 25
    assert height < 1900


def test_what_is_within_noise():
    values, noise = np.array([0.0, 1.9, -2.1, 5.0]), np.array([0.0, 1.0, 1.0, 0.0])
    found = picture.Coefficients(list("abcd"), values, noise)
    assert found.within.tolist() == [True, True, False, False]


def test_a_feature_that_is_not_used_is_drawn_without_a_bar():
    values, noise = np.array([2.0, 0.0, 1.0]), np.array([0.1, np.inf, np.nan])
    _, axes = plt.subplots()
    picture.Coefficients(list("abc"), values, noise).draw(axes)
    assert [text.get_text() for text in axes.texts] == ["1", "2 ± 0.1", "0"]
    bars = [bar.get_segments()[0] for bar in axes.collections]
    assert [round(float(np.ptp(bar[:, 0]))) for bar in bars] == [0, 2 * picture.WITHIN, 0]
    plt.close()


def test_long_names_keep_both_ends():
    short = picture._short("occupation=" + "x" * 80 + "-end")
    assert len(short) == 36 - 1
    assert short.startswith("occupation=")
    assert short.endswith("-end")


@pytest.mark.parametrize("name", ["$\\frac$ and $x^$", "温度 🜚", "a\\b_{1}"])
def test_names_are_drawn_as_they_are(tmp_path, name):
    """No formula is read into them, and no font is missed aloud."""
    coefficients = picture.Coefficients([name], np.ones(1), np.ones(1))
    for kind in picture.FORMATS:
        with (tmp_path / f"fit.{kind}").open("wb") as file:
            picture.draw(file, name, CURVE, coefficients, kind)


def test_warnings_from_public_numbers_are_sentences(shell, table):
    """A cross-validation printed the path of a module and its line of code."""
    cost = (
        "--target",
        "cost",
        "--drop",
        "late",
        "--drop",
        "job",
        "--drop",
        "note",
        "--model",
        "linear",
    )
    said = shell.process(
        "cross-validate", "claims.csv", *cost, "--epsilon", 0.01, "--delta", 0.001, "--folds", 2
    )
    assert said.returncode == 0, said.stderr
    lines = [line for line in said.stderr.splitlines() if "arning" in line]
    assert lines[0].startswith("Warning. δ = 0.001 is above 1/rows")
    assert lines[0].endswith("--delta 1e-05")
    assert lines[1].startswith("Warning. The budget is so small")
    assert ".py:" not in said.stderr
