"""The page of a report: HTML in one file, without scripts and without anything to load."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from privtail.errors import InvalidInput
from privtail.ledger_texts import digits_above
from privtail.reporting.contents import Content, read_content
from privtail.reporting.pictures import budget, curves
from privtail.spelling import counted
from privtail.statement import Statement, installed_versions, verify
from privtail.views import MOST, Row, intervals, shown

LEGEND = (
    (
        "ε (epsilon)",
        "how far one row, or one person, may change what is likely to come out: smaller is better",
    ),
    (
        "δ (delta)",
        "a small slack: results become at most e^ε times as likely, plus δ",
    ),
    ("n", "the number of rows, which is public"),
    ("μ (mu), ρ (rho)", "the same promise in the units of Gaussian and zero-concentrated DP"),
    ("neighbours", "which tables are compared: one row replaced by another, or emptied"),
    ("stage, question", "what a release is for; what was computed of the rows before the noise"),
    ("law, sampling", "the distribution of the noise; which rows took part"),
    ("times, size", "how often there was such a release; how many numbers it holds"),
    ("noise std", "the standard deviation of the noise that was added to each number"),
    (
        "std/rad., std/diam.",
        "noise over how far that row, or person, can move the sum (emptied, replaced)",
    ),
    ("share", "the part of the budget that the release used, to first order"),
)


def report(*paths: str | os.PathLike[str], title: str = "Private release") -> str:
    """Make a self-contained HTML page about one or more files that privtail wrote.

    It shows what was released, the promise in plain words, where the budget went, the numbers with
    their intervals as pictures, what the promise does not cover, how to verify it, and every
    release in an appendix. It reads released files alone, so it costs nothing.

    Parameters
    ----------
    *paths : path
        Files of models, evaluations, statements, and what other commands write with ``--out``.
    title : str, default="Private release"
        Title of the page.

    Returns
    -------
    str
        The page, to write to a file.

    Raises
    ------
    InvalidInput
        If a file cannot be read, or is none of these.

    Examples
    --------
    >>> import privtail
    >>> page = privtail.report("model.json")  # doctest: +SKIP
    """
    if not paths:
        raise InvalidInput('Name one or more files to report on: report("model.json").')
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise InvalidInput(
                f"report reads written files, got a {type(path).__name__}. "
                'Write it first: model.save("model.json"), then report("model.json").'
            )
    return page([read_content(path) for path in paths], title)


def page(contents: Sequence[Content], title: str) -> str:
    """The same of what was read."""
    named: dict[Statement, str] = {}
    for content in contents:
        for statement in content.statements:
            several = f", {statement.label}" if len(content.statements) > 1 else ""
            named.setdefault(statement, f"{content.title} ({content.file}{several})")
    statements = list(named)
    body = [
        f"<header><h1>{escape(title)}</h1>{_verdict(statements)}</header>",
        _promise(named),
        *(_section(one) for content in contents for one in (content, *content.parts)),
        _spent(named),
        _outside(statements),
        _checking(contents),
        _appendix(named),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main>{''.join(body)}</main></body></html>\n"
    )


def _verdict(statements: Sequence[Statement]) -> str:
    wrong = [s for s in statements if not s.private or not verify(s).ok]
    if wrong:
        return f'<p class="bad" role="status">{escape(wrong[0].headline)}</p>'
    version = dict(installed_versions()).get("privtail", "")
    return (
        '<p class="good" role="status">The cost was recomputed from the list of releases by '
        f"privtail {escape(version)} on {datetime.now(UTC):%d %B %Y}, when this page was written, "
        "and is within the promise. Check it yourself (see below). No file can prove that the "
        "releases were really made like this, or that nobody edited the numbers.</p>"
    )


def most_certain(epsilon: float, delta: float) -> float:
    """How often an attacker is right, at most, who guesses which of two tables was there.

    The tables differ in what is protected, and both are equally likely before. By the total
    variation of two (epsilon, delta)-close laws, (e^epsilon + delta) / (1 + e^epsilon) (Kairouz,
    Oh and Viswanath 2015).
    """
    if epsilon > 700:
        return 1.0
    return min(1.0, (math.exp(epsilon) + delta) / (1 + math.exp(epsilon)))


def _percent(epsilon: float, delta: float) -> str:
    return f"<strong>{math.ceil(1000 * most_certain(epsilon, delta)) / 10:.1f} %</strong>"


def _promise(named: Mapping[Statement, str]) -> str:
    parts = [
        f"<h3>{escape(name)}</h3>"
        + (_protection(s) if s.private else f"<p><strong>{escape(s.headline)}.</strong></p>")
        for s, name in named.items()
    ]
    several = ""
    relations = {s.neighbours for s in named}
    if len(named) > 1 and len(relations) == 1 and all(s.private for s in named):
        rows = any(s.max_rows is None for s in named)
        alone = "row" if all(s.max_rows is None for s in named) else "person"
        epsilon, delta = (
            math.fsum(getattr(s, name) for s in named) for name in ("epsilon", "delta")
        )
        several = (
            "<h3>Together</h3><p>If all releases are from the same rows, their ε and δ add up to "
            f"ε = {digits_above(epsilon):g} and δ = {digits_above(delta):g} for one "
            f"{'row' if rows else 'person'}. The guess is then right in at most "
            f"{_percent(epsilon, delta)} of the cases. A release from these rows that is not on "
            f"this page adds to the sums. If no {alone} is in two files, and no private cell "
            "decides in which one, each promise above holds as it stands.</p>"
        )
    units = {
        s.max_rows is None: "any single row" if s.max_rows is None else "any person" for s in named
    }
    one = " or ".join(units.values())
    return (
        "<section><h2>What is promised</h2><p>Random noise was added to every number that was "
        f"computed from the rows, so that what was released depends little on {one}.</p>"
        f"{''.join(parts)}{several}</section>"
    )


def _protection(statement: Statement) -> str:
    """The promise of one statement for a reader who knows no differential privacy."""
    if statement.max_rows is None:
        who, others, guess = "one row", "rows", "of two values the row holds"
        if statement.neighbours == "zero_out":
            guess = "it was: the row was there, or its place was empty"
        limit = " If a person has several rows, the percentage below does not hold for the person."
    else:
        most = statement.max_rows
        who = f"one person, of whose rows at most {most} {'are' if most > 1 else 'is'} used,"
        others, guess, limit = "persons' rows", "of two sets of values the person's rows hold", ""
        if statement.neighbours == "zero_out":
            guess = "it was: the person's rows were there, or their places were empty"
    assumed = f"<p>It rests on:</p>{_list(statement.assumptions)}" if statement.assumptions else ""
    rows = counted(statement.n, "row")
    return (
        f"<p>This protects {who} in a table of {rows}.{limit} Imagine somebody who "
        f"sees what was released, and knows all other {others}. They guess which {guess}. If both "
        "were equally likely before, they are right in at most "
        f"{_percent(statement.epsilon, statement.delta)} of the cases. Blind guessing is right in "
        "50 %. This is the bound for any method with "
        f"ε = {statement.epsilon:g}, δ = {statement.delta:g}.</p>{assumed}"
    )


def _section(content: Content) -> str:
    described = "".join(f"<p>{escape(text)}</p>" for text in content.described)
    found = [f"<section><h2>{escape(content.title)}</h2>{described}"]
    if content.numbers:
        if content.zero or _alike(content.numbers):
            found.append(_picture(content))
        found.append(_numbers(content.numbers))
    if content.curves is not None:
        found.append(f"<figure>{curves(content.curves)}</figure>")
    if content.notes:
        found.append(f"<h3>Notes</h3>{_list(content.notes)}")
    return "".join([*found, "</section>"])


def _picture(content: Content) -> str:
    """The numbers; of many, those that are clearest relative to their uncertainty."""
    rows = content.numbers
    if len(rows) <= MOST:
        return f"<figure>{intervals(rows, content.title, zero=content.zero)}</figure>"
    shown = sorted(sorted(rows, key=_strength, reverse=True)[:MOST], key=rows.index)
    said = f"The {MOST} of {len(rows)} numbers that are clearest relative to their uncertainty."
    if not any(map(_strength, shown)):
        said = f"The first {MOST} of {len(rows)} numbers: none has an interval with two ends."
    picture = intervals(shown, content.title, zero=content.zero)
    return f"<figure>{picture}<figcaption>{said}</figcaption></figure>"


def _strength(row: Row) -> float:
    if row.value is None or row.low is None or row.high is None:
        return 0.0
    return abs(row.value) / max(row.high - row.low, 1e-300)


def _alike(rows: Sequence[Row]) -> bool:
    """Whether one scale shows all of these numbers."""
    sizes = [abs(row.value) for row in rows if row.value]
    return bool(sizes) and max(sizes) <= 50 * min(sizes)


def _numbers(rows: Sequence[Row]) -> str:
    cells = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th>{_cell(row.value, many, "not known")}'
        f"{_cell(row.low, many, 'base level' if row.base else 'open')}"
        f"{_cell(row.high, many, '' if row.base else 'open')}</tr>"
        for row in rows
        for many in [row.digits(5)]
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", "value", "from", "to"))
    table = f'<div class="wide"><table><tr>{head}</tr>{cells}</table></div>'
    if len(rows) <= MOST:
        return table
    return f"<details><summary>Show all {len(rows)} numbers</summary>{table}</details>"


def _cell(x: float | None, many: int, missing: str) -> str:
    return f'<td class="soft">{missing}</td>' if x is None else f"<td>{shown(x, many)}</td>"


def _spent(named: Mapping[Statement, str]) -> str:
    found = []
    for statement, name in named.items():
        shares: dict[str, float] = {}
        for stage, question, *_, share in statement.table()[1:]:
            purpose = question if stage == "-" else stage
            part = float(share.rstrip("%")) / 100 if share.endswith("%") else 0.0
            shares[purpose] = shares.get(purpose, 0.0) + part
        said = "There is no limit."
        if statement.private:
            spent = digits_above(statement.spent)
            said = (
                f"Spent: ε = {spent:g} of {statement.epsilon:g}, at δ = {statement.delta:g}, "
                "rounded up."
            )
        ledger = escape(statement.ledger or "none")
        found.append(
            f"<h3>{escape(name)}</h3><p>{said} Ledger: {ledger}.</p>"
            f"<figure>{budget(list(shares.items()))}</figure>"
        )
    return f"<section><h2>Where the budget went</h2>{''.join(found)}</section>"


def _outside(statements: Sequence[Statement]) -> str:
    outside = dict.fromkeys(text for s in statements for text in s.outside)
    return (
        f"<section><h2>What the promise does not cover</h2>{_list(tuple(outside))}<p>These are "
        "public, and not protected: the number of rows, the names and types of columns, declared "
        "categories and labels, settings, and the names in an entry of a ledger.</p></section>"
    )


def _checking(contents: Sequence[Content]) -> str:
    commands = "\n".join(f"privtail verify {escape(content.file)}" for content in contents)
    digests = "".join(
        f"<dt>{escape(content.file)}</dt><dd><code>{content.digest}</code></dd>"
        for content in contents
        if content.digest
    )
    sums = f"<p>SHA-256 sums of the files:</p><dl>{digests}</dl>" if digests else ""
    return (
        "<section><h2>How to check it</h2><p>The cost is recomputed from the list of releases "
        "alone; nobody has to believe this page:</p>"
        f"<pre>{commands}</pre><p>Use a copy of privtail that you trust. No file can prove that "
        "the releases were really made like this, or that nobody edited the numbers. Get the files "
        "from whoever made them, and ask how the rows were handled. Nobody outside the project has "
        "reviewed privtail.</p>"
        f"{sums}</section>"
    )


def _appendix(named: Mapping[Statement, str]) -> str:
    legend = "".join(f"<dt>{escape(a)}</dt><dd>{escape(b)}</dd>" for a, b in LEGEND)
    pages = "".join(
        f"<h3>{escape(name)}</h3><div class='wide'>{s._repr_html_()}</div>"
        for s, name in named.items()
    )
    return (
        f"<section><h2>Appendix: every release</h2><dl>{legend}</dl>"
        f"<details><summary>Show the tables</summary>{pages}</details></section>"
    )


def _list(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(_items(texts))}</ul>"


def _items(texts: Sequence[str]) -> Iterator[str]:
    return (f"<li>{escape(text)}</li>" for text in texts)


_STYLE = """
:root{--ink:#1b1f24;--soft:#57606a;--paper:#fff;--line:#d0d7de;--bar:#0072b2;--good:#dafbe1;
--bad:#ffebe9}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9aa5b1;--paper:#14181d;--line:#3d444d;
--bar:#56b4e9;--good:#12351f;--bad:#4a1717}}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:46rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.8rem;line-height:1.2;margin:.5rem 0}h2{margin-top:2.2rem;font-size:1.3rem}
h3{font-size:1.05rem;margin:1.2rem 0 .3rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{text-align:right;padding:.25rem .7rem;border-bottom:1px solid var(--line)}
th[scope=row],th:first-child,td:first-child{text-align:left}
.wide{overflow-x:auto}figure{margin:1rem 0}svg{width:100%;height:auto}
@media(max-width:40rem){figure{overflow-x:auto}figure>svg{min-width:36rem}}
figcaption,summary{color:var(--soft);font-size:.92rem}summary{cursor:pointer}
svg text{fill:var(--ink);font:13px system-ui,sans-serif}svg .soft,.soft{fill:var(--soft);
color:var(--soft)}
.axis{stroke:var(--line);stroke-width:1.5}.frame{fill:none;stroke:var(--line)}
.bar{stroke:var(--bar);stroke-width:2.5}.dot{fill:var(--bar)}
.curve{fill:none;stroke:var(--bar);stroke-width:2.5}
.pair{display:flex;flex-wrap:wrap;gap:1rem}.pair svg{flex:1 1 18rem;max-width:22rem}
.good,.bad{padding:.6rem .9rem;border-radius:.4rem;background:var(--good)}
.bad{background:var(--bad)}
pre{padding:.8rem;border:1px solid var(--line);border-radius:.4rem;overflow-x:auto}
dt{font-weight:600}dd{margin:0 0 .4rem 1rem}
code{overflow-wrap:anywhere}
.c0{fill:#0072b2}.c1{fill:#e69f00}.c2{fill:#009e73}.c3{fill:#cc79a7}.c4{fill:#56b4e9}
.c5{fill:#d55e00}.c6{fill:#b8a800}.c7{fill:#7f7f7f}
@media print{main{max-width:none;padding:0}.wide{overflow:visible}.wide table{font-size:7pt}
th,td{padding:.15rem .3rem}details::details-content{content-visibility:visible;display:block;
block-size:auto}}
"""
