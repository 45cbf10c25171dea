"""``privtail report`` and ``privtail export``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from privtail.linear_model import DPLinearRegression


@pytest.fixture
def model(shell):
    X = np.random.default_rng(0).normal(size=(500, 2))
    fitted = DPLinearRegression(epsilon=5.0, noise="simulated", random_state=0).fit(X, X[:, 0])
    fitted.save("model.json", target="cost", overwrite=True)
    return Path("model.json")


def test_a_page_is_written_once(shell, model):
    shell("report", model, "--out", "page.html", "--title", "Costs")
    assert "<h1>Costs</h1>" in Path("page.html").read_text(encoding="utf-8")
    assert "page.html" in shell.refused("report", model, "--out", "page.html")
    assert "other.json" in shell.refused("report", "other.json", "--out", "new.html")


def test_code_is_printed_or_written(shell, model):
    assert '"x0"' in shell("export", model, "--to", "sql").stdout
    shell("export", model, "--to", "python", "--out", "predict.py")
    assert "def predict(row)" in Path("predict.py").read_text(encoding="utf-8")
