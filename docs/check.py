"""Check a built site: links inside it resolve, nothing is fetched, and pictures are named in words.

python docs/check.py build/docs/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}


class Page(HTMLParser):
    """The anchors of a page, and the addresses that it links to or fetches."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.unnamed: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what the tag names, links to or fetches, and pictures that no words name."""
        words = dict(attrs)
        if tag == "img" and (words.get("alt") or ".png").endswith(".png"):
            self.unnamed.append(words.get("src") or "a picture")
        for key, value in attrs:
            if key in {"id", "name"} and value:
                self.anchors.add(value)
            elif key in {"href", "src"} and value:
                (self.fetched if (tag, key) in FETCHED else self.links).append(value)


def faults(site: Path) -> list[str]:
    """One line for every dead link, fetched address and picture without words."""
    files = (path for path in site.rglob("*.html") if "_static" not in path.parts)
    pages = {path: Page(path) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        found += [f"{name}: no words name {picture}" for picture in page.unnamed]
        for address in page.links + page.fetched:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.fetched and parts.scheme != "data":
                    found.append(f"{name}: fetches {address}")
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.exists():
                found.append(f"{name}: no such page: {address}")
            elif (
                target in pages
                and parts.fragment
                and unquote(parts.fragment) not in (pages[target].anchors)
            ):
                found.append(f"{name}: no such anchor: {address}")
    return found


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]).resolve())
    sys.exit("\n".join(lines) or 0)
