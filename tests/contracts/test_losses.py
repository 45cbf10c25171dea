"""Contract of every loss: values, derivatives, claims, and that one row never sees another."""

from __future__ import annotations

import math
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import privtail
from privtail.compilation import Compiled, compiled, interpreted
from privtail.errors import InvalidInput
from privtail.losses import (
    LABELS,
    LOSSES,
    AbsoluteLoss,
    BiweightLoss,
    CustomLoss,
    GeneralLoss,
    HuberLoss,
    Loss,
    MultinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
    loss_by_name,
)
from privtail.trusted.losses.called import loop_of
from privtail.trusted.losses.loops import huber_values

SOURCE = Path(privtail.__file__).parent


def _log_cosh(m, y):
    r = abs(m - y)
    return r + math.log1p(math.exp(-2 * r)) - math.log(2)


def _log_cosh_derivative(m, y):
    return math.tanh(m - y)


def _interpreted_value(m, y):
    return float(str(0.5 * (m - y) ** 2))


def _interpreted_derivative(m, y):
    return float(str(m - y))


LOG_COSH = CustomLoss(
    value=_log_cosh,
    derivative=_log_cosh_derivative,
    name="log-cosh",
    convex=True,
    curvature=1.0,
    lipschitz=1.0,
)
INTERPRETED = CustomLoss(
    value=_interpreted_value,
    derivative=_interpreted_derivative,
    name="interpreted",
    convex=True,
    curvature=1.0,
)
ALL = [pytest.param(loss, id=loss.name) for loss in (*LOSSES, LOG_COSH, INTERPRETED)]
each_loss = pytest.mark.parametrize("loss", ALL)

TARGETS = {
    "real": lambda rng, rows, k: rng.standard_t(2, rows),
    "binary": lambda rng, rows, k: rng.integers(0, 2, rows).astype(float),
    "class": lambda rng, rows, k: rng.integers(0, k, rows).astype(float),
    "count": lambda rng, rows, k: rng.poisson(3.0, rows).astype(float),
    "amount": lambda rng, rows, k: rng.poisson(1.0, rows) * rng.gamma(1.0, 3.0, rows),
}
HOSTILE = [0.0, -0.0, 5e-324, 1e-310, 1.0, 29.9, 30.0, 710.0, 746.0, 1e16, 1e154, 1e300, 1e308]
HOSTILE += [-a for a in HOSTILE] + [np.inf, -np.inf, np.nan]


def draw(loss, rows, seed=0, scale=3.0):
    rng = np.random.default_rng(seed)
    y = TARGETS[loss.targets](rng, rows, loss.outputs)
    return scale * rng.normal(size=(rows, loss.outputs)), y


def kink_distance(loss, margins, y):
    r = np.abs(margins[:, 0] - y)
    if isinstance(loss, (AbsoluteLoss, QuantileLoss)):
        return r
    if isinstance(loss, (HuberLoss, BiweightLoss)):
        return np.abs(r - loss.threshold)
    if isinstance(loss, (PoissonLoss, TweedieLoss)):
        return np.abs(np.abs(margins[:, 0]) - 30)
    return np.full(len(y), np.inf)


# --- the protocol ---------------------------------------------------------------------------


@each_loss
def test_attributes(loss):
    assert isinstance(loss, Loss)
    assert isinstance(loss.name, str)
    assert loss.outputs >= 1
    assert loss.targets in TARGETS
    assert loss.curvature > 0
    assert loss.lipschitz > 0
    assert pickle.loads(pickle.dumps(loss)) == loss  # noqa: S301
    assert hash(loss) == hash(pickle.loads(pickle.dumps(loss)))  # noqa: S301
    with pytest.raises(AttributeError):
        loss.threshold = 2.0


@each_loss
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_shapes_and_dtypes(loss, rows):
    margins, y = draw(loss, rows)
    before = margins.copy(), y.copy()
    for order, dtype in (("C", np.float64), ("F", np.float64), ("C", np.float32)):
        m = np.asarray(margins, dtype=dtype, order=order)
        m.flags.writeable = False
        assert loss.values(m, y).shape == (rows,)
        assert loss.derivatives(m, y).shape == (rows, loss.outputs)
        assert loss.values(m, y).dtype == loss.derivatives(m, y).dtype == np.float64
    np.testing.assert_array_equal(margins, before[0])
    np.testing.assert_array_equal(y, before[1])


