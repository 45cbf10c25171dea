"""The page about released files: complete, self-contained, and safe to open."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import privtail
from privtail.errors import AccuracyWarning, InvalidInput
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPPoissonRegressor
from privtail.reporting.contents import Content
from privtail.reporting.pages import _picture, most_certain
from privtail.views import Row

SIMULATED = {"noise": "simulated", "random_state": 0}
VOID = {"meta", "br", "rect", "line", "circle", "polyline"}


class Page(HTMLParser):
    """Elements that are open, and everything that a page could load or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.pictures: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        names = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "link", "img", "iframe") or {"src", "href", "onclick"} & names.keys():
            self.outside.append(tag)
        if tag == "svg":
            assert names["role"] == "img"
            self.pictures.append(names["aria-label"])

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=3_000), "<b>odd</b>": rng.normal(size=3_000)})
    cost = frame["age"] + rng.normal(size=3_000)
    model = DPLinearRegression(epsilon=2.0).fit(frame, cost)
    model.save(folder / "model.json", target="cost & more")
    late = (cost > 0).astype(int)
    labels = DPLogisticRegression(epsilon=2.0, classes=[0, 1], **SIMULATED).fit(frame, late)
    found = privtail.evaluate(labels, frame, late, epsilon=1.0)
    content = {"format": "privtail-evaluation", "version": 1, **found.to_dict()}
    (folder / "quality.json").write_text(json.dumps(content))
    mean = privtail.private_mean(frame["age"], epsilon=1.0)
    (folder / "mean.json").write_text(json.dumps(mean.privacy_.to_json()))
    (folder / "statement.json").write_text(json.dumps(model.privacy_.to_json()))
    return folder


def test_a_page_is_complete_and_loads_nothing(folder):
    names = ("model.json", "quality.json", "statement.json")
    text = privtail.report(*(folder / name for name in names), title="A < B")
    page = Page(text)
    assert not page.open
    assert not page.outside
    assert "http" not in text
    assert "<b>odd</b>" not in text
    assert "&lt;b&gt;odd&lt;/b&gt;" in text
    assert any(picture.startswith("ROC curve") for picture in page.pictures)
    assert any("budget" in picture for picture in page.pictures)
    for said in (
        "88.1 %", "Model of cost &amp; more", "privtail verify quality.json", "AUC",
        "recall: the share",
        "does not cover", "every release", "within the promise",
        "percentage below does not hold for the person", "(quality.json)", "not for clipping",
        "nobody edited the numbers", "names and types of columns", "law, sampling",
    ):  # fmt: skip
        assert said in text, said


def test_a_page_says_what_is_compared_and_which_label_is_the_second(folder, tmp_path):
    text = privtail.report(folder / "quality.json")
    for said in (
        "The labels are 0, 1.", "constant accuracy: the accuracy of", "constant log loss: the log",
        "must not have been fitted to these rows",
    ):  # fmt: skip
        assert said in text, said
    X = np.random.default_rng(0).normal(size=(2_000, 1))
    found = privtail.cross_validate(DPLinearRegression(), X, X[:, 0], epsilon=2, **SIMULATED)
    content = {"format": "privtail-evaluation", "version": 1, **found.to_dict()}
    (tmp_path / "folds.json").write_text(json.dumps(content))
    text = privtail.report(tmp_path / "folds.json")
    assert "a kind of model predicts 2,000 rows, by cross-validation" in text
    assert "must not have been fitted" not in text
    assert "constant RMSE: the RMSE of the constant" in text


def test_a_base_level_has_no_interval_and_a_rate_names_its_exposure(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"region": rng.choice(["north", "south"], 5_000)})
    years = pd.Series(rng.uniform(0.5, 1, 5_000), name="years")
    model = DPPoissonRegressor(
        epsilon=2.0, categories={"region": ["north", "south"]}, drop="first", **SIMULATED
    )
    claims = rng.poisson(2 * years * np.where(frame["region"] == "south", 3, 1))
    model.fit(frame, claims, exposure=years).save(tmp_path / "rates.json")
    text = privtail.report(tmp_path / "rates.json")
    assert "region=north is a base level, 0" in text
    assert text.count("stroke-dasharray") == 0
    assert ">base level<" in text
    assert "for one unit of" in text
    assert "from 1 column: region" in text


def test_a_summary_says_shares_by_their_intervals(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "cost": rng.exponential(1e5, 5_000),
            "name": "a",
            "some": np.where(np.arange(5_000) < 2_000, np.nan, 1),
        }
    )
    found = privtail.summarize(frame, epsilon=5, noise="simulated", random_state=0)
    content = {"format": "privtail-summary", "version": 1, **found.to_dict()}
    (tmp_path / "summary.json").write_text(json.dumps(content))
    text = privtail.report(tmp_path / "summary.json")
    assert "Missing cells: at most" in text, "of cost none is"
    assert re.search(r"Missing cells: \d\d\.\d to \d\d\.\d %", text), "of the other two fifths are"
    assert "These columns are left out because they hold no numbers: name." in text
    assert "e+0" not in text.partition("Where the budget went")[0]
    assert "A summary of 2 columns, of 5,000 rows." in text
    assert all(f">{said}</th>" in text for said in ("standard deviation", "median"))


def test_a_private_constant_is_called_one_and_has_no_picture_of_zeros(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=300), "sum": rng.normal(size=300)})
    with pytest.warns(AccuracyWarning, match="slopes"):
        model = DPLinearRegression(epsilon=0.05, noise="simulated", random_state=0).fit(
            frame, rng.normal(size=300)
        )
    model.save(tmp_path / "model.json")
    text = privtail.report(tmp_path / "model.json")
    assert "All slopes are zero: every row has the same prediction. The intercept is" in text
    assert text.count("<figure>") == 1, "the one of the budget"
    assert "open</td>" not in text
    assert "privacy_" not in text


