"""The data sets of two papers: what they say of themselves, and what they measure."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pandas as pd
import pytest

from experiments.data import blogfeedback, covertype, online_news, sparse_effects, winnipeg
from experiments.data.stationarity import HALFSPACES, STATIONARY, classified

SIGMOID = {"n": 400, "d": 12, "row_norm": 4.0, "penalty": 0.01}
SPARSE = {"n": 300, "d": 20, "penalty": 0.02, "unit_columns": 0.0, "errors": 0.0}


def rng():
    return np.random.default_rng(0)


def test_halfspaces_have_rows_of_one_norm_and_a_one_lipschitz_loss():
    task = HALFSPACES.draw(rng(), SIGMOID)
    np.testing.assert_allclose(np.linalg.norm(task.X, axis=1), 4.0)
    assert set(task.y) == {0.0, 1.0}
    worst = task.X * task.loss.derivatives(np.zeros((task.n, 1)), task.y)
    assert np.linalg.norm(worst, axis=1).max() == pytest.approx(1.0)


def test_the_measured_gradient_is_that_of_the_objective():
    task = HALFSPACES.draw(rng(), {**SIGMOID, "penalty": 0.0})
    w, h = 0.1 * rng().standard_normal((12, 1)), 1e-6
    slopes = [
        (task.measure(w + h * e[:, None])["risk"] - task.measure(w - h * e[:, None])["risk"])
        / (2 * h)
        for e in np.eye(12)
    ]
    assert task.measure(w)["gradient_norm"] == pytest.approx(np.linalg.norm(slopes), rel=1e-5)


def test_proximal_gradient_makes_the_measured_gradient_vanish():
    task = HALFSPACES.draw(rng(), SIGMOID)
    w, step = np.zeros((12, 1)), task.truth["step_size"]
    start = task.measure(w)["gradient_norm"]
    for _ in range(3000):
        g = task.X.T @ task.loss.derivatives(task.X @ w, task.y) / task.n
        w = task.domain.prox(w - step * g, step)
    assert task.measure(w)["gradient_norm"] < 1e-3 * start


def test_wild_models_are_stationary_in_the_loss_and_guess_the_labels():
    """Why a small norm of the gradient says little: the sigmoid is flat far out."""
    task = HALFSPACES.draw(rng(), SIGMOID)
    wild = task.measure(1e6 * rng().standard_normal((12, 1)))
    assert wild["gradient_norm"] == pytest.approx(SIGMOID["penalty"] / 2 * math.sqrt(12), rel=0.01)
    assert wild["wrong"] > 0.2


def test_both_readings_of_log_logistic_errors_are_centred():
    u = (np.arange(1_000_000) + 0.5) / 1_000_000
    assert np.mean(sparse_effects.mu_and_sigma(u)) == pytest.approx(0, abs=0.01)
    assert np.median(sparse_effects.scale_and_shape(u)) == pytest.approx(0, abs=1e-5)
    assert np.mean(sparse_effects.scale_and_shape(u)) > 1e5, "it has no mean"
    tasks = [sparse_effects.LOGISTIC.draw(rng(), {**SPARSE, "errors": e}) for e in (0.0, 1.0)]
    assert (tasks[0].X == tasks[1].X).all()
    assert (tasks[0].y != tasks[1].y).any()


def test_uninformative_features_leave_the_curvature():
    few, many = (
        HALFSPACES.draw(rng(), {**SIGMOID, "d": d, "informative": 10, "radius": 1.0})
        for d in (10, 80)
    )
    assert many.truth["curvature"] == pytest.approx(few.truth["curvature"], rel=0.15)
    assert "gap" in many.measure(np.zeros((80, 1)))


def test_a_gap_of_zero_is_a_best_corner():
    X, y = np.array([[4.0, 0.0]]), np.array([1.0])
    task = classified(X, y, {"radius": 1.0})
    assert task.measure(np.array([[1.0], [0.0]]))["gap"] == STATIONARY
    assert task.measure(np.array([[-1.0], [0.0]]))["gap"] > STATIONARY


@pytest.mark.parametrize("data", [sparse_effects.LASSO, sparse_effects.LOGISTIC])
@pytest.mark.parametrize("unit", [0.0, 1.0])
def test_sparse_effects_have_the_columns_and_the_truth_that_they_say(data, unit):
    task = data.draw(rng(), {**SPARSE, "unit_columns": unit})
    norm = 1.0 if unit else math.sqrt(300)
    np.testing.assert_allclose(np.linalg.norm(task.X, axis=0), norm)
    assert task.truth == {"l1": 10.0, "size": pytest.approx(norm / math.sqrt(300))}
    assert task.measure(np.zeros((20, 1)))["error"] == pytest.approx(math.sqrt(10))


def test_unit_columns_drown_the_signal():
    """Least squares without privacy is worse than zero on columns of norm 1."""
    task = sparse_effects.LASSO.draw(rng(), {**SPARSE, "n": 5000, "unit_columns": 1.0})
    w = np.linalg.lstsq(task.X, task.y, rcond=None)[0].reshape(-1, 1)
    assert task.measure(w)["error"] > 2 * task.measure(np.zeros((20, 1)))["error"]
    task = sparse_effects.LASSO.draw(rng(), {**SPARSE, "n": 5000})
    w = np.linalg.lstsq(task.X, task.y, rcond=None)[0].reshape(-1, 1)
    assert task.measure(w)["error"] < 0.5


def made_up(name: str) -> pd.DataFrame:
    """A table of this name with the columns that a data set reads."""
    random, n = np.random.default_rng(1), 200
    columns: dict[str, object] = {f"f{j}": random.standard_normal(n) for j in range(5)}
    columns["f0"] = 7.0  # a constant
    match name:
        case "covertype":
            values = random.uniform(covertype.LOW, covertype.HIGH, (n, 10))
            columns = {f"m{j}": values[:, j] for j in range(10)} | {
                "soil": random.integers(2, size=n)
            }
            columns["Cover_Type"] = random.integers(1, 8, n)
        case "blogfeedback":
            columns |= {"target": random.integers(0, 50, n)}
            columns |= {"split": np.where(np.arange(n) < 150, "train", "test-2012")}
        case "winnipeg":
            columns |= {"label": random.choice([1, 2, 3, 7], n), "src": "a"}
        case "news":
            columns |= {"row": np.arange(n), "shares": random.integers(0, 3000, n)}
            columns |= {"part": np.where(np.arange(n) < 50, "early_block", "late")}
    return pd.DataFrame(columns)


REAL = [
    (blogfeedback.BLOG, 105), (winnipeg.CROPS, 140), (online_news.NEWS, 105),
    (covertype.LOGISTIC, 140),
]  # fmt: skip


@pytest.fixture
def tables(monkeypatch):
    for module in (blogfeedback, covertype, online_news, winnipeg):
        monkeypatch.setattr(module, "table", made_up)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("data", "trained"), REAL)
def test_real_tables_are_split_at_random_and_scaled_by_their_training_rows(data, trained):
    setting = {"rows": 10_000, "penalty": 0.1}
    task, other = data.draw(rng(), setting), data.draw(np.random.default_rng(1), setting)
    assert task.n == trained
    assert np.isfinite(task.X).all()
    assert not np.array_equal(task.y, other.y)
    sizes = np.sqrt(np.mean(task.X**2, axis=0))
    assert ((np.abs(sizes - 1) < 1e-9) | (sizes == 0)).all()
    found = task.measure(np.zeros((task.d, 1)))
    assert found["risk"] > 0
    if task.loss.targets == "binary":
        assert found["risk"] == pytest.approx(math.log(2))
    else:
        assert found["rmse"] == pytest.approx(math.sqrt(2 * found["risk"]))


@pytest.mark.usefixtures("tables")
def test_a_model_of_raw_rows_is_measured_like_that_of_scaled_ones():
    task = winnipeg.CROPS.draw(rng(), {"rows": 200, "penalty": 0.0})
    w, b = rng().standard_normal(5), 0.3
    centre, spread = task.truth["centre"], task.truth["spread"]
    scaled = np.append(w * spread, b + w @ centre).reshape(-1, 1)
    np.testing.assert_allclose(
        task.X @ scaled[:-1] + scaled[-1], (task.truth["raw"] @ w + b)[:, None], atol=1e-12
    )
    shifted = scaled.copy()
    shifted[-1] += 50.0
    assert task.measure(shifted)["wrong"] == pytest.approx(
        1 - task.measure(-shifted)["wrong"], abs=1e-12
    )
    assert task.measure(scaled)["risk"] != task.measure(scaled[:-1])["risk"]


@pytest.mark.usefixtures("tables")
def test_targets_and_bookkeeping_columns_are_no_features():
    setting = {"rows": 10_000, "penalty": 0.1}
    widths = [data.draw(rng(), setting).d for data, _ in REAL]
    assert widths == [5, 5, 5, 11]


@pytest.mark.usefixtures("tables")
def test_covertype_takes_n_rows_where_n_is_the_axis():
    setting = {"row_norm": 4.0, "penalty": 0.01}
    assert covertype.SIGMOID.draw(rng(), {**setting, "n": 50}).n == 50
    assert covertype.SIGMOID.draw(rng(), {**setting, "n": 50, "rows": 70}).n == 70


@pytest.mark.parametrize("paper", ["wang2019", "xie2023"])
def test_every_choice_is_read_by_somebody_and_says_why(paper):
    module = importlib.import_module(f"experiments.{paper}")
    for study in module.STUDIES:
        assert len({c.name for c in study.choices}) == len(study.choices)
        assert all(c.reason and c.other != c.value for c in study.choices)
        assert study.claims
        assert study.expectation
