"""There are few tuned numbers, each of them is said, and each has an effect on a plan or a fit."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from privtail.default import Tuning

NAMES = [field.name for field in fields(Tuning)]


def test_there_are_at_most_forty():
    assert len(NAMES) <= 40
    said = Tuning.__doc__ or ""
    assert all(name in said for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_used(name, root):
    """In some module of the default, by its name."""
    rooms = (root / "src/privtail/default", root / "src/privtail/published")
    texts = [p.read_text() for room in rooms for p in room.glob("*.py") if p.stem != "tuning"]
    assert any(f"tuning.{name}" in text for text in texts)


def test_all_are_positive_numbers():
    values = np.array([getattr(Tuning(), name) for name in NAMES])
    assert (values > 0).all()
    assert np.isfinite(values).all()