@each_loss
def test_refuses_other_shapes(loss):
    margins, y = draw(loss, 5)
    wrong = [(margins[:4], y), (np.ones((5, loss.outputs + 1)), y), (margins, margins)]
    for m, t in [*wrong, (margins[:, 0], y)]:
        with pytest.raises(InvalidInput, match="shape"):
            loss.values(m, t)
        with pytest.raises(InvalidInput, match="shape"):
            loss.derivatives(m, t)


def test_names():
    assert len({loss.name for loss in LOSSES}) == len(LOSSES) == 11
    assert loss_by_name("squared") == SquaredLoss()
    assert loss_by_name("huber", threshold=2.0) == HuberLoss(threshold=2.0)
    with pytest.raises(InvalidInput, match=r"no loss 'hubert'.*huber"):
        loss_by_name("hubert")
    with pytest.raises(InvalidInput, match="takes threshold, got nothing"):
        loss_by_name("huber")


@pytest.mark.parametrize(
    "make",
    [
        lambda: HuberLoss(threshold=0.0),
        lambda: HuberLoss(threshold=math.inf),
        lambda: BiweightLoss(threshold=math.nan),
        lambda: QuantileLoss(quantile=1.0),
        lambda: TweedieLoss(power=0.0),
        lambda: TweedieLoss(power=3.0),
        lambda: TweedieLoss(power=1.5, mean=0.0),
        lambda: TweedieLoss(power=1.5, lowest=-31.0),
        lambda: TweedieLoss(power=1.5, lowest=2.0, highest=1.0),
        lambda: MultinomialLoss(classes=1),
        lambda: MultinomialLoss(classes=2.5),
        lambda: CustomLoss(value=1.0, derivative=math.sin),
        lambda: GeneralLoss(value=max, gradient="sum"),
    ],
)
def test_refuses_parameters(make):
    with pytest.raises(InvalidInput):
        make()


# --- values ---------------------------------------------------------------------------------


def _exact_tweedie(loss, m, y):
    a, y, p = mpmath.mpf(float(m[0])), mpmath.mpf(float(y)), mpmath.mpf(loss.power)
    c = max(mpmath.mpf(-30), min(mpmath.mpf(30), a))
    slope = mpmath.exp((2 - p) * c) - y * mpmath.exp((1 - p) * c)
    own = c if p == 2 else mpmath.exp((2 - p) * c) / (2 - p)
    own -= y * c if p == 1 else y * mpmath.exp((1 - p) * c) / (1 - p)
    return own + slope * (a - c), [slope]


def _exact(loss, m, y):
    """Return (value, derivatives) at one record, by formulas evaluated with 400 digits."""
    m = [mpmath.mpf(float(a)) for a in m]
    y = mpmath.mpf(float(y))
    a, r, s = m[0], m[0] - y, 2 * y - 1
    match loss.name:
        case "squared":
            return r**2 / 2, [r]
        case "logistic":
            return mpmath.log1p(mpmath.exp(-s * a)), [-s / (1 + mpmath.exp(s * a))]
        case "multinomial":
            e = [mpmath.exp(b - max(m)) for b in m]
            p = [b / sum(e) for b in e]
            gradient = [b - (k == int(y)) for k, b in enumerate(p)]
            return mpmath.log(sum(e)) + max(m) - m[int(y)], gradient
        case "huber":
            t = mpmath.mpf(loss.threshold)
            value = r**2 / 2 if abs(r) <= t else t * abs(r) - t**2 / 2
            return value, [max(-t, min(t, r))]
        case "absolute":
            return abs(r), [mpmath.sign(r)]
        case "quantile":
            q = mpmath.mpf(loss.quantile)
            return max((1 - q) * r, -q * r), [(1 - q) * (r > 0) - q * (r < 0)]
        case "smoothed quantile":
            q, w = mpmath.mpf(loss.quantile), mpmath.mpf(loss.width)
            g = max(-q, min(1 - q, r / w))
            return g * (r - w * g / 2), [g]
        case "poisson":
            c = max(mpmath.mpf(-30), min(mpmath.mpf(30), a))
            return mpmath.exp(c) * (1 + a - c) - y * a, [mpmath.exp(c) - y]
        case "sigmoid":
            e = mpmath.exp(s * a)
            return 1 / (1 + e), [-s * e / (1 + e) ** 2]
        case "biweight":
            c = mpmath.mpf(loss.threshold)
            if abs(r) >= c:
                return c**2 / 6, [mpmath.mpf(0)]
            u = 1 - (r / c) ** 2
            return c**2 / 6 * (1 - u**3), [r * u**2]
    raise AssertionError(loss.name)


