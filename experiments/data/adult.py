"""Adult as W20 uses it: 30,000 random rows, 28,000 to train and 2,000 to test.

The paper does not say how it encodes the 14 attributes. Here the 18,842 rows that are not drawn are
public: a category becomes the share of high incomes in it among them, and all 14 numbers are
centred and scaled by their mean and deviation among them. So no constant depends on the 30,000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from experiments.data.real import table
from experiments.study import DataSet, Doubles, Setting, Task
from privtail.data import adult_schema
from privtail.domains import L2, L2Ball, Slopes, within
from privtail.losses import LogisticLoss, SquaredLoss

TEST = 2_000


def encoded(rng: np.random.Generator, rows: int) -> tuple[Doubles, Doubles]:
    """``rows`` random rows: X (rows, 14) and whether the income is high."""
    frame, schema = table("adult"), adult_schema()
    order = rng.permutation(len(frame))
    drawn, public = frame.iloc[order[:rows]], frame.iloc[order[rows:]]
    high = (public["income"] == ">50K").to_numpy(float)
    columns = []
    for name in (*schema["numeric"], *schema["categories"]):
        seen, here = public[name], drawn[name]
        if name in schema["categories"]:
            shares = pd.Series(high, index=public.index).groupby(seen, observed=True).mean()
            seen, here = (part.map(shares).astype(float) for part in (seen, here))
        columns.append(((here - seen.mean()) / seen.std()).fillna(0.0).to_numpy(float))
    return np.column_stack(columns), (drawn["income"] == ">50K").to_numpy(float)


def _draw(loss: Any, target: Callable[[Doubles], Doubles]) -> Callable[..., Task]:
    def draw(rng: np.random.Generator, setting: Setting) -> Task:
        n = int(setting["n"])
        X, high = encoded(rng, n + TEST)
        y = target(high)
        X_test, y_test = np.column_stack([X[n:], np.ones(TEST)]), y[n:]

        def measure(w: Doubles) -> dict[str, float]:
            margins = X_test @ w
            right = (margins[:, 0] > 0) == (high[n:] > 0)
            return {
                "risk": float(np.mean(loss.values(margins, y_test))),
                "accuracy": float(np.mean(right)),
            }

        return Task(
            X=X[:n], y=y[:n], loss=loss, intercept=True, measure=measure,
            domain=Slopes(
                domain=within(L2(alpha=setting["alpha"]), L2Ball(radius=setting["radius"]))
            ),
            truth={"alpha": setting["alpha"]},
        )  # fmt: skip

    return draw


ADULT_RIDGE = DataSet(
    name="Adult, ridge", draw=_draw(SquaredLoss(), lambda high: 2 * high - 1), needs=("adult",),
    says="income above 50,000 or not, as 1 and -1; 14 features, centred and scaled",
)  # fmt: skip
ADULT_LOGISTIC = DataSet(
    name="Adult, logistic", draw=_draw(LogisticLoss(), lambda high: high), needs=("adult",),
    says="income above 50,000 or not; 14 features, centred and scaled",
)  # fmt: skip
