"""Results in a notebook: tables and pictures that are escaped, complete, and said in words."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privtail
from privtail.errors import AccuracyWarning
from privtail.linear_model import DPLinearRegression
from privtail.spelling import digits

SIMULATED: Any = {"noise": "simulated", "random_state": 0}
ODD = '<b class="x">odd & "so"</b>'
N = 4_000


def frame() -> pd.DataFrame:
    chance = np.random.default_rng(0)
    place = np.where(np.arange(N) % 4 == 0, ODD, "south")
    x = chance.normal(size=N)
    return pd.DataFrame({ODD: x, "days": x + chance.normal(size=N), "place": place})


def compared() -> Any:
    table, model = frame(), DPLinearRegression(epsilon=2, **SIMULATED)
    X, y = table[[ODD]], table["days"]
    model.fit(X, y)
    return privtail.compare(model, model, X, y, epsilon=1, **SIMULATED)


RESULTS: dict[str, Any] = {
    "count": lambda: privtail.private_count(frame()[[ODD]], epsilon=1, **SIMULATED),
    "groups": lambda: privtail.private_count(
        frame(), by="place", categories=[ODD, "south"], epsilon=1, **SIMULATED
    ),
    "quantile": lambda: privtail.private_quantile(frame()[[ODD]], epsilon=1, **SIMULATED),
    "columns": lambda: privtail.private_quantile(frame()[[ODD, "days"]], epsilon=1, **SIMULATED),
    "histogram": lambda: privtail.private_histogram(frame()[ODD], epsilon=1, **SIMULATED),
    "covariance": lambda: privtail.private_covariance(
        frame()[[ODD, "days"]], epsilon=5, **SIMULATED
    ),
    "correlation": lambda: privtail.private_correlation(
        frame()[[ODD, "days"]], epsilon=5, **SIMULATED
    ),
    "comparison": compared,
    "cross-validation": lambda: privtail.cross_validate(
        DPLinearRegression(), frame()[[ODD]], frame()["days"], epsilon=2, **SIMULATED
    ),
}
PICTURES = {"groups", "quantile", "histogram"}


class Elements(HTMLParser):
    """Elements that are open, and those that a page could load, run, or be told of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.pictures: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in {"rect", "line", "circle"}:
            self.open.append(tag)
        if tag == "svg":
            self.pictures.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"rect", "line", "circle"}:
            assert self.open.pop() == tag


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_shown_as_html(name: str) -> None:
    found = RESULTS[name]()
    text = found._repr_html_()
    page = Elements(text)
    assert not page.open
    assert not {"b", "script", "img", "a", "style"} & set(page.seen)
    assert bool(page.pictures) == (name in PICTURES)
    assert "NOT PRIVATE: simulated" in text
    assert not re.search(r"\b(nan|inf)\b", text.split("<p>")[0])
    for picture in page.pictures:
        assert picture["role"] == "img"
        assert ": " in str(picture["aria-label"])
    if name not in {"count", "histogram", "comparison", "cross-validation"}:
        assert "&lt;b class=" in text


def test_the_words_of_a_picture_are_its_numbers() -> None:
    found = privtail.private_histogram(frame()["days"], edges=[-1, 0, 2], epsilon=1, **SIMULATED)
    said = Elements(found._repr_html_()).pictures[0]["aria-label"]
    low, high = found.conf_int()[0]
    bin_ = f"-1 to 0 {found.counts[0]:.5g}, from {low:.5g} to {high:.5g}"
    assert said == f"Rows in each bin: {bin_}; " + str(said).split("; ", 1)[1]
    assert Elements(found._repr_html_()).seen.count("rect") == 2


def test_what_noise_hides_is_open_or_not_known() -> None:
    with pytest.warns(AccuracyWarning):
        found = privtail.private_quantile(np.arange(30.0), 0.99, epsilon=0.1, **SIMULATED)
    assert "<td>open</td>" in found._repr_html_()
    assert "The quantile is not reliable" in found._repr_html_()


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
@pytest.mark.parametrize("rows", [1, 2, 50])
def test_few_rows_are_shown_too(rows: int) -> None:
    x, two = np.zeros(rows), np.zeros((rows, 2))
    options = {"epsilon": 0.1, "delta": 1e-9, **SIMULATED}
    for found in (
        privtail.private_count(x, **options), privtail.private_quantile(x, **options),
        privtail.private_histogram(x, 1, **options), privtail.private_correlation(two, **options),
    ):  # fmt: skip
        assert not Elements(found._repr_html_()).open


def test_numbers_far_from_zero_are_shown_with_digits_that_tell_them_apart():
    """Six digits said that three quartiles were one, in intervals that did not hold them."""
    x = 1e6 + np.random.default_rng(0).normal(size=20_000)
    chance = {"epsilon": 1.0, "noise": "simulated", "random_state": 1}
    mean, quartiles = privtail.private_mean(x, **chance), privtail.private_quantile(x, **chance)
    histogram = privtail.private_histogram(x, edges=1e6 + np.arange(-1.0, 2.0) / 2, **chance)
    (low, high), lines = mean.conf_int(sampling=False), str(histogram).splitlines()
    shown = [float(part.strip("[],")) for part in str(mean).split()[:3]]
    assert shown == pytest.approx([mean.value, low, high], abs=(high - low) / 50)
    for line, value in zip(str(quartiles).splitlines(), quartiles.value, strict=False):
        assert float(line.split()[2]) == pytest.approx(value, abs=1e-3)
    assert lines[1].startswith("999999.5 to 1000000: ")
    assert lines[2].startswith("1000000 to 1000000.5: ")
    assert "999999.5 to 1000000</th>" in histogram._repr_html_()
    assert "1000000.00" in quartiles._repr_html_() or "999999.99" in quartiles._repr_html_()


def test_no_count_is_shown_as_minus_zero():
    found = privtail.private_count(frame(), epsilon=1.0, noise="simulated", random_state=0)
    below = replace(found, value=np.array(-0.3))
    assert str(below).startswith("rows = 0 [")


def test_digits():
    assert [digits(4, 0.0, 10.0), digits(4, 3.0, 3.0), digits(4, None, np.inf)] == [4, 4, 4]
    assert [digits(4, 999_999.0, 1e6), digits(6, 1e6, 1e6 + 1)] == [9, 10]
    assert digits(4, 1.0, np.nextafter(1.0, 2)) == 17
