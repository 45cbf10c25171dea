"""Open every page of a built site in headless Chromium, in a wide window and in one of a phone.

python docs/browser.py build/docs/html
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTHS = (400, 1400)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--allow-file-access-from-files=false", "--hide-scrollbars",
)  # fmt: skip
PIPED = """import os, sys
os.dup2(int(sys.argv[1]), 3), os.dup2(int(sys.argv[2]), 4), os.execv(sys.argv[3], sys.argv[3:])
"""
"""Starts a program that reads from 3 and writes to 4, as `--remote-debugging-pipe` says."""

PATIENCE = 30.0
"""Seconds for one answer, or for one page."""

SEARCH = 20.0
"""Seconds for a search."""

SETTLED = (
    "document.fonts.ready.then(() => new Promise(r => requestAnimationFrame(r))).then(() => 1)"
)

WIDER = """(() => {
  const boxes = [];
  const start = document.querySelector("h1") || document.body;
  for (let one = start; one; one = one.parentElement) boxes.push(one);
  const box = boxes.find(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0);
  if (!box) return "";
  const end = box.getBoundingClientRect().left + box.clientWidth + 1;
  const held = one => one && one !== box &&
    (getComputedStyle(one).overflowX !== "visible" || held(one.parentElement));
  const last = [...box.querySelectorAll("*")].findLast(
    one => one.getBoundingClientRect().right > end && !held(one.parentElement)) || box;
  const text = last.textContent.trim().slice(0, 60);
  return `${box.scrollWidth} pixels wide: <${last.localName} class="${last.className}">: ${text}`;
})()"""
"""What makes the page, or a box around its heading, wider than there is room."""

FOUND = "document.querySelectorAll('#search-results li').length"


class Tab:
    """One page of a Chromium that is asked through a pipe."""

    def __init__(self, asked: int, told: int) -> None:
        self._asked, self._told, self._rest = asked, told, b""
        self._count, self._session = 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer; what happens meanwhile is kept in `events`."""
        self._count += 1
        order = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            order["sessionId"] = self._session
        os.write(self._asked, json.dumps(order).encode() + b"\0")
        while (said := self._next(PATIENCE)).get("id") != self._count:
            self.events.append(said)
        if "error" in said:
            raise RuntimeError(f"{method}: {said['error']['message']}")
        return dict(said["result"])

    def evaluate(self, expression: str) -> Any:
        """The value of some JavaScript, waited for."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        return answer["result"].get("value")

    def open(self, address: str) -> None:
        """Load a page from the beginning, and wait until it stands."""
        self.events.clear()
        went = self.ask("Page.navigate", url=address)
        if went.get("errorText"):
            raise RuntimeError(f"does not load: {went['errorText']}")
        while all(one.get("method") != "Page.loadEventFired" for one in self.events):
            self.events.append(self._next(PATIENCE))
        self.evaluate(SETTLED)

    def _next(self, patience: float) -> dict[str, Any]:
        end = time.monotonic() + patience
        while b"\0" not in self._rest:
            if not select.select([self._told], [], [], max(0.0, end - time.monotonic()))[0]:
                raise RuntimeError(f"nothing happened for {patience:g} s")
            if not (read := os.read(self._told, 1 << 20)):
                raise RuntimeError("Chromium went away")
            self._rest += read
        text, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(text))


def chromium() -> str | None:
    """Where a Chromium is; the variable `CHROMIUM` names another."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def tab(program: str) -> Iterator[Tab]:
    """A Chromium of its own, with an empty profile; it ends with the block."""
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs_in, theirs_out)]
    for end in (theirs_in, theirs_out):
        os.close(end)
    start = [sys.executable, "-c", PIPED, *map(str, high), program, *FLAGS]
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(  # noqa: S603
            [*start, *root, f"--user-data-dir={profile}"], pass_fds=high,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in high:
            os.close(end)
        try:
            yield Tab(ours_out, ours_in)
        finally:
            os.close(ours_out)
            os.close(ours_in)
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def said(event: dict[str, Any]) -> str:
    """What a page complained of, or nothing."""
    method, told = event.get("method"), event.get("params", {})
    if method == "Runtime.exceptionThrown":
        details = told["exceptionDetails"]
        return str(details.get("exception", {}).get("description", details["text"])).split("\n")[0]
    if method == "Runtime.consoleAPICalled" and told["type"] in {"error", "assert"}:
        return " ".join(str(one.get("value", one.get("description"))) for one in told["args"])
    if method == "Log.entryAdded" and told["entry"]["level"] == "error":
        return " ".join([told["entry"]["text"], told["entry"].get("url", "")]).strip()
    return ""


def faults(site: Path, program: str) -> list[str]:
    """One line for every page that does not load, has an error in its console, or is too wide."""
    pages = sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)
    found = []
    with tab(program) as page:
        for path in pages:
            name = path.relative_to(site).as_posix()
            try:
                page.open(path.as_uri())
                for width in WIDTHS:
                    page.ask(
                        "Emulation.setDeviceMetricsOverride",
                        width=width, height=900, deviceScaleFactor=1, mobile=False,
                    )  # fmt: skip
                    if wider := page.evaluate(WIDER):
                        found.append(f"{name}: at {width} pixels it is {wider}")
            except RuntimeError as trouble:
                found.append(f"{name}: {trouble}")
            found += [f"{name}: {text}" for text in dict.fromkeys(map(said, page.events)) if text]
        if (site / "search.html").exists():
            page.open((site / "search.html").as_uri() + "?q=epsilon")
            end = time.monotonic() + SEARCH
            while not page.evaluate(FOUND) and time.monotonic() < end:
                time.sleep(0.1)
            if not page.evaluate(FOUND):
                found.append("search.html: finds nothing for the word epsilon")
    return found


def main(site: Path) -> str | None:
    """What is wrong, or nothing. Without Chromium that is an error where CI runs."""
    program = chromium()
    if program is None:
        missing = "No Chromium is here (install it, or name it in CHROMIUM): no page was opened."
        if os.environ.get("CI"):
            return missing
        sys.stderr.write(missing + "\n")
        return None
    return "\n".join(faults(site, program)) or None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
