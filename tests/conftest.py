"""Fixtures and settings for every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before NumPy and Numba are imported: two test processes share two cores, and a numerical
# library that starts a thread per core would only make them wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
# Nor do sums start threads of their own, but in tests that say how many: every sweep would.
os.environ.setdefault("PRIVTAIL_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# Many tests start an interpreter: without compiled files each would compile all sources anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    import numpy as np

ROOT = Path(__file__).resolve().parents[1]

# The same examples every time: a red test is red for everybody. `pytest
# --hypothesis-profile=search` looks for new ones.
settings.register_profile(
    "privtail", derandomize=True, deadline=None, max_examples=100, database=None
)
settings.register_profile("search", deadline=None, max_examples=5_000, print_blob=True)
settings.load_profile("privtail")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and let it pass over all tests from then on.

    Else it walks them again and again: a third of the time that a collection takes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the folder of the repository; skip where the tests travel without it."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("needs the repository around the tests")
    return ROOT


@pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow)])
def half(request: pytest.FixtureRequest) -> int:
    """Return which half of its cases a test tries: `make test` the first, `make check` both."""
    return int(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator that starts at the same place in every test."""
    import numpy as np

    return np.random.default_rng(20_200)


@pytest.fixture
def simulated_is_booked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ledgers take simulated noise, for tests of what is charged and not of what is drawn."""
    from privtail.trusted.ledger import Ledger

    monkeypatch.setattr(Ledger, "refuse_simulated", lambda *_: None)