TWEEDIE = [pytest.param(TweedieLoss(power=p), id=f"power {p:g}") for p in (1.0, 1.1, 1.99, 2.0)]


@pytest.mark.parametrize("loss", [*(pytest.param(loss, id=loss.name) for loss in LOSSES), *TWEEDIE])
def test_values_against_mpmath(loss):
    rng = np.random.default_rng(1)
    boundary = [0.0, 1e-300, 1e-9, 0.5, 1.0, 1.345, 4.685, 20.0, 30.0, 31.0, 37.0, 700.0, 745.0]
    boundary += [709.9, 1e5, 1e150, *rng.uniform(-40, 40, 60), *rng.normal(size=60)]
    first = np.array(boundary + [-b for b in boundary])
    margins = np.column_stack([first, *rng.normal(size=(loss.outputs - 1, first.size))])
    _, y = draw(loss, first.size)
    of_one = _exact_tweedie if loss.name == "tweedie" else _exact
    with mpmath.workdps(400):
        exact = [of_one(loss, m, t) for m, t in zip(margins, y, strict=True)]
        value = np.array([float(v) for v, _ in exact])
        gradient = np.array([[float(g) for g in gs] for _, gs in exact])
    # Where the residual itself is rounded, so are the values near its zero.
    slack = 1e-15 * (np.abs(first) + np.abs(y)) if loss.targets not in LABELS else 0.0
    slack = np.minimum(slack, 1e-12) + 1e-323
    assert np.all(np.abs(loss.values(margins, y) - value) <= 1e-14 * np.abs(value) + slack)
    bound = 1e-14 * np.abs(gradient) + np.reshape(slack, (-1, 1))
    bound += 4e-16 * (loss.name == "multinomial")
    assert np.all(np.abs(loss.derivatives(margins, y) - gradient) <= bound)


@each_loss
def test_derivative_is_the_derivative(loss):
    """Five-point rule, error of order h⁴, away from kinks."""
    margins, y = draw(loss, 300, seed=2)
    h = 1e-3
    keep = kink_distance(loss, margins, y) > 3 * h
    margins, y = margins[keep], y[keep]
    got = loss.derivatives(margins, y)
    for k in range(loss.outputs):
        step = h * np.eye(loss.outputs)[k]
        f = {j: loss.values(margins + j * step, y) for j in (-2, -1, 1, 2)}
        numeric = (f[-2] - 8 * f[-1] + 8 * f[1] - f[2]) / (12 * h)
        scale = 1 + np.abs(f[1]) + np.abs(got[:, k]) + (np.exp(margins[:, 0]) * 1e-3)
        assert np.max(np.abs(numeric - got[:, k]) / scale) < 1e-9


@pytest.mark.parametrize(
    ("loss", "left", "right"),
    [
        (AbsoluteLoss(), -1.0, 1.0),
        (QuantileLoss(quantile=0.8), -0.8, 0.2),
    ],
)
def test_one_sided_derivatives_at_the_kink(loss, left, right):
    y = np.array([-3.0, 0.0, 7.0])
    h = 1e-6
    for sign, slope in ((-1, left), (1, right)):
        moved = (y + sign * h)[:, None]
        numeric = sign * (loss.values(moved, y) - loss.values(y[:, None], y)) / h
        np.testing.assert_allclose(numeric, slope, rtol=1e-8)
        np.testing.assert_allclose(loss.derivatives(moved, y)[:, 0], slope, rtol=1e-14)
    np.testing.assert_array_equal(loss.derivatives(y[:, None], y), 0.0)


@pytest.mark.parametrize(
    "loss", [HuberLoss(threshold=2.0), BiweightLoss(threshold=2.0), PoissonLoss()]
)
def test_smooth_where_the_pieces_meet(loss):
    y = np.zeros(1)
    for joint in (30.0, -30.0) if isinstance(loss, PoissonLoss) else (2.0, -2.0):
        around = [np.array([[np.nextafter(joint, side)]]) for side in (-np.inf, np.inf)]
        for f in (loss.values, loss.derivatives):
            below, above = (f(m, y).item() for m in around)
            assert abs(below - above) <= 1e-12 * max(1.0, abs(above))


