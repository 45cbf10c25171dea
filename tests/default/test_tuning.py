"""There are few tuned numbers, each of them is said, and each has an effect on a plan or a fit."""

from __future__ import annotations

import ast
import importlib
from dataclasses import fields

import numpy as np
import pytest

from privtail.default import Tuning

NAMES = [field.name for field in fields(Tuning)]
DERIVED = {"CERTAIN", "DENSITY", "LONGEST", "SIGN", "SINGULAR"}
"""Constants whose docstring says what they follow from."""


def constants(root, room):
    """Module, name and value of every constant of a room."""
    for path in sorted((root / "src/privtail" / room).glob("*.py")):
        module = importlib.import_module(f"privtail.{room}.{path.stem}")
        for part in ast.parse(path.read_text(encoding="utf-8")).body:
            for target in part.targets if isinstance(part, ast.Assign) else []:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(name, ast.Name) and name.id.isupper() and name.id[0] != "_":
                        yield path.stem, name.id, getattr(module, name.id)


def test_there_are_at_most_forty(root):
    """Also with the numbers that stand in modules; 1 is none."""
    said = Tuning.__doc__ or ""
    assert all(name in said for name in NAMES)
    numbers = list(NAMES)
    for _, name, value in constants(root, "default"):
        values = value if isinstance(value, tuple) else (value,)
        if name not in DERIVED and all(isinstance(x, int | float) for x in values):
            numbers += [name for x in values if x != 1]
    assert len(numbers) <= 40, numbers


def test_a_name_has_one_meaning(root):
    names = [name for _, name, _ in constants(root, "default")]
    assert len(names) == len(set(names))
    assert not {name for _, name, _ in constants(root, "summaries")}.intersection(names)


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
