"""The defaults release and find what they did, unless a commit says that they changed."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.default import golden

ANEW = "python -m tests.default.golden --write"


@pytest.fixture(scope="module")
def stored() -> dict[str, dict[str, object]]:
    """What the file holds."""
    found: dict[str, dict[str, object]] = json.loads(golden.FILE.read_text(encoding="utf-8"))
    return found


def test_every_fit_is_what_it_was(stored: dict[str, dict[str, object]]) -> None:
    assert stored.keys() == golden.FITS.keys(), f"The list of fits changed; type: {ANEW}"
    changed = {
        name: parts
        for name in golden.FITS
        if (parts := golden.differences(stored[name], golden.taken(name)))
    }
    lines = [f"{name}: {', '.join(parts)}" for name, parts in changed.items()]
    assert not changed, "\n".join(
        [
            f"{len(changed)} of {len(stored)} fits changed:", *lines,
            f"If that is wanted, say so in the commit, and make the file anew: {ANEW}",
        ]
    )  # fmt: skip


def test_a_change_of_any_kind_is_seen(stored: dict[str, dict[str, object]]) -> None:
    old = stored["squares, fine"]
    assert golden.differences(old, old) == []
    near = old | {"coef": list(np.array(old["coef"]) * (1 + 1e-9))}
    assert golden.differences(old, near) == []
    for part in ("plan", "releases"):
        assert golden.differences(old, old | {part: old[part][1:]}) == [part]
    far = old | {"coef": list(np.array(old["coef"]) * (1 + 1e-5)), "intercept": [0.0, 1.0]}
    assert golden.differences(old, far) == ["coef", "intercept"]
