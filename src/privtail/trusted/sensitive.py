"""A value computed from records that nobody may see.

Formal guarantee
----------------
The integers of a `Sensitive` and its `Sensitivity` change together, by the same public operation,
and only ``release`` lets anything out: the event of the mechanism, made from these bounds, is
matched with the plan first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import IncompatibleParts, InvalidInput, NotReleased
from privtail.trusted.events import Event
from privtail.trusted.exactly import is_one_of
from privtail.trusted.mechanisms.registry import MECHANISMS
from privtail.trusted.mechanisms.samplers import Sampler
from privtail.trusted.opening import Opening
from privtail.trusted.sensitivity import Sensitivity

T_co = TypeVar("T_co", covariant=True)


class Mechanism(Protocol[T_co]):
    """A way to open a `Sensitive`: its bill, and the noisy release."""

    def event(self, sensitivity: Sensitivity) -> Event:
        """The cost of the release, from public numbers."""
        ...

    def release(self, value: NDArray[np.int64], sensitivity: Sensitivity, sampler: Sampler) -> T_co:
        """Draw the noise and return the public answer."""
        ...


class Sensitive:
    """An int64 vector behind a door that only ``release(mechanism)`` opens.

    It prints its shape and sensitivity, never a value; it cannot be converted, compared, indexed,
    iterated or pickled.
    """

    __slots__ = ("_opening", "_sensitivity", "_value")

    def __init__(
        self, value: NDArray[np.int64], sensitivity: Sensitivity, opening: Opening
    ) -> None:
        if value.dtype != np.int64 or value.shape != (sensitivity.size,):
            raise InvalidInput(f"This Sensitive must hold {sensitivity.size} int64 numbers.")
        self._value = value
        self._opening = opening
        self._sensitivity = sensitivity

    @property
    def sensitivity(self) -> Sensitivity:
        """Everything public about the value."""
        return self._sensitivity

    def _with(self, value: NDArray[np.int64], sensitivity: Sensitivity) -> Sensitive:
        return Sensitive(value, sensitivity, self._opening)

    def scale(self, factor: float) -> Sensitive:
        """The value times a positive public number: the unit changes, the integers do not."""
        if not (factor > 0 and math.isfinite(factor)):
            raise InvalidInput(f"scale needs a positive finite factor, got {factor!r}; see negate.")
        return self._with(self._value, self.sensitivity.scale(float(factor)))

    def negate(self) -> Sensitive:
        """Minus the value."""
        return self._with(-self._value, self.sensitivity)

    def shift(self, vector: ArrayLike) -> Sensitive:
        """The value plus a public vector, rounded to the unit."""
        steps = np.asarray(vector, dtype=np.float64).reshape(-1) / self.sensitivity.unit
        if steps.shape != self._value.shape:
            raise InvalidInput(f"shift needs {self.sensitivity.size} numbers, got {steps.size}.")
        if not bool((np.abs(steps) < 2.0**61).all()):
            raise InvalidInput(
                "The public vector is too large for the grid of this answer: more than 2^61 "
                f"units of {self.sensitivity.unit:.3g}. Release first, then add it."
            )
        integers = np.rint(steps).astype(np.int64)
        largest = self.sensitivity.magnitude + int(np.abs(integers).max(initial=0))
        return self._with(self._value + integers, replace(self.sensitivity, magnitude=largest))

    def abs(self) -> Sensitive:
        """Coordinatewise absolute values."""
        return self._with(np.abs(self._value), self.sensitivity.abs())

    def take(self, indices: ArrayLike) -> Sensitive:
        """Some coordinates, by public (or released) indices; each at most once."""
        chosen = np.array(indices).reshape(-1).copy()  # what is checked is what is taken
        inside = chosen.size == 0 or (
            chosen.dtype.kind in "iu" and chosen.min() >= 0 and chosen.max() < self.sensitivity.size
        )
        if not inside or len(set(chosen.tolist())) != chosen.size:
            raise InvalidInput(
                f"take needs distinct whole indices in 0 .. {self.sensitivity.size - 1}."
            )
        chosen = chosen.astype(np.int64)
        return self._with(self._value[chosen], self.sensitivity.take(chosen.size))

    def mirror(self) -> Sensitive:
        """The value followed by its negative."""
        both = np.concatenate([self._value, -self._value])
        return self._with(both, self.sensitivity.mirror())

    def release(self, mechanism: Mechanism[T_co]) -> T_co:
        """Charge, add noise, and return the public answer.

        Raises
        ------
        NotPlanned
            If this is not the next release that was paid for, or its batch is closed.
        """
        given: Any = mechanism
        if not is_one_of(given, MECHANISMS):
            names = ", ".join(known.__name__ for known in MECHANISMS)
            raise IncompatibleParts(f"A sensitive value is opened by one of {names} only.")
        own: Mechanism[T_co] = replace(given)  # in plain numbers: what is billed is what is drawn
        sampler = self._opening.charge(own.event(self.sensitivity))
        answer = own.release(self._value, self.sensitivity, sampler)
        self._opening.released()
        return answer

    def __repr__(self) -> str:
        s = self.sensitivity
        return (
            f"Sensitive(size={s.size}, unit={s.unit:.6g}, l2 radius={s.radius.l2 * s.unit:.6g}, "
            f"l2 diameter={s.diameter.l2 * s.unit:.6g})"
        )

    def __reduce__(self) -> NoReturn:
        raise NotReleased("A Sensitive value cannot be pickled or copied; release it first.")

    def __getstate__(self) -> NoReturn:
        raise NotReleased("A Sensitive value cannot be pickled or copied; release it first.")


def _refuse(name: str) -> Callable[..., Any]:
    def refused(self: Sensitive, *args: object, **kwargs: object) -> NoReturn:
        raise NotReleased(
            f"{name} would show a value that has not been released. "
            "Call .release(mechanism), for example .release(GaussianNoise(multiplier))."
        )

    return refused


_CONVERSIONS = ("float", "int", "bool", "complex", "index", "hash", "round")
_CONTAINERS = ("len", "iter", "getitem", "contains", "array", "array_ufunc", "array_function")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ARITHMETIC = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "matmul", "rmatmul", "neg")
for _name in (*_CONVERSIONS, *_CONTAINERS, *_COMPARISONS, *_ARITHMETIC, "pos"):
    setattr(Sensitive, f"__{_name}__", _refuse(f"__{_name}__"))
