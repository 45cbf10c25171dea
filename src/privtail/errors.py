"""The errors of privtail, all under one root.

    PrivtailError
    ├── BudgetExceeded         a plan costs more than what is left; nothing was read
    ├── NotPlanned             a release that no plan announced, or from a closed batch
    ├── NotReleased            somebody tried to look inside a Sensitive
    ├── UnsupportedAccounting  no theorem is known for this mixture of releases
    ├── IncompatibleParts      a loss, a domain, a mean and an algorithm do not fit
    └── InvalidInput           shapes, types, files or numbers that cannot be used

Warnings before a fit are made of public numbers only, all under `PrivacyWarning`:

    ├── DeltaWarning           delta is above 1/n
    └── NoiseWarning           the planned noise is above any signal

`AccuracyWarning` says that the answer says little. It comes after a fit and is made of released
numbers, or before it of public names: the target is among the features.
`MissingWarning` comes with predictions, and is made of the rows to predict alone.

An error says what happened, why it probably happened, and what to type instead. None quotes
a value that came from a row.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from itertools import takewhile
from numbers import Integral, Number, Real
from operator import index
from typing import SupportsIndex, cast


class PrivtailError(Exception):
    """Root of all errors raised on purpose by privtail.

    Parameters
    ----------
    what : what happened, and why.
    mend : what to type instead, in Python.
    cli : what to type instead on the command line, where that differs.

    Attributes
    ----------
    cli : the whole text as the command line says it; ``str(error)`` is what Python says.
    """

    def __init__(self, what: str = "", mend: str = "", *, cli: str = "") -> None:
        super().__init__(f"{what} {mend}".strip())
        self.cli = f"{what} {cli or mend}".strip()


class BudgetExceeded(PrivtailError):
    """The planned cost is larger than what the ledger has left."""


class NotPlanned(PrivtailError):
    """A release does not match the next planned event, or its batch is closed."""


class NotReleased(PrivtailError, TypeError):
    """A sensitive value was used as if it were public."""


class UnsupportedAccounting(PrivtailError):
    """No privacy theorem is known to us for these releases under these neighbours."""


class IncompatibleParts(PrivtailError, TypeError):
    """Loss, domain, mean and algorithm do not fit together."""


class InvalidInput(PrivtailError, ValueError):
    """An argument, a shape, a file or a number that cannot be used."""


class PrivacyWarning(UserWarning):
    """Root of all warnings; each is decided by public numbers alone."""


class DeltaWarning(PrivacyWarning):
    """A delta above 1/n allows the publication of a row."""


class NoiseWarning(PrivacyWarning):
    """The planned noise is larger than any slope can be."""


class AccuracyWarning(UserWarning):
    """The answer says little; decided by released numbers, or by public names of columns."""


class MissingWarning(UserWarning):
    """Rows to predict hold no category known to the model, or rows in files have no prediction."""


def warn(warning: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn at the line of whoever called privtail, however many of its functions are between."""
    calls = traceback.extract_stack()[::-1]
    level = sum(1 for _ in takewhile(lambda call: call.filename.startswith(_BETWEEN), calls))
    warnings.warn(warning, category, stacklevel=level + 1)


_BETWEEN = (os.path.join(os.path.dirname(__file__), ""), contextlib.__file__)  # noqa: PTH118, PTH120
"""Files of functions that stand between the line that a warning is for and the warning."""


def told(value: object) -> str:
    """What a refusal shows of an argument: a table that was passed by mistake would show cells."""
    shown = value is None or isinstance(value, Number | str)
    return repr(value) if shown else f"an object of type {type(value).__name__}"


def real(name: str, value: object) -> float:
    """The number ``value`` as a double; raise InvalidInput if it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{name} must be a number, got {told(value)}.")
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput(f"{name} must be a number below 1.8e308.") from None
    except TypeError:  # a time span of NumPy, which says that it is a number
        raise InvalidInput(f"{name} must be a number, got {told(value)}.") from None


def require_whole(name: str, value: object, least: int) -> int:
    """The whole number ``value``, read once; raise InvalidInput unless it is at least ``least``."""
    known = isinstance(value, Integral | int) and type(value) is not bool
    known = known and hasattr(value, "__index__")  # a time span of NumPy says it is whole
    whole = index(cast(SupportsIndex, value)) if known else None
    if whole is None or whole < least:
        raise InvalidInput(f"{name} must be a whole number of at least {least}, got {told(value)}.")
    return whole
