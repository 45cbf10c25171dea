"""What was promised and what was spent, on one page that anybody can recompute.

A statement holds the promise and the releases of its plan. Every other number (spent epsilon, mu,
rho, shares) is computed from the releases when it is asked for; `verify` does the same with a file,
believing nothing in it.
"""

from __future__ import annotations

from privtail.statement.page import hanging
from privtail.statement.promise import (
    OUTSIDE,
    Noise,
    Statement,
    installed_versions,
    state,
    unkept,
)
from privtail.statement.sense import nonsense
from privtail.statement.verification import Verification, underived, verify, verify_all

__all__ = [
    "OUTSIDE",
    "Noise",
    "Statement",
    "Verification",
    "hanging",
    "installed_versions",
    "nonsense",
    "state",
    "underived",
    "unkept",
    "verify",
    "verify_all",
]
