"""Opacus: DP-SGD of a linear module.

The noise comes with the request: Opacus' own search knows added records alone, and finds nothing at
epsilon = .1 and delta = 1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from protocol import Answer, Request, linear, serve

torch.set_num_threads(1)
RATE = 0.01


class Rows(torch.utils.data.Dataset[Any]):
    """Rows that are fetched by whole batches: one by one takes a second per 100,000."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = X, y

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, i: int) -> Any:
        return self.X[i], self.y[i]

    def __getitems__(self, rows: list[int]) -> Any:
        return [(self.X[rows], self.y[rows])]


def together(batch: Any) -> Any:
    """The batch that `Rows` fetched."""
    return batch[0]


def fit(records: dict[str, Any], request: Request) -> Answer:
    """Batches of a hundredth of the rows, 5 epochs, clipped to 1, rate 1 unless it says so."""
    classes = int(records["classes"])
    X = torch.tensor(records["X"].astype(np.float32))
    y = torch.tensor(records["y"]).to(torch.int64 if classes > 2 else torch.float32)
    torch.manual_seed(request["seed"])
    model: Any = torch.nn.Linear(X.shape[1], classes if classes > 2 else 1)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    private, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=request.get("rate", 1.0)),
        data_loader=torch.utils.data.DataLoader(
            Rows(X, y), batch_size=round(RATE * len(y)), collate_fn=together
        ),
        noise_multiplier=request["noise"],
        max_grad_norm=request.get("clip", 1.0),
    )
    for _ in range(request["epochs"]):
        for x, t in loader:
            optimizer.zero_grad()
            m = private(x)
            if classes > 2:
                loss = torch.nn.functional.cross_entropy(m, t)
            elif classes:
                loss = torch.nn.functional.binary_cross_entropy_with_logits(m[:, 0], t)
            else:
                loss = 0.5 * ((m[:, 0] - t) ** 2).mean()
            loss.backward()
            optimizer.step()
    return linear(model.weight.detach().numpy(), model.bias.detach().numpy())


serve(fit)
