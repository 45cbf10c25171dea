"""``privtail algorithms``: the published algorithms by name."""

from __future__ import annotations

from privtail.cli.console import show


def algorithms() -> None:
    r"""List the published algorithms, and how to run them.

    The list gives the paper, the number of the algorithm in it, the class, the theorem that adds up
    the cost, and what must be known of the data for accuracy. Privacy needs no such knowledge.
    Algorithms with an --algorithm run here, and as algorithm="NAME" in Python; the others run as
    objects in Python.
    auto is the default and needs no tuning. The published ones are there for comparison.

    For example:
      privtail algorithms
      privtail fit claims.csv --target cost --model linear --epsilon 1 \
        --algorithm catoni-descent --out catoni.json
    """
    from privtail.algorithms import TABLE
    from privtail.default import AUTO
    from privtail.published import NAMES
    from privtail.statement import hanging

    for row in (AUTO, *TABLE):
        named = row.name == "auto" or row.name in NAMES
        home = "default" if row.name == "auto" else "algorithms"
        facts = {
            "paper": "from no paper" if row.paper == "-" else f"{row.paper}, {row.box}",
            "class": f"privtail.{home}.{row.algorithm.__name__}",
            "runs": f"--algorithm {row.name}" if named else "in Python, as an object",
            "releases": row.cost,
            "privacy": f"{row.privacy}; replace_one and zero_out",
            "accuracy needs": row.must_know,
        }
        show(f"\n{row.name}")
        for name, fact in facts.items():
            show(hanging(f"  {name:<15} ", fact))
