"""Every error of the source, as rows of the page `messages.md`: what it says, and what to type.

An error is `Kind(what, mend, cli=...)`. Without `mend`, what to type is the end of the text, from
the first sentence, or part after a colon, that asks for something.
"""

from __future__ import annotations

import ast
import html
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

GAP = "…"
"""Stands for what differs from case to case."""

MOST = 4
"""Ways in which one error is shown."""

KINDS = {
    "BudgetExceeded", "UnsupportedAccounting", "InvalidInput", "IncompatibleParts",
    "NotPlanned", "NotReleased",
}  # fmt: skip

ASKS = re.compile(
    r"(?i:add|always|ask|check|bring|calibrate|choose|clone|compare|compose|convert|decompress|declare|"
    r"domains that fit|drop|export|fill|fit|for example|for power 0|give|group by|install|"
    r"its form|keep|known are|leave|make|more|name|of a (?:data frame|file)|from one frame|open|or|"
    r"pass|privately use|put|raise|rebuild|release|rename|repartition|reshape|restore|run|say|"
    r"search|see|skip|start|take|there are|they have|to (?:see|start)|turn|type|update|use|with|"
    r"well-known ones|what would fit|write)\b|--|pip install|privtail |algorithm=|\d for"
)
MUST = re.compile(
    r"\b(?:must|needs?|takes?|go(?:es)? (?:with|together)|belongs? to|alone|only|"
    r"at (?:least|most)|such as|is for|is by|is required|are released by|is expecting|is one of)\b"
)


@dataclass(frozen=True)
class Message:
    """One way in which an error is said."""

    module: str
    line: int
    kind: str
    what: str
    mend: str
    cli: str

    @property
    def text(self) -> str:
        """All of it, as Python says it."""
        return f"{self.what} {self.mend}".strip()


def messages(source: Path) -> list[Message]:
    """Those of every module below a folder, in the order of the source."""
    paths = sorted(source.rglob("*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    constants = _constants(trees)
    found: list[Message] = []
    for path, tree in zip(paths, trees, strict=True):
        own = constants | _returned(tree.body)
        found += _of_scope(tree, path.relative_to(source).as_posix(), own)
    return sorted(dict.fromkeys(found), key=lambda one: (one.module, one.line))


def _of_scope(scope: ast.AST, module: str, known: Names) -> Iterator[Message]:
    """Those of a module or a function, where names stand for what it assigns to them."""
    nodes = list(_own(scope))
    known = known | _assigned(nodes)
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield from _of_scope(node, module, known)
        elif isinstance(node, ast.Call) and _name(node) in KINDS:
            yield from _said(node, module, known)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What is inside of a scope; of the functions in it, themselves alone."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _own(node)


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).split(".")[-1]


def _said(call: ast.Call, module: str, known: Names) -> Iterator[Message]:
    named = {word.arg: word.value for word in call.keywords}
    parts = dict(zip(("what", "mend"), call.args, strict=False)) | named
    texts = [
        _texts(parts[name], known) if name in parts else [""] for name in ("what", "mend", "cli")
    ]
    for what, mend, cli in itertools.product(*texts):
        if re.search(r"\w", what) and not what.startswith(","):  # else a part of it is empty
            yield Message(module, call.lineno, _name(call), _flat(what), _flat(mend), _flat(cli))


Names = dict[str, list[ast.AST]]


def _flat(text: str) -> str:
    """On one line, with one mark for each gap."""
    return " ".join(re.sub(rf"{GAP}+", GAP, text).split())


def _constants(trees: Sequence[ast.Module]) -> Names:
    """What capital names of all modules stand for, and what functions of one name return."""
    nodes = [node for tree in trees for node in tree.body]
    named = {name: values for name, values in _assigned(nodes).items() if name.isupper()}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    several = Counter(node.name for node in functions)
    return named | _returned([node for node in functions if several[node.name] == 1])


def _returned(nodes: Sequence[ast.AST]) -> Names:
    """What functions return, each in the scope of its own."""
    return {f"{node.name}()": [node] for node in nodes if isinstance(node, ast.FunctionDef)}


def _texts_of(function: ast.FunctionDef, known: Names, depth: int) -> list[str]:
    """What a function may return: its parameters are not known, nor are names of its caller."""
    nodes = list(_own(function))
    above = {name: v for name, v in known.items() if name.isupper() or name.endswith("()")}
    returned = [one.value for one in nodes if isinstance(one, ast.Return) and one.value]
    said = [text for one in returned for text in _texts(one, above | _assigned(nodes), depth)]
    return [GAP if text.isspace() else text for text in said]


def _assigned(nodes: Sequence[ast.AST]) -> Names:
    found: Names = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def _texts(node: ast.AST, known: Names, depth: int = 3) -> list[str]:
    """What an expression may say, with a gap for what only a run knows."""
    if isinstance(node, ast.Constant):
        return [node.value if isinstance(node.value, str) else GAP]
    if isinstance(node, ast.JoinedStr):
        return _joined([_texts(part, known, depth) for part in node.values])
    if isinstance(node, ast.FormattedValue):
        return _texts(node.value, known, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _joined([_texts(node.left, known, depth), _texts(node.right, known, depth)])
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, known, depth), *_texts(node.orelse, known, depth)]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".strip"):
        return _texts(node.func.value, known, depth)  # type: ignore[attr-defined]
    name = f"{_name(node)}()" if isinstance(node, ast.Call) else ast.unparse(node)
    if name in known and depth:
        found = [
            one
            for value in known[name]
            for one in (
                _texts_of(value, known, depth - 1)
                if isinstance(value, ast.FunctionDef)
                else _texts(value, known, depth - 1)
            )
        ]
        return list(dict.fromkeys(found)) or [GAP]
    return [GAP]


