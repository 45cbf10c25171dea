"""privtail beside diffprivlib, Opacus, clipped gradient descent by hand, and scikit-learn.

``make bench-peers``, or ``python benchmarks/peers.py PYTHON`` where PYTHON has `peers.txt`
installed. n = 1e5 training and 1e5 test rows, d = 10 lognormal columns with heavy-tailed noise,
delta = 1e-5; medians over the runs. What a method asks its user to know is in its name. The
gradient descent by hand draws floating-point noise: it shows utility, and is no mechanism.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

N, D, DELTA, RUNS = 100_000, 10, 1e-5, 3
EPSILONS = (0.1, 0.5, 1.0)
TRUTH = np.array([1, -1, 0.5, -0.5, 0.25, -0.25, 1, -1, 0.5, -0.5])
Answer = Callable[[np.ndarray], np.ndarray]
"""Predictions of a fitted model: numbers, or numbers whose sign is the class."""


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features (N, D) and numeric targets; the class is the sign of the target."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 1.5, (N, D))
    noise = rng.lognormal(0, 1.5, N) - math.exp(1.5**2 / 2)
    return X, X @ TRUTH + 1 + noise


def linear(model: Any) -> Answer:
    """The linear function of a fitted scikit-learn-like model."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    return lambda X: X @ w + b


def privtail_(X: np.ndarray, y: np.ndarray, epsilon: float, seed: int, classify: bool) -> Answer:
    """No bound, no tuning."""
    from privtail import linear_model

    if classify:
        model = linear_model.DPLogisticRegression(epsilon=epsilon, delta=DELTA, classes=[0, 1])
        return linear(model.fit(X, y > 0))
    name = "DPRidge" if hasattr(linear_model, "DPRidge") else "DPLinearRegression"
    return linear(getattr(linear_model, name)(epsilon=epsilon, delta=DELTA).fit(X, y))


def by_hand(X: np.ndarray, y: np.ndarray, epsilon: float, seed: int, classify: bool) -> Answer:
    """Full-batch gradient descent, rows clipped to norm 1, step 1, 100 steps (replace-one)."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    def spent(mu: float) -> float:
        tail = math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
        return float(norm.cdf(-epsilon / mu + mu / 2) - tail - DELTA)

    steps = 100
    std = 2 / N * math.sqrt(steps) / brentq(spent, 1e-3, 50)
    rng = np.random.default_rng(seed)
    Z, w = np.hstack([X, np.ones((N, 1))]), np.zeros(D + 1)
    norms = np.linalg.norm(Z, axis=1)
    for _ in range(steps):
        m = Z @ w
        r = 1 / (1 + np.exp(-m)) - (y > 0) if classify else m - y
        r = r * np.minimum(1, 1 / np.maximum(norms * np.abs(r), 1e-300))
        w = w - (Z.T @ r / N + std * rng.standard_normal(D + 1))
    return lambda T: T @ w[:-1] + w[-1]


def scikit_learn(X: np.ndarray, y: np.ndarray, epsilon: float, seed: int, classify: bool) -> Answer:
    """Not private."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    if classify:
        return linear(LogisticRegression(max_iter=1000).fit(X, y > 0))
    return linear(LinearRegression().fit(X, y))


def diffprivlib_(X: np.ndarray, y: np.ndarray, epsilon: float, seed: int, classify: bool) -> Answer:
    """Tight public bounds: X in [0, 20], |y| <= 50; rows of norm 10 for the classifier."""
    from diffprivlib.models import LinearRegression, LogisticRegression

    if classify:
        model = LogisticRegression(epsilon=epsilon, data_norm=10.0, random_state=seed)
        return linear(model.fit(X, y > 0))
    regression = LinearRegression(
        epsilon=epsilon, bounds_X=(0.0, 20.0), bounds_y=(-50.0, 50.0), random_state=seed
    )
    return linear(regression.fit(np.clip(X, 0, 20), np.clip(y, -50, 50)))


