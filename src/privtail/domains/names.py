"""One example of every domain, and what an algorithm asks of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privtail.domains.joint import name_of, within
from privtail.domains.protocol import Domain
from privtail.domains.regularizers import L1, L2, ElasticNet, GroupLasso, Unconstrained
from privtail.domains.sets import Box, L1Ball, L2Ball, Simplex
from privtail.errors import IncompatibleParts

if TYPE_CHECKING:
    from collections.abc import Sequence


def _listed(names: Sequence[str]) -> str:
    return " and ".join(f"`{name}`" for name in names)


DOMAINS: tuple[Domain, ...] = (
    Unconstrained(),
    L1(alpha=0.3),
    L2(alpha=0.7),
    ElasticNet(alpha=0.5, l1_ratio=0.4),
    GroupLasso(alpha=0.3, groups=((0, 2), (1,))),
    L2Ball(radius=1.5),
    L1Ball(radius=1.5),
    Box(low=-0.5, high=1.0),
    Simplex(radius=1.0),
    within(L1(alpha=0.3), L2Ball(radius=1.0)),
    within(ElasticNet(alpha=0.5, l1_ratio=0.4), L1Ball(radius=1.0)),
)
"""One example of every domain, and two pairs; the contract tests run over it."""


def require(domain: Domain, *operations: str, needed_by: str) -> Any:
    """Return ``domain`` if it has all ``operations``.

    Raises
    ------
    IncompatibleParts
        Otherwise; the message lists what is missing and which domains fit.
    """
    missing = [name for name in operations if not hasattr(domain, name)]
    if not missing:
        return domain
    fitting = (other for other in DOMAINS if all(hasattr(other, name) for name in operations))
    raise IncompatibleParts(
        f"{needed_by} needs {_listed(operations)} of its domain; {name_of(domain)} has no "
        f"{_listed(missing)}. Domains that fit: {', '.join(map(name_of, fitting)) or 'none'}."
    )
