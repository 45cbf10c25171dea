"""Domains: what is asked of w besides a small loss, a regularizer or a set or both.

w has shape (d,) or (d, K); norms run over all entries, groups over features. A domain has the
operations that are known exactly for it, and no others; an algorithm says what it needs with
`require`:

- ``value(w)``: the regularizer at w; 0 in a set (up to rounding), infinity outside;
- ``prox(w, step)``: argmin over v of ½ ‖v − w‖² + step · value(v);
- ``scaled(scales)``: the same domain for v where w = scales · v;
- ``project(w)``: the nearest point of a set;
- ``minimize_linear(g)``: a point of a bounded set where ⟨g, w⟩ is least;
- ``corners(d, outputs)``: the vertices of a polytope, shape (corners, d, outputs);
- ``axes(d, outputs)``: the length of vertices that all lie on the axes, and whether their
  negatives are vertices too;
- ``net(points, d)``: at most this many points of a bounded set, one row each, on a lattice that
  comes within ``spacing`` of every point of the set;
- ``scatter(uniforms)``: points spread uniformly over a bounded set, one per row of uniform numbers
  in (0, 1), shape (points, d + 1);
- ``diameter(d, outputs)``: the largest ℓ2 distance of two points of a set.
"""

from __future__ import annotations

from privtail.domains.arithmetic import LARGEST_TABLE, MEMBERSHIP_TOLERANCE
from privtail.domains.joint import Multiple, Slopes, Within, may_be_zero, of_slopes, within
from privtail.domains.names import DOMAINS, require
from privtail.domains.protocol import ONES, Domain, Weights
from privtail.domains.proximal import proximal_point
from privtail.domains.regularizers import L1, L2, ElasticNet, GroupLasso, Unconstrained
from privtail.domains.sets import Box, L1Ball, L2Ball, Net, Simplex

__all__ = [
    "DOMAINS",
    "L1",
    "L2",
    "LARGEST_TABLE",
    "MEMBERSHIP_TOLERANCE",
    "ONES",
    "Box",
    "Domain",
    "ElasticNet",
    "GroupLasso",
    "L1Ball",
    "L2Ball",
    "Multiple",
    "Net",
    "Simplex",
    "Slopes",
    "Unconstrained",
    "Weights",
    "Within",
    "may_be_zero",
    "of_slopes",
    "proximal_point",
    "require",
    "within",
]