def test_files_of_the_same_rows_have_a_total_and_a_sum(folder):
    text = privtail.report(folder / "model.json", folder / "statement.json")
    assert "Together" not in text, "one statement, in two files"
    text = privtail.report(folder / "model.json", folder / "mean.json")
    total = math.ceil(1000 * most_certain(3.0, 2e-6)) / 10
    assert "ε = 3 and δ = 2e-06" in text
    assert f"{total:.1f} %" in text
    assert hashlib.sha256((folder / "mean.json").read_bytes()).hexdigest() in text


@pytest.mark.parametrize(
    ("neighbours", "persons", "said"),
    [
        ("replace_one", False, "which of two values the row holds"),
        ("zero_out", False, "the row was there, or its place was empty"),
        ("replace_one", True, "of whose rows at most 2 are used"),
        ("zero_out", True, "the person's rows were there"),
    ],
)
def test_an_attacker_tells_what_the_statement_compares(tmp_path, neighbours, persons, said):
    who = {"groups": np.arange(3_000) // 2, "max_rows": 2} if persons else {}
    mean = privtail.private_mean(np.arange(3_000.0), epsilon=1.0, neighbours=neighbours, **who)
    (tmp_path / "a.json").write_text(json.dumps(mean.privacy_.to_json()))
    text = privtail.report(tmp_path / "a.json")
    promised = text.partition("What the promise does not cover")[0]
    assert said in promised
    assert "73.2 %" in promised
    assert ("does not hold for the person" in promised) is not persons
    assert ("belong together" in promised) is persons
    assert "in a table of 3,000 rows" in promised


def test_a_page_on_persons_speaks_of_persons(tmp_path):
    """It said that intervals allow for sampling, which the note of the same evaluation denied."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(3_000, 2)), columns=["a", "b"])
    model = DPLinearRegression(epsilon=2.0, max_rows=2).fit(X, X["a"], groups=np.arange(3_000) // 2)
    for persons in (True, False):
        who = {"groups": np.arange(3_000) // 2, "max_rows": 2} if persons else {}
        found = privtail.evaluate(model, X, X["a"], epsilon=1.0, **who)
        content = {"format": "privtail-evaluation", "version": 1, **found.to_dict()}
        (tmp_path / "quality.json").write_text(json.dumps(content))
        text = privtail.report(tmp_path / "quality.json")
        assert ("% allow for noise and clipping, not for sampling." in text) is persons
        assert ("depends little on any person." in text) is persons
        assert ("depends little on any single row." in text) is not persons
        assert ("If no person is in two files, and no private cell" in text) is persons


def test_log_odds_are_of_a_label(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 2))
    model = DPLogisticRegression(epsilon=5.0, classes=["no", "yes"], **SIMULATED)
    model.fit(X, np.where(X[:, 0] > 0, "yes", "no")).save(tmp_path / "labels.json")
    assert "change of the log-odds of yes if" in privtail.report(tmp_path / "labels.json")


def test_a_release_that_is_not_private_is_not_called_private(folder, tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = DPLinearRegression(epsilon=2.0, **SIMULATED).fit(X, X[:, 0])
    model.save(tmp_path / "simulated.json")
    text = privtail.report(folder / "model.json", tmp_path / "simulated.json")
    assert "NOT PRIVATE" in text
    assert re.search(r"<h3>[^<]*simulated\.json[^<]*</h3><p><strong>NOT PRIVATE", text)  # which one
    assert "within the promise" not in text
    content = json.loads((folder / "model.json").read_text())
    content["statement"]["epsilon"] = 0.5
    (tmp_path / "edited.json").write_text(json.dumps(content))
    assert "within the promise" not in privtail.report(tmp_path / "edited.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"format": []}',
        '{"format": "privtail-model"}',
        '{"format": "privtail-mean"}',
    ],
)
def test_other_files_are_refused_by_name(tmp_path, text):
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"odd\.json|fields?"):
        privtail.report(tmp_path / "odd.json")
    with pytest.raises(InvalidInput, match="no file"):
        privtail.report(tmp_path / "missing.json")


def test_how_often_an_attacker_is_right():
    """Of randomized response, which is as bad as epsilon allows: e^epsilon / (1 + e^epsilon)."""
    assert most_certain(math.log(3), 0) == pytest.approx(0.75)
    assert most_certain(0.0, 0.0) == 0.5
    assert most_certain(1e6, 0) == 1.0


def test_many_numbers_are_a_short_picture(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40))
    model = DPLinearRegression(epsilon=5.0, **SIMULATED).fit(X, 3 * X[:, 33] + X[:, 2])
    model.save(tmp_path / "wide.json")
    text = privtail.report(tmp_path / "wide.json")
    assert "Show all 40 numbers" in text
    assert len(re.findall("<circle", text)) == 25


def test_a_picture_of_numbers_without_intervals_says_so():
    rows = tuple(Row(f"x{j}", 1.0 + j / 40, None, None) for j in range(40))
    content = Content("Model of y", (), rows, True, None, (), (), "model.json")
    assert "The first 25 of 40 numbers" in _picture(content)
    known = replace(content, numbers=(*rows[:-1], Row("x39", 1.0, 0.9, 1.1)))
    assert "clearest" in _picture(known)


def test_a_model_that_was_not_written_is_refused_in_words():
    with pytest.raises(InvalidInput, match=r"report\(\"model.json\"\)"):
        privtail.report()
    with pytest.raises(InvalidInput, match=r"model\.save"):
        privtail.report(object())
