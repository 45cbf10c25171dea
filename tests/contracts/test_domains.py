"""Contract of every domain: optimality conditions are the oracle, SciPy the second opinion."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import optimize

from privtail.domains import (
    DOMAINS,
    L1,
    L2,
    Box,
    Domain,
    ElasticNet,
    GroupLasso,
    L1Ball,
    L2Ball,
    Simplex,
    Slopes,
    Unconstrained,
    Within,
    require,
    within,
)
from privtail.domains.joint import name_of
from privtail.errors import IncompatibleParts, InvalidInput

D = 3
SCALES = np.array([0.3, 1.0, 4.0])
REGULARIZERS = [L1(alpha=0.3), L2(alpha=0.7), ElasticNet(alpha=0.5, l1_ratio=0.4)]
GROUPS = GroupLasso(alpha=0.3, groups=((0, 2), (1,)))
SETS = [L2Ball(radius=1.2), L1Ball(radius=1.2), Box(low=-0.5, high=1.0), Simplex()]
LOPSIDED = Box(low=(-1.0, 0.0, -math.inf), high=(0.5, 0.0, 2.0))
PAIRS = [within(r, s) for r in REGULARIZERS for s in SETS]
PAIRS += [within(GROUPS, L2Ball(radius=0.8))]


def has_scales(domain):
    return domain is not GROUPS and getattr(domain, "regularizer", None) is not GROUPS


PLAIN = [d for d in DOMAINS if not isinstance(d, GroupLasso)] + [*SETS, LOPSIDED, *PAIRS]
EVERY = [*PLAIN, GROUPS, *(d.scaled(SCALES) for d in PLAIN if has_scales(d))]
BOUNDED = [
    d for d in EVERY if hasattr(d, "minimize_linear") and getattr(d, "low", 0) != LOPSIDED.low
]


def cases(domains):
    names = [f"{i}-{name_of(d)}".replace(" ", "-") for i, d in enumerate(domains)]
    return pytest.mark.parametrize("domain", domains, ids=names)


def having(operation):
    return cases([d for d in EVERY if hasattr(d, operation)])


each_domain = cases(EVERY)
each_set = having("project")


def points(rng, count, outputs=2, scale=2.0):
    return scale * rng.standard_t(3, size=(count, D, outputs))


def feasible(domain, rng, count, outputs=2):
    """Points of the set: projections, and mixtures of them."""
    project = getattr(domain, "project", None) or (lambda w: domain.prox(w, 1.0))
    inside = np.array([project(w) for w in points(rng, 60, outputs)])
    i, j = rng.integers(0, len(inside), (2, count))
    t = rng.uniform(size=(count, 1, 1))
    return t * inside[i] + (1 - t) * inside[j]


# --- the protocol -----------------------------------------------------------------------------


@each_domain
def test_protocol(domain):
    assert isinstance(domain, Domain)
    again = pickle.loads(pickle.dumps(domain))  # noqa: S301
    assert again == domain
    assert hash(again) == hash(domain)
    if has_scales(domain):
        other = domain.scaled([1.0, 1.0, 2.0])
        assert (other == domain) == (domain == Unconstrained())


@each_domain
@pytest.mark.parametrize("shape", [(D,), (D, 1), (D, 4)])
def test_shapes_dtypes_and_no_side_effects(domain, shape):
    w = np.random.default_rng(0).normal(size=shape)
    w.flags.writeable = False
    assert isinstance(domain.value(w), float)
    for operation, arguments in (("prox", (w, 0.5)), ("project", (w,)), ("minimize_linear", (w,))):
        if hasattr(domain, operation) and (operation != "minimize_linear" or domain in BOUNDED):
            v = getattr(domain, operation)(*arguments)
            assert v.shape == shape
            assert v.dtype == np.float64
            assert v.flags.writeable
            assert not np.shares_memory(v, w)


@each_domain
def test_a_column_is_a_vector(domain):
    w = np.random.default_rng(1).normal(size=D)
    assert domain.value(w) == pytest.approx(domain.value(w[:, None]), rel=1e-14)
    np.testing.assert_allclose(domain.prox(w, 0.3), domain.prox(w[:, None], 0.3)[:, 0], rtol=1e-14)


@cases([d for d in PLAIN if d is not LOPSIDED and has_scales(d)])
def test_one_feature(domain):
    for domain_at_1 in (domain, domain.scaled([0.5])):
        for w in (np.array([[-5.0]]), np.array([2.0])):
            v = domain_at_1.prox(w, 0.5)
            assert v.shape == w.shape
            assert math.isfinite(domain_at_1.value(v))


# --- prox and projection ----------------------------------------------------------------------


@each_domain
@pytest.mark.parametrize("step", [0.0, 0.1, 1.0, 7.0])
def test_prox_by_strong_convexity(domain, step):
    """p = prox(w): for all v, F(v) ≥ F(p) + ½ ‖v − p‖², with F(v) = ½ ‖v − w‖² + step · value."""
    rng = np.random.default_rng(2)
    others = feasible(domain, rng, 60)
    values = np.array([domain.value(v) for v in others])
    for w in points(rng, 40):
        p = domain.prox(w, step)
        assert math.isfinite(domain.value(p))
        near = [p + t * (v - p) for t, v in zip((1e-1, 1e-2, 1e-3), others, strict=False)]
        trials = np.concatenate([others, near])
        penalties = np.concatenate([values, [domain.value(v) for v in near]])
        at_p = 0.5 * np.sum((p - w) ** 2) + step * domain.value(p)
        at_v = 0.5 * np.sum((trials - w) ** 2, axis=(1, 2)) + step * penalties
        gap = at_v - at_p - 0.5 * np.sum((trials - p) ** 2, axis=(1, 2))
        assert np.min(gap) >= -1e-9 * (1 + at_p)


@each_domain
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_prox_is_firmly_nonexpansive(domain, data):
    arrays = hnp.arrays(float, (D, 2), elements=st.floats(-1e6, 1e6))
    a, b = data.draw(arrays), data.draw(arrays)
    p, q = domain.prox(a, 0.7), domain.prox(b, 0.7)
    assert np.sum((p - q) ** 2) <= np.sum((p - q) * (a - b)) + 1e-7 * (1 + np.sum((a - b) ** 2))


@each_set
def test_projection(domain):
    """Feasible, idempotent, nonexpansive, and ⟨w − p, v − p⟩ ≤ 0 for every v of the set."""
    rng = np.random.default_rng(3)
    inside = feasible(domain, rng, 200)
    previous = None
    for w in points(rng, 60):
        p = domain.project(w)
        assert domain.value(p) == 0.0
        np.testing.assert_allclose(domain.project(p), p, rtol=1e-12, atol=1e-14)
        products = np.sum((w - p) * (inside - p), axis=(1, 2))
        assert np.max(products) <= 1e-9 * (1 + np.sum(np.abs(w)))
        np.testing.assert_array_equal(domain.prox(w, 3.0), p)
        if previous is not None:
            w0, p0 = previous
            assert np.linalg.norm(p - p0) <= np.linalg.norm(w - w0) * (1 + 1e-12)
        previous = w, p


@cases([*SETS, LOPSIDED, *(s.scaled(SCALES) for s in SETS)])
def test_the_value_of_a_set_sees_the_outside(domain):
    w = domain.project(np.array([[3.0, -1.0], [0.2, 0.4], [4.0, 2.0]]))
    assert domain.value(w) == 0.0
    assert domain.value(w + 1e-12) == 0.0
    assert domain.value(w + np.array([[1.0], [0.0], [1.0]])) == math.inf


def split(x):
    """Return v and |v| of the smooth form v = p − q with p, q ≥ 0."""
    p, q = x.reshape(2, -1)
    return p - q, p + q


def conditions(constraint, c):
    match constraint:
        case L2Ball(radius=r):
            yield "ineq", lambda x: r**2 - np.sum((c * split(x)[0]) ** 2)
        case L1Ball(radius=r):
            yield "ineq", lambda x: r - np.sum(c * split(x)[1])
        case Box(low=low, high=high):
            yield "ineq", lambda x: c * split(x)[0] - low
            yield "ineq", lambda x: high - c * split(x)[0]
        case Simplex(radius=r):
            yield "eq", lambda x: np.sum(c * split(x)[0]) - r
            yield "ineq", lambda x: split(x)[0]


def strengths(regularizer):
    match regularizer:
        case L1(alpha=alpha):
            return alpha, 0.0
        case L2(alpha=alpha):
            return 0.0, alpha
        case ElasticNet(alpha=alpha, l1_ratio=ratio):
            return alpha * ratio, alpha * (1 - ratio)
    return 0.0, 0.0


def slsqp(domain, c, w, step):
    """The prox of ``domain`` scaled by c, by a general solver."""
    a, b = strengths(getattr(domain, "regularizer", domain))

    def objective(x):
        v, size = split(x)
        return 0.5 * np.sum((v - w) ** 2) + step * np.sum(a * c * size + 0.5 * b * (c * v) ** 2)

    def gradient(x):
        v, _ = split(x)
        g = v - w + step * b * c**2 * v
        return np.concatenate([g + step * a * c, -g + step * a * c])

    constraint = getattr(domain, "constraint", domain)
    done = optimize.minimize(
        objective,
        np.full(2 * w.size, 0.1),
        jac=gradient,
        method="SLSQP",
        bounds=[(0, None)] * (2 * w.size),
        constraints=[{"type": kind, "fun": f} for kind, f in conditions(constraint, c)],
        options={"maxiter": 500, "ftol": 1e-13},
    )
    return split(done.x)[0]


@pytest.mark.parametrize("scales", [np.ones(D), SCALES], ids=["plain", "scaled"])
@cases([d for d in [*REGULARIZERS, *SETS, *PAIRS] if has_scales(d)])
def test_prox_against_scipy(domain, scales):
    rng = np.random.default_rng(4)
    for w in points(rng, 6, outputs=1)[..., 0]:
        expected = slsqp(domain, scales, w, 0.6)
        np.testing.assert_allclose(domain.scaled(scales).prox(w, 0.6), expected, atol=2e-5)


@cases([d for d in [*PLAIN, GROUPS] if d is not LOPSIDED])
@pytest.mark.parametrize("size", [0.0, 1e-320, 1e-200, 1e200, 1e308])
def test_tiny_and_huge(domain, size):
    w = size * np.array([[1.0, -1.0], [0.5, 1.0], [-0.75, 0.0]])
    domains = [domain, domain.scaled(SCALES)] if has_scales(domain) and size < 1e300 else [domain]
    for each in domains:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            p = each.prox(w, 0.3)
            assert np.all(np.isfinite(p))
            assert not math.isnan(each.value(w))
            if hasattr(each, "project"):
                assert each.value(p) == 0.0


def test_huge_projections_do_not_cancel():
    w = np.array([1e308, 1e308, 3.0])
    np.testing.assert_allclose(L1Ball(radius=1).project(w), [0.5, 0.5, 0.0])
    np.testing.assert_allclose(Simplex().project(-w), [0.0, 0.0, 1.0])
    np.testing.assert_allclose(
        Simplex().project(np.array([-1e308, 1e308, -1e308])), [0.0, 1.0, 0.0]
    )
    np.testing.assert_allclose(L2Ball(radius=1).project(w), [0.5**0.5, 0.5**0.5, 0.0], atol=1e-300)
    np.testing.assert_allclose(
        L2Ball(radius=1e-20).project(w), [1e-20 * 0.5**0.5] * 2 + [0.0], atol=1e-300
    )
    np.testing.assert_allclose(L1Ball(radius=1).project(np.array([1e17, 1e17 - 64])), [1.0, 0.0])


@given(
    st.integers(1, 12),
    st.floats(-6, 6),
    st.floats(0, 6),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_ellipsoid_projection_satisfies_its_equations(d, size, spread, seed):
    """v = w / (1 + λc²) with one λ ≥ 0, on the boundary, for scales over twelve decades."""
    rng = np.random.default_rng(seed)
    c = 10 ** rng.uniform(-spread, spread, size=d)
    w = 10**size * rng.standard_cauchy(d)
    v = L2Ball(radius=2.0).scaled(c).project(w)
    norm = np.linalg.norm(c * v)
    assert norm <= 2.0 * (1 + 1e-14)
    if np.linalg.norm(c * w) <= 2.0:
        np.testing.assert_array_equal(v, w)
        return
    assert norm == pytest.approx(2.0, rel=1e-12)
    j = np.argmax(w / v)  # where the multiplier is best seen
    lam = (w[j] / v[j] - 1) / c[j] ** 2
    assert lam >= 0
    np.testing.assert_allclose(v, w / (1 + lam * c**2), rtol=1e-7)


# --- linear minimisers, corners, diameters ----------------------------------------------------


@cases(BOUNDED)
@pytest.mark.parametrize("outputs", [1, 2])
def test_linear_minimiser(domain, outputs):
    """Not worse than 10⁴ points of the set; the best corner of a polytope; right when g = 0."""
    rng = np.random.default_rng(5)
    inside = feasible(domain, rng, 10_000, outputs)
    for g in [*points(rng, 20, outputs), np.zeros((D, outputs)), 1e300 * np.ones((D, outputs))]:
        v = domain.minimize_linear(g)
        assert domain.value(v) == 0.0
        least = np.min(np.tensordot(inside, g, 2))
        slack = 1e-12 * np.sum(np.abs(g))
        assert np.sum(g * v) <= least + slack
        if hasattr(domain, "corners"):
            corners = np.tensordot(domain.corners(D, outputs), g, 2)
            assert np.sum(g * v) == pytest.approx(np.min(corners), rel=1e-12)
        elif g.any():
            assert np.sum(g * v) < least * (1 - 1e-9) < 0 or outputs == 1


@cases([d for d in BOUNDED if hasattr(d, "corners")])
@pytest.mark.parametrize("outputs", [1, 2])
def test_corners_and_diameter(domain, outputs):
    corners = domain.corners(D, outputs)
    assert corners.shape[1:] == (D, outputs)
    assert len(np.unique(corners, axis=0)) == len(corners)
    assert all(domain.value(corner) == 0.0 for corner in corners)
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(corners, 2))
    assert domain.diameter(D, outputs) == pytest.approx(apart)


def test_diameters():
    assert Unconstrained().diameter(3) == math.inf
    assert L2Ball(radius=2).diameter(7, 3) == 4.0
    assert L2Ball(radius=2).scaled(SCALES).diameter(D) == pytest.approx(4 / 0.3)
    assert Box(low=0, high=math.inf).diameter(2) == math.inf
    assert Simplex().diameter(1) == 0.0
    w = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert Box(low=-1, high=1).diameter(2, 2) == pytest.approx(2 * np.linalg.norm(w))


def test_too_many_corners():
    for domain in (L1Ball(radius=1), Simplex()):
        with pytest.raises(InvalidInput, match="corners"):
            domain.corners(100_000)
    with pytest.raises(InvalidInput, match="corners"):
        Box(low=0, high=1).corners(40)


def test_a_box_without_an_end():
    box = Box(low=0, high=math.inf)
    assert box.project(np.array([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert box.value(np.array([0.0, 1e300])) == 0.0
    assert box.value(np.array([-1.0, 1e300])) == math.inf
    for ask in (lambda: box.minimize_linear(np.ones(2)), lambda: box.corners(2)):
        with pytest.raises(InvalidInput, match="finite ends"):
            ask()


# --- scales -----------------------------------------------------------------------------------


@cases([d for d in PLAIN if has_scales(d)])
def test_scaled_is_the_same_domain_in_other_coordinates(domain):
    """value(v; scaled) = value(scales · v), and what minimises in v minimises in w."""
    rng = np.random.default_rng(6)
    scaled = domain.scaled(SCALES)
    c = SCALES[:, None]
    for w in [*points(rng, 10), *feasible(domain, rng, 10)]:
        assert scaled.value(w / c) == pytest.approx(domain.value(w), rel=1e-12)
        if hasattr(domain, "minimize_linear") and domain in BOUNDED:
            np.testing.assert_allclose(
                c * scaled.minimize_linear(w * c), domain.minimize_linear(w), rtol=1e-10, atol=1e-12
            )
    twice = domain.scaled(np.sqrt(SCALES)).scaled(np.sqrt(SCALES))
    v = points(rng, 1)[0]
    np.testing.assert_allclose(twice.prox(v, 0.4), scaled.prox(v, 0.4), rtol=1e-10, atol=1e-13)
    ones = domain.scaled(np.ones(D))
    np.testing.assert_allclose(ones.prox(v, 0.4), domain.prox(v, 0.4), rtol=1e-13, atol=1e-15)


@cases([Unconstrained(), *REGULARIZERS, *SETS])
@pytest.mark.parametrize("scales", [[1.0, 0.0], [1.0, -1.0], [1.0, np.inf], [np.nan, 1], 2.0])
def test_refuses_scales(domain, scales):
    with pytest.raises(InvalidInput, match="scales"):
        domain.scaled(scales)


def test_refuses_other_lengths():
    for domain in (L1(alpha=1), L2Ball(radius=1)):
        with pytest.raises(InvalidInput, match="3 features"):
            domain.scaled(SCALES).prox(np.ones(4), 1.0)
        with pytest.raises(InvalidInput, match="3 entries"):
            domain.scaled(SCALES).scaled(np.ones(4))
    with pytest.raises(InvalidInput, match="got 2"):
        Box(low=(0, 0), high=1).project(np.ones(3))
    with pytest.raises(InvalidInput, match="features below 2"):
        GROUPS.prox(np.ones(2), 1.0)


def test_group_lasso_has_no_scales():
    for domain in (GROUPS, within(GROUPS, L2Ball(radius=1)), Slopes(domain=GROUPS)):
        with pytest.raises(IncompatibleParts, match="Unconstrained, L1, L2, ElasticNet"):
            domain.scaled(SCALES)


# --- particular members -----------------------------------------------------------------------


def test_values():
    w = np.array([[1.0, -2.0], [0.0, 2.0]])
    assert L1(alpha=0.5).value(w) == 2.5
    assert L2(alpha=0.5).value(w) == 2.25
    assert ElasticNet(alpha=2, l1_ratio=0.25).value(w) == 2 * (0.25 * 5 + 0.75 * 4.5)
    assert GroupLasso(alpha=2, groups=[[0, 1]]).value(w) == pytest.approx(2 * 2**0.5 * 3)
    assert GroupLasso(alpha=2, groups=[[1]]).value(w) == 4.0
    assert Unconstrained().value(w) == 0.0


def test_elastic_net_is_that_of_scikit_learn():
    from sklearn.linear_model import ElasticNet as Reference

    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(50, D)), rng.normal(size=50)
    reference = Reference(alpha=0.1, l1_ratio=0.6, fit_intercept=False, tol=1e-12).fit(X, y)
    penalty, w = ElasticNet(alpha=0.1, l1_ratio=0.6), np.zeros(D)
    step = 50 / np.linalg.norm(X, 2) ** 2
    for _ in range(2000):
        w = penalty.prox(w - step * X.T @ (X @ w - y) / 50, step)
    np.testing.assert_allclose(w, reference.coef_, atol=1e-9)


def test_group_lasso_leaves_other_features_alone():
    v = GroupLasso(alpha=1.0, groups=[[0, 1]]).prox(np.array([3.0, 4.0, 9.0]), 1.0)
    np.testing.assert_allclose(v[:2], np.array([3.0, 4.0]) * (1 - 2**0.5 / 5))
    assert v[2] == 9.0
    assert GroupLasso(alpha=1.0, groups=[]).value(np.ones(2)) == 0.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: L1(alpha=-1),
        lambda: L2(alpha=math.nan),
        lambda: ElasticNet(alpha=1, l1_ratio=1.5),
        lambda: GroupLasso(alpha=1, groups=[[0, 1], [1]]),
        lambda: GroupLasso(alpha=1, groups=[[-1]]),
        lambda: GroupLasso(alpha=1, groups=[[]]),
        lambda: L2Ball(radius=0),
        lambda: L1Ball(radius=math.inf),
        lambda: Simplex(radius=-1),
        lambda: Box(low=1, high=0),
        lambda: Box(low=(0, 0), high=(1, 1, 1)),
        lambda: Box(low=math.nan, high=1),
        lambda: Box(low=[[0]], high=1),
    ],
)
def test_refuses_parameters(make):
    with pytest.raises(InvalidInput):
        make()


# --- within, require, Slopes ------------------------------------------------------------------


def test_within_is_trivial_without_constraint():
    assert within(Unconstrained(), SETS[0]) is SETS[0]
    assert within(GROUPS, Unconstrained()) is GROUPS
    assert isinstance(PAIRS[0], Within)


@pytest.mark.parametrize(
    ("regularizer", "constraint"),
    [(GROUPS, SETS[1]), (GROUPS, SETS[2]), (SETS[0], SETS[1]), (L1(alpha=1), L2(alpha=1))],
)
def test_within_refuses_what_is_not_known(regularizer, constraint):
    with pytest.raises(IncompatibleParts, match="Use L1, L2 or ElasticNet within"):
        within(regularizer, constraint)


def test_require():
    ball = L1Ball(radius=1)
    assert require(ball, "minimize_linear", "corners", needed_by="X") is ball
    message = (
        "^FrankWolfe needs `minimize_linear` and `corners` of its domain; L1 has no "
        "`minimize_linear` and `corners`. Domains that fit: L1Ball, Box, Simplex.$"
    )
    with pytest.raises(IncompatibleParts, match=message):
        require(L1(alpha=1), "minimize_linear", "corners", needed_by="FrankWolfe")
    with pytest.raises(IncompatibleParts, match="L1 within Box has no `project`"):
        require(within(L1(alpha=1), SETS[2]), "project", needed_by="X")
    with pytest.raises(IncompatibleParts, match="Domains that fit: none"):
        require(ball, "divine", needed_by="X")


@each_domain
def test_slopes_leave_the_intercept_alone(domain):
    rng = np.random.default_rng(8)
    slopes = Slopes(domain=domain)
    w = np.concatenate([points(rng, 1)[0], [[1e9, -7.0]]])
    assert slopes.value(w) == domain.value(w[:-1])
    v = slopes.prox(w, 0.3)
    np.testing.assert_array_equal(v[:-1], domain.prox(w[:-1], 0.3))
    np.testing.assert_array_equal(v[-1], w[-1])
    assert hasattr(slopes, "project") == hasattr(domain, "project")
    if hasattr(domain, "project"):
        v = require(slopes, "project", needed_by="X").project(w)
        np.testing.assert_array_equal(v[:-1], domain.project(w[:-1]))
        np.testing.assert_array_equal(v[-1], w[-1])
    if hasattr(domain, "diameter"):
        assert slopes.diameter(D) == domain.diameter(D)
    if has_scales(domain):
        assert slopes.scaled(SCALES) == Slopes(domain=domain.scaled(SCALES))


def test_slopes_have_no_linear_minimiser():
    with pytest.raises(IncompatibleParts, match="Slopes of L1Ball has no `minimize_linear`"):
        require(Slopes(domain=L1Ball(radius=1)), "minimize_linear", needed_by="FrankWolfe")


@pytest.mark.parametrize("tiny", [1e-301, 5e-324])
def test_an_axis_whose_square_underflows_stays_zero(tiny):
    """A column that is always zero has such a scale; the others are projected as without it."""
    point = np.array([[3.0], [5.0], [1.0]])
    found = L1Ball(radius=1.0).scaled(np.array([1.0, tiny, 2.0])).project(point)
    without = L1Ball(radius=1.0).scaled(np.array([1.0, 2.0])).project(point[[0, 2]])
    assert found[1, 0] == 0.0
    np.testing.assert_allclose(found[[0, 2]], without, rtol=1e-12)