def _joined(parts: Sequence[Sequence[str]]) -> list[str]:
    """All combinations, or with a gap for what has many forms where they would be many."""
    if math.prod(map(len, parts)) > MOST:
        parts = [part if len(part) == 1 else [GAP] for part in parts]
    return ["".join(choice) for choice in itertools.product(*parts)]


def remedy(message: Message) -> str:
    """What the message asks for, or nothing."""
    if message.mend:
        return message.mend
    if message.what.endswith((f". {GAP}", f": {GAP}")):
        return GAP
    pieces = re.split(r"(?<=[.?…:;,])\s+", message.what)
    for i, piece in enumerate(pieces):
        if ASKS.match(piece) and (i or not piece.startswith("--")):
            return " ".join(pieces[i:])
    sentences = re.split(r"(?<=[.?])\s+", message.what)
    asked = [one for one in sentences if MUST.search(one)]
    return asked[-1] if asked else ""


SECTIONS = {
    "The command line": ("cli/", "written", "export"),
    "Tables, columns and files": (
        "schema/", "storage/", "trusted/records/", "trusted/tables", "trusted/refusals",
        "trusted/dataset", "table_files",
    ),
    "Budgets and ledgers": (
        "ledger", "trusted/ledger", "trusted/journal", "trusted/entries", "trusted/budget",
        "calibration", "promised", "trusted/mechanisms/", "trusted/accounting/",
        "trusted/accountants",
    ),
    "Estimators": ("linear_model/", "published/", "default/", "coefficients", "features", "errors"),
    "Means, counts, quantiles and summaries": ("mean/", "describe/", "summaries/"),
    "Evaluation and searches": (
        "evaluation/", "trusted/row_errors", "trusted/folds", "trusted/search", "trusted/allowance",
    ),
    "Saved models, statements and reports": ("model/", "statement/", "reporting/", "json_files"),
    "Clusters": ("trusted/cluster/", "dask_client"),
    "Losses and domains": ("losses/", "domains/", "trusted/losses/"),
    "For authors of algorithms": ("",),
}  # fmt: skip
"""Heading and the modules below it; the first that fits is taken."""

BOX = """\
<p><label>Filter: <input id="said"
placeholder="paste the message, or type some of its words"></label></p>
<script>
addEventListener("DOMContentLoaded", () => {
  const words = (text) => text.toLowerCase().match(/[a-z_]{2,}/g) || [];
  const rows = [...document.querySelectorAll("table.messages tbody tr")];
  const held = rows.map((row) => [
    new Set(words(row.textContent)), words(row.cells[0].lastChild.textContent)]);
  document.getElementById("said").addEventListener("input", (event) => {
    const typed = words(event.target.value), all = new Set(typed);
    rows.forEach((row, i) => {
      const [own, message] = held[i];
      const same = message.filter((word) => all.has(word)).length;
      const alike = same >= Math.max(2, 0.8 * message.length);
      row.hidden = !alike && !typed.every((word) => own.has(word));
    });
  });
});
</script>
"""


def page(source: Path) -> str:
    """All messages as tables, by what a reader was doing."""
    found: dict[str, dict[str, str]] = {title: {} for title in SECTIONS}
    for one in messages(source):
        starts = (title for title, parts in SECTIONS.items() if one.module.startswith(parts))
        found[next(starts)].setdefault(_row(one), one.kind)
    return BOX + "\n".join(
        f"\n## {title}\n\n<table class='table messages'><thead><tr><th>message</th>"
        f"<th>what to do</th></tr></thead><tbody>\n{''.join(rows)}</tbody></table>\n"
        for title, rows in found.items()
    )


def _row(one: Message) -> str:
    asked, kind = remedy(one), f"<code>{one.kind}</code>: "
    if not one.mend and (asked in ("", GAP) or not one.what.endswith(asked) or one.what == asked):
        return f"<tr><td colspan='2'>{kind}{html.escape(one.what)}</td></tr>\n"
    cause = one.what if one.mend else one.what.removesuffix(asked).rstrip(" :;,")
    shown = f"{asked} On the command line: {one.cli}" if one.cli else asked
    return f"<tr><td>{kind}{html.escape(cause)}</td><td>{html.escape(shown)}</td></tr>\n"