@each_loss
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_claims(loss, data):
    """Convexity, curvature and Lipschitz constant, on random segments."""
    k = loss.outputs
    number = st.floats(-25.0, 25.0)
    a = data.draw(hnp.arrays(float, (1, k), elements=number))
    b = data.draw(hnp.arrays(float, (1, k), elements=number))
    _, y = draw(loss, 1, seed=data.draw(st.integers(0, 50)))
    gap = float(np.linalg.norm(a - b))
    da, db = loss.derivatives(a, y), loss.derivatives(b, y)
    va, vb = loss.values(a, y)[0], loss.values(b, y)[0]
    slack = 1e-9 * (1 + abs(va) + abs(vb) + np.abs(da).max() + np.abs(db).max())
    assert np.linalg.norm(da) <= loss.lipschitz * (1 + 1e-12)
    if math.isfinite(loss.curvature):
        assert np.linalg.norm(da - db) <= loss.curvature * gap + slack
    if loss.convex:
        assert vb >= va + np.sum(da * (b - a)) - slack * (1 + gap)


@pytest.mark.parametrize("loss", [pytest.param(loss, id=loss.name) for loss in LOSSES])
def test_claims_are_attained(loss):
    """A constant that is twice too large would pass the test above."""
    grid = np.linspace(-31, 31, 20_001)
    y = np.zeros(grid.size)
    if loss.name == "multinomial":  # p = (½, ½, 0): the norm of diag(p) − ppᵀ is ½
        m = np.array([[0.0, 0.0, -50.0]] * 2) + [[0], [1]] * np.array([1e-5, -1e-5, 0.0])
        d = loss.derivatives(m, np.zeros(2))
        got = np.linalg.norm(d[1] - d[0]) / np.linalg.norm(m[1] - m[0])
        assert got == pytest.approx(loss.curvature, rel=1e-4)
        far = loss.derivatives(np.array([[-50.0, 50.0, -50.0]]), np.zeros(1))
        assert np.linalg.norm(far) == pytest.approx(loss.lipschitz)
        return
    d = loss.derivatives(grid[:, None], y)[:, 0]
    if math.isfinite(loss.lipschitz):
        assert np.abs(d).max() == pytest.approx(loss.lipschitz, rel=1e-4)
    if math.isfinite(loss.curvature):
        assert np.abs(np.diff(d) / np.diff(grid)).max() == pytest.approx(loss.curvature, rel=1e-2)


# --- one row never sees another ---------------------------------------------------------------


def _bits(array):
    return np.ascontiguousarray(array).view(np.uint64)


@each_loss
def test_rows_are_local_bitwise(loss):
    """Whatever the block, its alignment, its neighbours: the same 64 bits."""
    rows = 403
    margins, y = draw(loss, rows, seed=3, scale=20.0)
    margins[::7] = np.resize(HOSTILE, margins[::7].shape)
    for f in (loss.values, loss.derivatives):
        whole = _bits(f(margins, y))
        alone = [_bits(f(margins[i : i + 1], y[i : i + 1]))[0] for i in range(rows)]
        np.testing.assert_array_equal(whole, alone)
        for start, size in ((1, 2), (3, 5), (5, 63), (2, 64), (7, 130), (11, 392)):
            part = slice(start, start + size)
            np.testing.assert_array_equal(_bits(f(margins[part], y[part])), whole[part])
        for j in (0, 200, rows - 1):
            changed, target = margins.copy(), y.copy()
            changed[j], target[j] = np.nan, np.nan
            others = np.arange(rows) != j
            np.testing.assert_array_equal(_bits(f(changed, target))[others], whole[others])


@each_loss
def test_hostile_numbers_raise_nothing(loss):
    """Overflow, NaN and infinities, in margins and targets: no exception, no warning."""
    m, y = (a.ravel() for a in np.meshgrid(HOSTILE, [*HOSTILE, 2.0, 3.0, 0.5]))
    margins = np.repeat(m[:, None], loss.outputs, axis=1)
    margins[:, -1] = m[::-1]
    with np.errstate(all="raise"):
        assert loss.values(margins, y).shape == y.shape
        assert loss.derivatives(margins, y).shape == margins.shape


