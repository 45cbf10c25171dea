"""Write what the cells of the pages printed below them, for those who read the repository.

    make docs, then  python docs/outputs.py build/docs/html

The site itself shows the outputs of its own build: `docs/conf.py` takes these out with `without`.
"""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
CELL = re.compile(r"^```\{code-cell\} ipython3\n.*?^```$", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"\n\n<!-- printed -->\n.*?<!-- /printed -->", re.DOTALL)
PICTURE = "*(A picture stands here in the site that `make docs` builds.)*"


def without(text: str) -> str:
    """The page without what its cells printed."""
    return OUTPUT.sub("", text)


def printed(outputs: list[dict[str, Any]]) -> str:
    """What one cell printed, as Markdown; a picture is named."""
    shown = list(_shown(outputs))
    text = "".join(part for part in shown if part != PICTURE).strip("\n")
    parts = [f"```text\n{text}\n```"] if text.strip() else []
    parts += [PICTURE] if PICTURE in shown else []
    if not parts:
        return ""
    return "\n\n".join(["", "<!-- printed -->\n" + "\n\n".join(parts) + "\n<!-- /printed -->"])


def _shown(outputs: list[dict[str, Any]]) -> Iterator[str]:
    for output in outputs:
        data = output.get("data", {})
        if "text" in output:
            yield _told("".join(output["text"]))
        elif "image/png" in data:
            yield PICTURE
        elif "".join(data.get("text/plain", "")).startswith("<IPython"):
            yield _flat("".join(data["text/html"])) + "\n"
        elif "text/plain" in data:
            yield "".join(data["text/plain"]) + "\n"


def _told(text: str) -> str:
    """Without temporary folders, and a warning without the place and the line that it names."""
    lines = re.sub(r"(?<!\w)/tmp/\w+", "...", text).splitlines(keepends=True)
    found, skip = [], False
    for line in lines:
        warning = re.match(r"[./]\S+:\d+: (\w*Warning: .*)", line, flags=re.DOTALL)
        if not (skip and line.startswith("  ")):
            found.append(warning[1] if warning else line)
        skip = warning is not None
    return "".join(line.rstrip() + "\n" if line.endswith("\n") else line for line in found)


def _flat(page: str) -> str:
    """The text of HTML, with the numbers of marked lines."""
    page = re.sub(r'<span class="sign">(?:<b>(\d+)</b>)?</span>',
                  lambda mark: f"{mark[1] or '':>2}  ", page)  # fmt: skip
    return html.unescape(re.sub(r"<[^>]+>", "", page))


def source(cell: str) -> str:
    """The code of a cell as it is run: without the fence and the tags."""
    return re.sub(r"^(?::\w+:[^\n]*\n)+", "", "\n".join(cell.splitlines()[1:-1])).strip()


def filled(page: str, notebooks: list[dict[str, Any]]) -> str:
    """The page with what its cells printed in the last notebook of the same code."""
    page = without(page)
    code = [source(cell) for cell in CELL.findall(page)]
    for notebook in notebooks[::-1]:
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        if ["".join(cell["source"]).strip() for cell in cells] == code:
            parts = re.split(f"({CELL.pattern})", page, flags=CELL.flags)
            parts[1::2] = [
                shown + printed(cell["outputs"])
                for shown, cell in zip(parts[1::2], cells, strict=True)
            ]
            return "".join(parts)
    raise SystemExit("No cell of this page was run as it stands: make docs first.")


if __name__ == "__main__":
    cache = Path(sys.argv[1]).resolve().parent / ".jupyter_cache" / "executed"
    found = sorted(cache.glob("*/base.ipynb"), key=lambda path: path.stat().st_mtime)
    executed = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    for path in sorted(DOCS.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        if CELL.search(text):
            path.write_text(filled(text, executed), encoding="utf-8")
