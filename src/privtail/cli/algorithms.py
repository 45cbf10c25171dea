"""``privtail algorithms``: the published algorithms by name."""

from __future__ import annotations

from privtail.cli.console import show


def algorithms() -> None:
    r"""List the algorithms that --algorithm NAME runs.

    With paper, box, class, and what accuracy needs to know of the data; privacy needs nothing.
    auto, the default, needs no tuning; the published ones are there for comparison.

    For example:
      privtail algorithms
      privtail fit claims.csv --target cost --model linear --epsilon 1 \
        --algorithm catoni-descent --out catoni.json
    """
    from privtail.algorithms import NAMES, TABLE

    for row in TABLE:
        if row.name != "auto" and row.name not in NAMES:
            continue
        source = "from no paper" if row.paper == "-" else f"{row.paper}, {row.box}"
        facts = {
            "paper": source,
            "class": f"privtail.algorithms.{row.algorithm.__name__}",
            "releases": f"{row.cost} per step",
            "accuracy needs": row.must_know,
        }
        show(f"\n{row.name}")
        for name, fact in facts.items():
            show(f"  {name:<15} {fact}")