@pytest.mark.parametrize("loss", [pytest.param(loss, id=loss.name) for loss in LOSSES])
def test_plain_python_gives_the_same_bits(loss):
    margins, y = draw(loss, 200, scale=20.0)
    expected = [f(margins, y).tobytes() for f in (loss.values, loss.derivatives)]
    with interpreted():
        assert [f(margins, y).tobytes() for f in (loss.values, loss.derivatives)] == expected


def test_functions_made_at_run_time_are_compiled_all_the_same():
    ours, other = (compiled(lambda x: x + 1.0, cache=cache) for cache in (True, False))
    with interpreted():
        assert ours(1.0) == other(1.0) == 2.0
    assert (ours._dispatcher, other._dispatcher is None) == (None, False)


@pytest.mark.parametrize("loss", [pytest.param(loss, id=loss.name) for loss in LOSSES])
def test_finite_margins_give_derivatives_within_the_claim(loss):
    m = np.array([a for a in HOSTILE if np.isfinite(a)])
    margins = np.repeat(m[:, None], loss.outputs, axis=1)
    margins[:, -1] = m[::-1]
    _, y = draw(loss, m.size)
    norms = np.hypot.reduce(loss.derivatives(margins, y), axis=1)
    assert np.all(norms <= loss.lipschitz * (1 + 1e-15))


def test_a_target_that_is_no_class_is_nan():
    loss = MultinomialLoss(classes=3)
    y = np.array([-1.0, 3.0, 0.5, np.nan, np.inf, 1e308, 2.0])
    margins = np.ones((7, 3))
    assert np.isnan(loss.values(margins, y)).tolist() == [True] * 6 + [False]
    assert np.isnan(loss.derivatives(margins, y)).all(axis=1).tolist() == [True] * 6 + [False]


# --- losses of a user -------------------------------------------------------------------------


def _raises(m, y):
    if m > 1:
        raise ValueError("no")
    return m - y


def _raises_text(m, y):
    if m > 1:
        raise ValueError(f"{m:.3f}")
    return m - y


def _sometimes_none(m, y):
    if m > 1:
        return None
    return m - y


def _sometimes_text(m, y):
    return "a lot" if m > 1 else m - y


def _sometimes_exits(m, y):
    return sys.exit(3) if m > 1 else m - y


def _sometimes_overflows(m, y):
    return m - y if m <= 1 else 10 ** int(str(400))


TABLE = np.arange(3.0)


def _out_of_bounds(m, y):
    return TABLE[int(m) + 2] if m > 1 else m - y


@pytest.mark.parametrize(
    "function",
    [
        _raises,
        _raises_text,
        _sometimes_none,
        _sometimes_text,
        _sometimes_exits,
        _sometimes_overflows,
        _out_of_bounds,
    ],
)
def test_a_record_that_raises_is_nan_and_alone(function):
    loss = CustomLoss(value=function, derivative=function)
    margins = np.array([[0.0], [2.0], [-1.0], [3.0], [1.0]])
    y = np.full(5, 0.25)
    expected = [-0.25, np.nan, -1.25, np.nan, 0.75]
    np.testing.assert_array_equal(loss.values(margins, y), expected)
    np.testing.assert_array_equal(loss.derivatives(margins, y)[:, 0], expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda m, y: None,
        lambda m, y: "1.0",
        lambda m, y: (m, y),
        lambda m, y: [m],
        lambda m, y: np.array([m]),
        lambda m, y: 1j * m,
        lambda m: m,
        lambda m, y: undefined_name,  # noqa: F821
    ],
)
def test_what_is_not_a_number_is_nan(function):
    loss = CustomLoss(value=function, derivative=function)
    assert np.isnan(loss.values(np.ones((3, 1)), np.zeros(3))).all()
    assert np.isnan(loss.derivatives(np.ones((3, 1)), np.zeros(3))).all()


class _Slope:
    def __call__(self, m, y):
        return np.float32(m - y)


@pytest.mark.parametrize(
    "function", [lambda m, y: int(m) - int(y), lambda m, y: m > y, _Slope(), np.subtract, max]
)
def test_every_real_number_counts(function):
    loss = CustomLoss(value=function, derivative=function)
    got = loss.values(np.array([[3.0], [0.0]]), np.array([1.0, 0.0]))
    assert got.tolist() == [float(function(3.0, 1.0)), float(function(0.0, 0.0))]


