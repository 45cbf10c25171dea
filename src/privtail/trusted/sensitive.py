"""A value computed from records that nobody may see, and how far one record can move it.

Formal guarantee
----------------
A `Sensitivity` bounds, in units of the integer grid, the change of an int64 vector when one record
is emptied (``radius``) or replaced (``diameter``), in l1, l2 and l-infinity. Every operation of
`Sensitive` keeps these bounds true:

* ``scale``, ``shift``, ``negate``: the integers move by a constant or change sign; bounds stay.
* ``abs``: | |a| - |b| | <= |a - b| in every coordinate; bounds stay.
* ``take``: dropping coordinates cannot increase a norm.
* ``mirror``: (a, -a) changes by (e, -e), whose l1 and l2 norms are 2 and sqrt 2 times those of e.
* ``dot(M)``, M public integers: with e the change, |M e|_inf <= max_i min(|M_i|_1 |e|_inf,
  |M_i|_2 |e|_2, |M_i|_inf |e|_1); |M e|_1 <= max_j |M_.j|_1 |e|_1; |M e|_2 <= |M|_F |e|_2 and
  <= sqrt(|M|_1 |M|_inf) |e|_2.

All norms are then tightened by |e|_inf <= |e|_2 <= |e|_1, |e|_2^2 <= |e|_1 |e|_inf,
|e|_2 <= sqrt(size) |e|_inf and |e|_1 <= sqrt(size) |e|_2, rounded up. The largest magnitude that
any data could produce is below 2^62, checked from public numbers before any record is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtail.errors import IncompatibleParts, InvalidInput, NotReleased, require_whole

if TYPE_CHECKING:
    from privtail.trusted.events import Event
    from privtail.trusted.mechanisms.samplers import Sampler
    from privtail.trusted.opening import Opening

INTEGER_LIMIT = 2**62
T_co = TypeVar("T_co", covariant=True)


def _up(x: float) -> float:
    """Next double above a computed positive bound; exact integers below 2^53 stay."""
    exact = x < 2**53 and x == int(x)
    return x if exact else math.nextafter(x * (1 + 2**-50), math.inf)


def _times(x: float, factor: int) -> float:
    """The product, rounded up."""
    product = x * factor
    exact = math.isinf(product) or Fraction(product) >= Fraction(x) * factor
    return product if exact else math.nextafter(product, math.inf)


@dataclass(frozen=True)
class Norms:
    """Upper bounds on the l1, l2 and l-infinity norm of a change, in grid units."""

    l1: float
    l2: float
    linf: float

    def times(self, factor: int) -> Norms:
        """Bounds on ``factor`` such changes, one after the other (triangle inequality)."""
        return Norms(*(_times(x, factor) for x in (self.l1, self.l2, self.linf)))

    def tightened(self, size: int) -> Norms:
        """The least bounds that follow from these for a vector of ``size`` coordinates."""
        linf = min(self.linf, self.l2, self.l1)
        l2 = min(self.l2, self.l1)
        for candidate in (math.sqrt(size) * linf, math.sqrt(self.l1 * linf)):
            l2 = min(l2, _up(candidate))
        l1 = min(self.l1, size * linf, _up(math.sqrt(size) * l2))
        return Norms(l1, l2, linf)


@dataclass(frozen=True)
class Sensitivity:
    """Everything public about an answer that has not been released.

    Attributes
    ----------
    size : number of coordinates.
    unit : real value of one grid step.
    radius, diameter : bounds on the change under ``zero_out`` and ``replace_one`` of the unit of
        privacy: one row, or one person.
    magnitude : the largest absolute integer that any data could produce.
    one_signed : every record moves all coordinates in one direction.
    question : what was asked, for the statement.
    recipe : the question with its public parameters, then every operation on the answer that
        changes the bounds or the unit. `Problem.follow` gives this very sensitivity from it.
    """

    size: int
    unit: float
    radius: Norms
    diameter: Norms
    magnitude: int
    one_signed: bool = False
    question: str = ""
    recipe: tuple[tuple[Any, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.magnitude >= INTEGER_LIMIT:
            raise InvalidInput(
                f"The sum for {self.question or 'this question'} could reach 2^"
                f"{self.magnitude.bit_length()}, beyond the 2^62 of exact integers. Use fewer "
                "records per batch (PoissonBatches or DisjointParts)."
            )
        object.__setattr__(self, "radius", self.radius.tightened(self.size))
        object.__setattr__(self, "diameter", self.diameter.tightened(self.size))

    def take(self, count: int) -> Sensitivity:
        """The bounds for ``count`` of the coordinates."""
        require_whole("count", count, 0)
        if count > self.size:
            raise InvalidInput(f"Cannot take {count} of {self.size} coordinates.")
        return replace(self, size=count, recipe=(*self.recipe, ("take", int(count))))

    def scale(self, factor: float) -> Sensitivity:
        """The bounds for the value times a positive number."""
        recipe = (*self.recipe, ("scale", float(factor)))
        return replace(self, unit=self.unit * factor, recipe=recipe)

    def abs(self) -> Sensitivity:
        """The bounds for absolute values."""
        return replace(self, one_signed=False, recipe=(*self.recipe, ("abs",)))

    def mirror(self) -> Sensitivity:
        """The bounds for the value followed by its negative."""

        def doubled(e: Norms) -> Norms:
            return Norms(2 * e.l1, _up(math.sqrt(2) * e.l2), e.linf)

        return replace(
            self,
            size=2 * self.size,
            radius=doubled(self.radius),
            diameter=doubled(self.diameter),
            one_signed=False,
            recipe=(*self.recipe, ("mirror",)),
        )

    def dot(self, matrix: NDArray[np.int64]) -> Sensitivity:
        """The bounds for ``matrix @ value``, matrix (rows, size) of public integers."""
        M = np.abs(matrix.astype(object))
        rows_1 = [int(sum(row)) for row in M]
        rows_2 = [_up(math.sqrt(int(sum(x * x for x in row)))) for row in M]
        rows_inf = [int(max(row, default=0)) for row in M]
        columns_1 = max((int(sum(column)) for column in M.T), default=0)
        frobenius = _up(math.sqrt(int(sum(x * x for row in M for x in row))))
        operator = min(frobenius, _up(math.sqrt(columns_1 * max(rows_1, default=0))))

        def moved(e: Norms) -> Norms:
            each = [
                min(_up(a * e.linf), _up(b * e.l2), _up(c * e.l1))
                for a, b, c in zip(rows_1, rows_2, rows_inf, strict=True)
            ]
            return Norms(_up(columns_1 * e.l1), _up(operator * e.l2), max(each, default=0.0))

        return replace(
            self,
            size=len(rows_1),
            radius=moved(self.radius),
            diameter=moved(self.diameter),
            magnitude=self.magnitude * max(rows_1, default=0),
            one_signed=self.one_signed and bool((matrix >= 0).all()),
            recipe=(*self.recipe, ("dot", *map(tuple, matrix.tolist()))),
        )


class Mechanism(Protocol[T_co]):
    """A way to open a `Sensitive`: its bill, and the noisy release."""

    def event(self, sensitivity: Sensitivity) -> Event:
        """What the release costs, from public numbers."""
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
            raise InvalidInput(f"A Sensitive holds {sensitivity.size} int64 numbers.")
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
        return self._with(self._value, self.sensitivity.scale(factor))

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
        chosen = np.asarray(indices).reshape(-1)
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
        """The value followed by its negative: `dot` with (I, -I), in linear time."""
        both = np.concatenate([self._value, -self._value])
        return self._with(both, self.sensitivity.mirror())

    def dot(self, matrix: ArrayLike) -> Sensitive:
        """``matrix @ value`` for a public integer matrix (rows, size)."""
        M = np.asarray(matrix)
        if M.ndim != 2 or M.shape[1] != self.sensitivity.size or M.dtype.kind not in "iu":
            raise InvalidInput(
                f"dot needs an integer matrix with {self.sensitivity.size} columns, "
                f"got shape {M.shape} of {M.dtype}."
            )
        M = M.astype(np.int64)
        return self._with(M @ self._value, self.sensitivity.dot(M))

    def release(self, mechanism: Mechanism[T_co]) -> T_co:
        """Charge, add noise, and return the public answer.

        Raises
        ------
        NotPlanned
            If this is not the next release that was paid for, or its batch is closed.
        """
        from privtail.trusted.mechanisms.registry import MECHANISMS

        kind: type = type(mechanism)
        if kind not in MECHANISMS:
            names = ", ".join(known.__name__ for known in MECHANISMS)
            raise IncompatibleParts(f"A sensitive value is opened by one of {names} only.")
        sampler = self._opening.charge(mechanism.event(self.sensitivity))
        answer = mechanism.release(self._value, self.sensitivity, sampler)
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
