"""JAX-Privacy: DP-SGD with correlated noise, set as in its example of private logistic regression.

The clipped gradient, the batches, the noise and its calibration are all its own. The calibration is
for replaced records, but not by `BandMFExecutionPlanConfig`: there the accountant and the clipped
gradient both count that a replaced record moves a sum twice as far, which doubles the noise.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import dp_accounting
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax_privacy import batch_selection, clipped_grad, noise_addition
from jax_privacy.experimental import accounting
from jax_privacy.matrix_factorization import toeplitz
from protocol import Answer, Request, linear, serve

RATE, STEPS, BANDS = 0.01, 500, 4
IN_GROUP = BANDS * RATE
"""Records are dealt into as many groups as there are bands; a batch comes from one of them."""


@lru_cache(maxsize=1)
def strategy() -> Any:
    """How far a step's noise is taken back in the next ones."""
    return toeplitz.optimize_banded_toeplitz(n=STEPS, bands=BANDS)


@lru_cache
def deviation(epsilon: float, delta: float) -> float:
    """Of the noise, in clipping norms."""
    multiplier = dp_accounting.calibrate_dp_mechanism(
        lambda: dp_accounting.pld.PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE),
        lambda m: accounting.amplified_bandmf_event(
            m, STEPS, num_bands=BANDS, sampling_prob=IN_GROUP
        ),
        epsilon, delta, tol=1e-3,
    )  # fmt: skip
    return float(multiplier * np.linalg.norm(strategy()))


def loss(w: Any, x: Any, y: Any, *, classes: int) -> Any:
    """Of one record: half its square, or of its label."""
    m = x @ w["slopes"] + w["intercept"]
    if classes > 2:
        return optax.softmax_cross_entropy_with_integer_labels(m, y).mean()
    if classes:
        return optax.sigmoid_binary_cross_entropy(m[:, 0], y).mean()
    return optax.l2_loss(m[:, 0], y).mean()


@partial(jax.jit, static_argnames="classes")
def descended(
    X: Any, y: Any, batches: Any, key: Any, std: Any, clip: Any, rate: Any, *, classes: int
) -> Any:
    """A step per row of batches, which -1 fills up."""
    outputs = classes if classes > 2 else 1
    start = {"slopes": jnp.zeros((X.shape[1], outputs)), "intercept": jnp.zeros(outputs)}
    gradient = clipped_grad(partial(loss, classes=classes), l2_clip_norm=clip, batch_argnums=(1, 2))
    privatizer = noise_addition.matrix_factorization_privatizer(
        toeplitz.inverse_as_streaming_matrix(strategy()), stddev=std * clip, prng_key=key
    )
    optimizer = optax.sgd(rate)

    def step(state: Any, rows: Any) -> Any:
        w, noise, memory = state
        clipped = gradient(w, X[rows], y[rows], is_padding_example=rows < 0)
        noisy, noise = privatizer.update(clipped, noise)
        moves, memory = optimizer.update(noisy, memory)
        return (optax.apply_updates(w, moves), noise, memory), None

    state = start, privatizer.init(start), optimizer.init(start)
    return jax.lax.scan(step, state, batches)[0][0]


def drawn(n: int, seed: int) -> Any:
    """Batches of a hundredth of the rows on average, in an array with room for all but one in 1e12.

    One shape for all seeds is compiled once.
    """
    sampler = batch_selection.CyclicPoissonSampling(IN_GROUP, STEPS, cycle_length=BANDS)
    room = round(RATE * n + 8 * (RATE * n) ** 0.5) + 8
    batches = sampler.batch_iterator(n, rng=seed)
    return np.stack([batch_selection.pad_to_multiple_of(b, room) for b in batches])


def fit(records: dict[str, Any], request: Request) -> Answer:
    """Clip and rate per mean of a batch come with the request: 1 and 0.5 in the example."""
    classes, n = int(records["classes"]), len(records["y"])
    w = descended(
        records["X"].astype(np.float32),
        records["y"].astype(np.int32 if classes > 2 else np.float32),
        drawn(n, request["seed"]), jax.random.key(request["seed"]),
        deviation(request["epsilon"], float(records["delta"])),
        request["clip"], request["rate"] / (RATE * n), classes=classes,
    )  # fmt: skip
    return linear(np.asarray(w["slopes"]).T, w["intercept"])


serve(fit)
