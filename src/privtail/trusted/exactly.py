"""The exact type of an object, which the object itself cannot change.

Formal guarantee
----------------
Types are compared by identity. A class of somebody else may say that it equals one of ours, and
hash as it does: a set, a tuple or a dictionary of types would take it for ours.
"""

from __future__ import annotations

from collections.abc import Iterable


def is_one_of(value: object, kinds: Iterable[object]) -> bool:
    """Whether the type of ``value`` is one of these, and no class derived from it."""
    return any(type(value) is kind for kind in kinds)


def are_of(values: Iterable[object], kinds: Iterable[object]) -> bool:
    """Whether the type of every value is one of these; no type is compared or hashed."""
    return set(map(id, kinds)).issuperset(map(id, map(type, values)))
