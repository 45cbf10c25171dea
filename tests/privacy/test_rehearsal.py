"""What fails for public reasons fails before the charge, and reads no record."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import struct
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numba import typeof
from scipy import sparse

import privtail
from privtail import DPMean, DPScaler, Ledger, PrivateSearchCV, compilation, private_mean
from privtail.compilation import Compiled
from privtail.errors import InvalidInput
from privtail.linear_model import (
    DPLADRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSparseRegressor,
)
from privtail.losses import SquaredLoss
from privtail.robust_means import ClippedMean
from privtail.trusted import callbacks, kernels, rehearsal
from privtail.trusted import curator as curator_module
from privtail.trusted.budget import Budget
from privtail.trusted.curator import Curator
from privtail.trusted.events import Round
from privtail.trusted.mechanisms import samplers
from privtail.trusted.mechanisms.noise import GaussianNoise

X = np.random.default_rng(0).normal(size=(200, 3))
Y = X @ [1.0, 2.0, 0.0] + np.random.default_rng(1).normal(size=200)
COUNTS = np.round(np.exp(Y / 3))
SIMULATED = {"noise": "simulated", "random_state": 0}
CONTAINERS = {
    "C": X,
    "Fortran": np.asfortranarray(X),
    "float32": X.astype(np.float32),
    "frame": pd.DataFrame(X, columns=list("abc")),
    "CSR": sparse.csr_matrix(X),
}
FITS = {
    "ridge": lambda rows, ledger: DPRidge(ledger=ledger).fit(rows, X[:, 0]),
    "labels": lambda rows, ledger: DPLogisticRegression(epsilon=4.0, ledger=ledger).fit(
        rows, X[:, 0] > 0
    ),
    "sparse": lambda rows, ledger: DPSparseRegressor(1, ledger=ledger).fit(rows, X[:, 0]),
    "mean": lambda rows, ledger: DPMean(ledger=ledger).fit(rows),
    "scaler": lambda rows, ledger: DPScaler(with_centering=False, ledger=ledger).fit(rows),
    "search": lambda rows, ledger: PrivateSearchCV(
        DPRidge(), {"alpha": [1.0]}, trials=1, ledger=ledger
    ).fit(rows, X[:, 0]),
    "number": lambda rows, ledger: private_mean(X[:, 0], epsilon=1.0, ledger=ledger),
}
BROKEN = {
    "margins_dense": (kernels, "C"),
    "margins_sparse": (kernels, "CSR"),
    "_short_way": (samplers, "frame"),
    "_intervals": (samplers, "frame"),
}


def mean_derivatives(rows):
    curator = Curator(rows, Y, budget=Budget(9.0, 1e-5), noise="simulated", intercept=True)
    noise, mean = GaussianNoise(9.0), ClippedMean(1.0)
    curator.open((Round(events=(noise.event(curator.problem.derivatives(mean)),)),), SquaredLoss())
    curator.everyone().derivatives(SquaredLoss(), np.zeros((4, 1)), mean).release(noise)


def fails(*_, **__):
    raise ImportError("broken on purpose")


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_machine_is_not_charged(monkeypatch, name, broken):
    home, container = BROKEN[broken]
    if name == "number" and broken == "margins_sparse":
        pytest.skip("one column of numbers is dense")
    ledger = Ledger(epsilon=10.0, delta=1e-4)
    monkeypatch.setattr(home, broken, fails)
    with pytest.raises(ImportError, match="on purpose"):
        FITS[name](CONTAINERS[container], ledger)
    assert ledger.entries() == ()


def set_arithmetic(how):
    """Set how this thread rounds, or whether it takes the smallest numbers for 0 (x86)."""
    libm, environment = ctypes.CDLL("libm.so.6"), ctypes.create_string_buffer(64)
    if how == "usual":
        return libm.fesetenv(ctypes.c_void_p(-1))
    if isinstance(how, int):
        return libm.fesetround(how)
    libm.fegetenv(environment)
    control = struct.unpack_from("<I", environment, 28)[0]
    struct.pack_into("<I", environment, 28, control | {"flush": 1 << 15, "zero": 1 << 6}[how])
    return libm.fesetenv(environment)


x86 = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="settings of one processor"
)


@x86
@pytest.mark.parametrize("how", [0x400, 0x800, 0xC00, "flush", "zero"])
@pytest.mark.parametrize("name", FITS)
def test_another_arithmetic_is_not_charged(name, how):
    """Rounded down, up or to zero; subnormal results, or arguments, that count as 0."""
    ledger = Ledger(epsilon=10.0, delta=1e-4)
    FITS[name](X, Ledger(epsilon=10.0, delta=1e-4))
    try:
        set_arithmetic(how)
        with pytest.raises(InvalidInput, match="does not round to the nearest"):
            FITS[name](X, ledger)
    finally:
        set_arithmetic("usual")
    assert ledger.entries() == ()


@x86
def test_the_check_sees_an_arithmetic_that_nobody_tried(monkeypatch):
    """Sabotage: nobody looks."""
    monkeypatch.setattr(rehearsal, "_require_usual_arithmetic", lambda: None)
    ledger = Ledger(epsilon=10.0, delta=1e-4)
    try:
        set_arithmetic(0x800)
        FITS["number"](X, ledger)
    finally:
        set_arithmetic("usual")
    assert len(ledger.entries()) == 1


def test_a_loss_that_does_not_compile_is_not_charged(monkeypatch):
    ledger = Ledger(epsilon=10.0, delta=1e-4)
    monkeypatch.setattr(callbacks, "_at_once", fails)
    with pytest.raises(ImportError, match="on purpose"):
        FITS["ridge"](X, ledger)
    assert ledger.entries() == ()


def test_without_a_compiler_nothing_is_charged():
    code = """
        import numpy as np
        from privtail import DPMean, Ledger
        from privtail.errors import InvalidInput
        ledger = Ledger(epsilon=10.0, delta=1e-4)
        try:
            DPMean(ledger=ledger).fit(np.ones((50, 2)))
        except InvalidInput as error:
            print(error)
        print(len(ledger.entries()))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={
            **os.environ,
            "NUMBA_DISABLE_JIT": "1",
            "PYTHONPATH": str(Path(privtail.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "unset NUMBA_DISABLE_JIT" in done.stdout
    assert done.stdout.endswith("\n0\n")


COMPILED = {
    "numbers": lambda rows: DPLinearRegression(epsilon=50.0, **SIMULATED).fit(rows, Y),
    "lad": lambda rows: DPLADRegressor(epsilon=5.0, **SIMULATED).fit(rows, Y),
    "counts": lambda rows: DPPoissonRegressor(epsilon=50.0, **SIMULATED).fit(rows, COUNTS),
    "labels": lambda rows: DPLogisticRegression(epsilon=9.0, **SIMULATED).fit(rows, Y > 0),
    "three": lambda rows: DPLogisticRegression(epsilon=50.0, classes=[0, 1, 2], **SIMULATED).fit(
        rows, COUNTS.clip(0, 2)
    ),
    "few": lambda rows: DPSparseRegressor(1, epsilon=5.0, **SIMULATED).fit(rows, Y),
    "batches": lambda rows: DPRidge(algorithm="kamath-spgd", **SIMULATED).fit(rows, Y),
    "trimmed": lambda rows: DPRidge(algorithm="trimmed-descent", **SIMULATED).fit(rows, Y),
    "catoni": lambda rows: DPMean(method="catoni", **SIMULATED).fit(rows),
    "search": lambda rows: PrivateSearchCV(DPRidge(), {"alpha": [1.0]}, trials=1, **SIMULATED).fit(
        rows, Y
    ),
    "mean derivatives": mean_derivatives,
}


@pytest.mark.filterwarnings("ignore::privtail.errors.AccuracyWarning")
@pytest.mark.filterwarnings("ignore::privtail.errors.PrivacyWarning")
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("container", ["C", "CSR"])
def test_every_kernel_of_a_fit_is_compiled_before_the_charge(monkeypatch, name, container):
    assert late(monkeypatch, name, container) == set()


def test_the_check_sees_a_kernel_that_nobody_tried(monkeypatch):
    monkeypatch.setattr(rehearsal, "_steps", lambda *_: None)
    assert {kernel[0] for kernel in late(monkeypatch, "numbers", "C")} == {
        "influence",
        "moment_sum",
        "tally",
    }


def late(monkeypatch, name, container):
    """The code that ran after the charge, and not before with arguments of the same types."""
    run, try_out = Compiled.__call__, curator_module.rehearse
    met, paid = {True: set(), False: set()}, []

    def watched(self, *args):
        if not getattr(compilation._HERE, "interpreted", False):
            met[bool(paid)].add((self.function.__name__, *map(str, map(typeof, args))))
        return run(self, *args)

    def rehearsed(*args):
        paid.clear()
        try_out(*args)
        paid.append(True)

    monkeypatch.setattr(Compiled, "__call__", watched)
    monkeypatch.setattr(curator_module, "rehearse", rehearsed)
    COMPILED[name](X if container == "C" else unsorted(CONTAINERS["CSR"]))
    assert met[True]
    return met[True] - met[False]


def unsorted(rows):
    """The same numbers, every row from its last column to its first."""
    places = np.arange(rows.indices.size).reshape(rows.shape)[:, ::-1].ravel()
    return sparse.csr_matrix((rows.data[places], rows.indices[places], rows.indptr), rows.shape)


@pytest.mark.parametrize("container", CONTAINERS)
def test_no_record_is_read_before_the_charge(monkeypatch, container):
    """Every kernel that runs before the charge has no rows."""
    seen, charged = [], []

    def watched(kernel, place):
        def run(*args):
            seen.append((bool(charged), np.shape(args[place])[0]))
            return kernel(*args)

        return run

    monkeypatch.setattr(kernels, "margins_dense", watched(kernels.margins_dense, 6))
    monkeypatch.setattr(kernels, "margins_sparse", watched(kernels.margins_sparse, 7))

    reserve = Ledger.reserve

    def noted(self, **entry):
        charged.append(reserve(self, **entry))

    monkeypatch.setattr(Ledger, "reserve", noted)
    DPRidge(ledger=Ledger(epsilon=10.0, delta=1e-4)).fit(CONTAINERS[container], X[:, 0])
    before = [rows for paid, rows in seen if not paid]
    assert before
    assert not any(before)
    assert any(rows for paid, rows in seen if paid)


@pytest.mark.parametrize("started", [0, 1])
def test_where_no_thread_can_be_started_the_sums_are_the_same(monkeypatch, started):
    rows = np.random.default_rng(1).normal(size=(30_000, 2))
    monkeypatch.setenv("PRIVTAIL_THREADS", "3")
    options = {"noise": "simulated", "random_state": 0}
    expected = DPMean(**options).fit(rows).mean_
    starts = itertools.count()
    start = threading.Thread.start

    def limited(thread):
        if next(starts) % 3 >= started:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    assert np.array_equal(DPMean(**options).fit(rows).mean_, expected)