def test_a_keyboard_interrupt_is_not_swallowed():
    def interrupted(m, y):
        raise KeyboardInterrupt(str(m))

    with pytest.raises(KeyboardInterrupt):
        CustomLoss(value=interrupted, derivative=interrupted).values(np.ones((1, 1)), np.ones(1))


def test_a_custom_loss_is_compiled_where_possible():
    assert isinstance(loop_of(LOG_COSH.derivative), Compiled)
    assert not isinstance(loop_of(INTERPRETED.derivative), Compiled)


def _quadratic(w, x, y):
    return 0.5 * float(np.sum((w - x[:, None]) ** 2)) + y


def _quadratic_gradient(w, x, y):
    return w - x[:, None]


def test_general_loss_row_by_row():
    loss = GeneralLoss(value=_quadratic, gradient=_quadratic_gradient)
    rng = np.random.default_rng(0)
    w, X, y = rng.normal(size=(4, 2)), rng.normal(size=(6, 4)), rng.normal(size=6)
    np.testing.assert_array_equal(loss.gradients(w, X, y), w - X[:, :, None])
    expected = [_quadratic(w, x, t) for x, t in zip(X, y, strict=True)]
    np.testing.assert_array_equal(loss.values(w, X, y), expected)
    assert loss.gradients(w, X[:0], y[:0]).shape == (0, 4, 2)


def test_general_loss_by_blocks():
    calls = []

    def gradient(w, X, y):
        calls.append((X.flags.writeable, y.flags.writeable, w.flags.writeable))
        return w[None] - X[:, :, None]

    loss = GeneralLoss(value=lambda w, X, y: y, gradient=gradient, trusted_rowwise=True)
    X, y = np.ones((6, 4)), np.arange(6.0)
    assert loss.gradients(np.zeros((4, 2)), X, y).shape == (6, 4, 2)
    assert loss.values(np.zeros((4, 2)), X, y).tolist() == y.tolist()
    assert calls == [(False, False, False)]


def _vandal(w, x, y):
    for array in (w, x):
        array.flags.writeable = True
        np.add(array, 1.0, out=array)
    return w.copy()


def _shapeless(w, x, y):
    if x[0] > 0.5:
        return w[:1]
    if x[0] < -0.5:
        raise LookupError(str(x))
    return 1j * w if x[1] > 0 else w.astype(object)


def test_general_loss_cannot_spoil_its_neighbours():
    loss = GeneralLoss(value=_quadratic, gradient=_vandal)
    w, X, y = np.zeros((2, 1)), np.zeros((3, 2)), np.zeros(3)
    np.testing.assert_array_equal(loss.gradients(w, X, y), np.ones((3, 2, 1)))
    assert not w.any()
    assert not X.any()
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    loss = GeneralLoss(value=_shapeless, gradient=_shapeless)
    assert np.isnan(loss.gradients(w, X, np.zeros(4))).all()
    assert np.isnan(loss.values(w, X, np.zeros(4))).all()
    with pytest.raises(InvalidInput, match="rows"):
        loss.values(w, X, y)


# --- compilation ------------------------------------------------------------------------------

MODULE = """
    from privtail.compilation import compiled
    @compiled
    def double(x):
        return 2.0 * x
    @compiled
    def loop(x, out):
        for i in range(x.size):
            out[i] = double(x[i])
    @compiled
    def other(x, out):
        for i in range(x.size):
            out[i] = x[i] - 1.0
"""
MAIN = """
    import json, numpy as np, part
    def count(f): return [sum(getattr(f.dispatcher.stats, s).values())
                          for s in ("cache_hits", "cache_misses")]
    x, out = np.arange(3.0), np.empty(3)
    part.loop(x, out)
    print(json.dumps([out.tolist(), count(part.loop), part.loop.dispatcher.stats.cache_path]))
"""


def _run(code, folder, **environment):
    path = os.pathsep.join([str(folder), str(SOURCE.parent)])
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=keep | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_process_does_not_recompile(tmp_path):
    (tmp_path / "part.py").write_text(textwrap.dedent(MODULE))
    hits = [_run(MAIN, tmp_path) for _ in range(2)]
    assert '[[0.0, 2.0, 4.0], [0, 1], "' in hits[0]
    assert '[[0.0, 2.0, 4.0], [1, 0], "' in hits[1]
    assert str(tmp_path / "__pycache__") in hits[1]