def opacus_(X: np.ndarray, y: np.ndarray, epsilon: float, seed: int, classify: bool) -> Answer:
    """DP-SGD (add or remove one), clipped to 1, rate 1, 5 epochs of batches of 1000."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    goal = (y > 0).astype(np.float32) if classify else y.astype(np.float32)
    rows = torch.utils.data.TensorDataset(torch.tensor(X.astype(np.float32)), torch.tensor(goal))
    model: Any = torch.nn.Linear(D, 1)
    torch.nn.init.zeros_(model.weight)
    loss = torch.nn.BCEWithLogitsLoss() if classify else (lambda m, t: 0.5 * ((m - t) ** 2).mean())
    private, optimizer, loader = PrivacyEngine().make_private_with_epsilon(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=torch.utils.data.DataLoader(rows, batch_size=1000),
        epochs=5, target_epsilon=epsilon, target_delta=DELTA, max_grad_norm=1.0,
    )  # fmt: skip
    for _ in range(5):
        for rows_x, rows_y in loader:
            optimizer.zero_grad()
            loss(private(rows_x)[:, 0], rows_y).backward()
            optimizer.step()
    w, b = model.weight.detach().numpy()[0], float(model.bias)
    return lambda T: T @ w + b


HERE = {
    "privtail": privtail_,
    "gradient descent by hand": by_hand,
    "scikit-learn (not private)": scikit_learn,
}
THERE = {"diffprivlib (tight bounds)": diffprivlib_, "Opacus (norm 1, rate 1)": opacus_}


def measured(methods: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """RMSE, accuracy and seconds of every method at every epsilon, as they are known."""
    warnings.simplefilter("ignore")
    T, t = data(1_000)
    for name, method in methods.items():
        for epsilon in EPSILONS:
            rows = []
            for seed in range(RUNS):
                X, y = data(seed)
                start = time.perf_counter()
                number = method(X, y, epsilon, seed, False)
                middle = time.perf_counter()
                sign = method(X, y, epsilon, seed, True)
                end = time.perf_counter()
                rmse = float(np.sqrt(np.mean((number(T) - t) ** 2)))
                accuracy = float(np.mean((sign(T) > 0) == (t > 0)))
                rows.append((rmse, accuracy, middle - start, end - middle))
            rmse, accuracy, first, second = map(statistics.median, zip(*rows, strict=True))
            yield {
                "method": name, "epsilon": epsilon, "rmse": rmse, "accuracy": accuracy,
                "regression, s": first, "classification, s": second,
            }  # fmt: skip


def versions(*packages: str) -> str:
    """Names and versions of installed packages."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)


def show(row: dict[str, Any]) -> None:
    """Print a row of the table."""
    numbers = f"{row['rmse']:12.4g}{row['accuracy']:12.3f}"
    seconds = f"{row['regression, s']:12.2f}{row['classification, s']:12.2f}"
    print(f"{row['method']:28}{row['epsilon']:8}{numbers}{seconds}", flush=True)


def main(python: str) -> None:
    """Measure here, then in the peers' environment; one table."""
    print(versions("privtail", "scikit-learn", "numpy"))
    print(f"n = {N}, d = {D}, delta = {DELTA}; medians of {RUNS} runs\n")
    columns = ("RMSE", "accuracy", "s", "s (classes)")
    print(f"{'':28}{'epsilon':>8}", *(f"{c:>12}" for c in columns), sep="")
    for row in measured(HERE):
        show(row)
    there = [python, __file__, "--there"]
    with subprocess.Popen(there, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                show(json.loads(line))
            else:
                print(line, end="", flush=True)
    if process.returncode:
        sys.exit(process.returncode)


if __name__ == "__main__":
    if sys.argv[1:] == ["--there"]:
        print("peers:", versions("diffprivlib", "opacus", "torch", "scikit-learn", "numpy"))
        for row in measured(THERE):
            print(json.dumps(row), flush=True)
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit(f"usage: {sys.argv[0]} PYTHON   (one that has benchmarks/peers.txt installed)")