def test_a_read_only_install_compiles_in_memory(tmp_path):
    """No cache locator: the package's __pycache__ and the user's cache are files, not folders."""
    (tmp_path / "part.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "__pycache__").write_text("in the way")
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    for _ in range(2):
        assert "[[0.0, 2.0, 4.0], [0, 1], null]" in _run(MAIN, tmp_path, **nowhere)


def test_a_full_disk_compiles_in_memory(tmp_path):
    (tmp_path / "part.py").write_text(textwrap.dedent(MODULE))
    full = """
        import numba.core.caching
        def save(*_): raise OSError(28, "No space left on device")
        numba.core.caching.IndexDataCacheFile.save = save
    """
    assert "[[0.0, 2.0, 4.0], [0, 1]" in _run(
        textwrap.dedent(full) + textwrap.dedent(MAIN), tmp_path
    )


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        (".nbi", lambda b: b[: len(b) // 2]),
        pytest.param(".nbi", lambda b: bytes(len(b)), marks=pytest.mark.slow),
        (".nbc", lambda b: bytes(len(b))),
        pytest.param(".nbc", lambda b: b"", marks=pytest.mark.slow),
    ],
)
def test_a_damaged_cache_is_rebuilt(tmp_path, ending, damage):
    """A loss of power leaves files that are empty, full of zeros, or cut."""
    (tmp_path / "part.py").write_text(textwrap.dedent(MODULE))
    _run(MAIN, tmp_path)
    files = [f for f in (tmp_path / "__pycache__").iterdir() if f.suffix == ending]
    assert files
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    hits = [_run(MAIN, tmp_path) for _ in range(2)]
    assert '[[0.0, 2.0, 4.0], [0, 1], "' in hits[0]
    assert '[[0.0, 2.0, 4.0], [1, 0], "' in hits[1]


def test_a_callee_in_another_file_is_not_cached(tmp_path):
    """Numba's cache looks at the date of one file: it would load stale code."""
    (tmp_path / "leaf.py").write_text(textwrap.dedent(MODULE))
    part = """
        from leaf import double
        from privtail.compilation import compiled
        @compiled
        def loop(x, out):
            for i in range(x.size):
                out[i] = double(x[i])
    """
    (tmp_path / "part.py").write_text(textwrap.dedent(part))
    assert "[[0.0, 2.0, 4.0]" in _run(MAIN, tmp_path)
    edited = MODULE.replace("2.0 * x", "3.0 * x + 0")
    (tmp_path / "leaf.py").write_text(textwrap.dedent(edited))
    assert "[[0.0, 3.0, 6.0]" in _run(MAIN, tmp_path)


def test_many_threads_at_the_first_call():
    @compiled(cache=False)
    def triple(x):
        return 3.0 * x

    barrier = threading.Barrier(8)

    def first_call(i):
        barrier.wait(timeout=30)
        return triple(float(i))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(first_call, range(8))) == [3.0 * i for i in range(8)]
    assert len(triple.dispatcher.signatures) == 1


def test_every_loop_is_compiled_for_one_signature():
    """Read-only, Fortran-ordered or float32 blocks must not compile again."""
    margins, y = draw(HuberLoss(threshold=1), 4)
    loss = HuberLoss(threshold=2)
    loss.values(margins, y)
    margins.flags.writeable = False
    loss.values(margins.astype(np.float32), y.astype(int))
    loss.values(margins, y)
    assert len(huber_values.dispatcher.signatures) == 1


@pytest.mark.parametrize("module", ["losses", "domains"])
def test_import_is_light(tmp_path, module):
    """Nothing but numpy, the standard library and a few modules of our own."""
    code = f"""
        import sys, numpy
        before = set(sys.modules)
        import privtail.{module}
        print(*(set(sys.modules) - before))
    """
    new = [name for name in _run(code, tmp_path).split() if not name.startswith("_")]
    others = {name.split(".")[0] for name in new} - sys.stdlib_module_names
    assert others <= {"privtail", "numpy"}
    others = [name for name in new if not name.startswith(f"privtail.{module}.")]
    assert sum(name.startswith("privtail") for name in others) <= 9
