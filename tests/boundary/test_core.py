"""Law 1, read from the source: only the trusted core touches records, noise and budgets."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import privtail

SOURCE = Path(privtail.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TRUSTED = SOURCE / "trusted"

PRIVATE = {
    "_value", "_sensitivity", "_opening", "_records", "_targets", "_sampler", "_ledger", "_plan",
    "_cursor", "_current", "_public", "_deals", "_X", "_y", "_codes", "_parts", "_curator", "_ids",
    "_sweep", "_batch", "_with", "_events", "_next", "_groups", "_persons", "_kept", "_leaders",
    "_windows", "_shares", "_opened", "_format", "_copies", "_found",
}  # fmt: skip
"""Attributes of the core that hold records, noise, or the right to release."""

RECORD_METHODS = {"rows", "counts", "charge", "batches", "windows"}
SPIES = {"__getstate__", "__dict__", "__slots__", "__getattribute__", "__reduce__", "__reduce_ex__"}
RANDOM_MODULES = {"random", "secrets", "opendp", "uuid"}
RANDOM_NAMES = {"urandom", "getrandom", "default_rng", "RandomState", "SystemRandom"}

ROOMS = {
    "cli": {
        "linear_model", "model", "mean", "algorithms", "statement", "trusted", "losses", "domains",
    },
    "linear_model": {"model", "mean", "algorithms", "statement", "trusted", "losses", "domains"},
    "model": {"statement", "trusted"},
    "mean": {"algorithms", "statement", "trusted", "losses", "domains"},
    "algorithms": {"trusted", "losses", "domains"},
    "statement": {"trusted"},
    "trusted": {"losses", "domains"},
    "domains": set(),
    "losses": set(),
    "compilation": set(),
    "data": set(),
    "errors": set(),
    "progress": set(),
    "spelling": set(),
    "privtail": set(),
}  # fmt: skip
"""Which room may import which; COMMON rooms are everybody's."""

COMMON = {"errors", "compilation", "privtail", "data", "progress", "spelling"}
NO_NOUN = {"utils", "util", "base", "common", "helpers", "helper", "misc", "tools"}
GUARANTEED = ("kernels", "means", "sensitive", "curator", "opening", "ledger", "mechanisms")


def breaches(source: str) -> list[str]:
    """What code outside the core does that only the core may do."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if node.attr in PRIVATE and not own:
                found.append(f"{node.lineno}: .{node.attr}")
            if node.attr in SPIES:
                found.append(f"{node.lineno}: .{node.attr}")
            if node.attr in RANDOM_NAMES or (
                node.attr == "random" and isinstance(node.value, ast.Name)
            ):
                found.append(f"{node.lineno}: randomness {node.attr}")
        elif isinstance(node, ast.Call):
            found += _calls(node)
        elif isinstance(node, ast.Constant) and node.value in PRIVATE:
            found.append(f"{node.lineno}: the name {node.value!r} as text")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += _imports_of_chance(node)
    return found


def _calls(node: ast.Call) -> list[str]:
    f = node.func
    if isinstance(f, ast.Attribute) and f.attr in RECORD_METHODS:
        return [f"{node.lineno}: .{f.attr}("]
    if isinstance(f, ast.Name) and f.id in ("vars", "eval", "exec", "__import__"):
        return [f"{node.lineno}: {f.id}("]
    return []


def _imports_of_chance(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{a.name}" for a in node.names]
        bad = {a.name for a in node.names} & RANDOM_NAMES
        if bad or (node.module == "numpy" and any(a.name == "random" for a in node.names)):
            return [f"{node.lineno}: import of randomness"]
    else:
        names = [a.name for a in node.names]
    guilty = [n for n in names if n.split(".")[0] in RANDOM_MODULES or n.startswith("numpy.random")]
    inside = [n for n in names if "samplers" in n or "kernels" in n or _holds_records(n)]
    return [f"{node.lineno}: import {n}" for n in guilty + inside]


def _holds_records(module: str) -> bool:
    """The classes that read cells. Tables and files have a door: `trusted.tables`."""
    return "trusted.records" in module


def room(path: Path) -> str:
    """The first name below privtail; the package file itself is `privtail`."""
    first = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    return "privtail" if first == "__init__" else first


def wrong_imports(source: str, home: str) -> list[str]:
    """Imports of a higher room; ``TYPE_CHECKING`` blocks and strings of names count too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import"
            modules = [f"{node.module}.{a.name}" for a in node.names]
        for module in modules:
            parts = module.split(".")
            if parts[0] != "privtail":
                continue
            target = parts[1] if len(parts) > 1 and parts[1] in ROOMS else "privtail"
            if target != home and target not in ROOMS[home] | COMMON:
                found.append(f"{node.lineno}: {home} imports {target}")
            if target == "trusted" and ROOMS[home] and any(p.startswith("_") for p in parts[2:]):
                found.append(f"{node.lineno}: a private name of the core")
            if parts[0] == "sklearn" and home not in ("linear_model", "cli"):
                found.append(f"{node.lineno}: {home} imports scikit-learn")
    return found


def undocumented(source: str) -> list[str]:
    """Public classes, functions and methods without a docstring; protocols answer for methods."""
    tree = ast.parse(source)
    public = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    return [n.name for n in public if not n.name.startswith("_") and not ast.get_docstring(n)] + (
        [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    )


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if TRUSTED not in p.parents],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_only_the_core_touches_records_noise_and_budgets(path: Path) -> None:
    assert breaches(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down_only(path: Path) -> None:
    assert room(path) in ROOMS, "a new room: say in ROOMS what it may import"
    assert wrong_imports(path.read_text(encoding="utf-8"), room(path)) == []


def test_no_file_without_a_noun() -> None:
    names = {p.stem for p in FILES} | {p.parent.name for p in FILES}
    assert not names & NO_NOUN


@pytest.mark.parametrize(
    "path", sorted(TRUSTED.rglob("*.py")), ids=lambda p: str(p.relative_to(TRUSTED))
)
def test_the_core_is_documented(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert undocumented(source) == []
    named = set(path.relative_to(TRUSTED).with_suffix("").parts) & set(GUARANTEED)
    works = any(isinstance(n, ast.ClassDef | ast.FunctionDef) for n in ast.parse(source).body)
    if named and works:
        assert "Formal guarantee" in source


def test_randomness_lives_in_two_files_of_the_core() -> None:
    """Privacy noise in the samplers; public deals and choices in the curator."""
    homes = set()
    for path in sorted(TRUSTED.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in RANDOM_NAMES:
                homes.add(path.relative_to(TRUSTED).as_posix())
    assert homes == {"curator.py", "mechanisms/samplers.py"}


def test_the_core_is_pure_python_of_ours() -> None:
    """No eval, no exec, no pickle, no shell."""
    for path in TRUSTED.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__", "print"), path
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [a.name for a in node.names] + [getattr(node, "module", None) or ""]
                assert not {"pickle", "subprocess", "logging", "warnings"} & set(names), path


# Sabotage


SABOTAGED = {
    "value": "def run(b):\n    return b.gradient(l, w, m)._value\n",
    "records": "def run(c):\n    return c._records\n",
    "matrix": "x = curator._records._X\n",
    "target": "y = curator._targets._y\n",
    "rows": "block = records.rows(slice(0, 5))\n",
    "counts": "found = targets.counts()\n",
    "batches of a file": "for cells in table.batches(names, ()):\n    pass\n",
    "windows": "found = list(curator._windows(None))\n",
    "sampler": "noise = curator._sampler\n",
    "forged charge": "sampler = answer.opening.charge(event)\n",
    "getattr": "x = getattr(answer, '_value')\n",
    "methodcaller": "import operator\nx = operator.attrgetter('_value')(answer)\n",
    "object": "x = object.__getattribute__(answer, name)\n",
    "state": "x = answer.__getstate__()\n",
    "vars": "x = vars(curator)\n",
    "np.random": "import numpy as np\nz = np.random.normal(size=3)\n",
    "default_rng": "from numpy.random import default_rng\nz = default_rng()\n",
    "numpy.random": "import numpy.random as nr\n",
    "from numpy": "from numpy import random\n",
    "random": "import random\nz = random.gauss(0, 1)\n",
    "secrets": "import secrets\n",
    "urandom": "import os\nz = os.urandom(8)\n",
    "from os": "from os import urandom\n",
    "opendp": "from opendp.measurements import make_gaussian\n",
    "samplers": "from privtail.trusted.mechanisms.samplers import ExactSampler\n",
    "kernels": "from privtail.trusted import kernels\n",
    "record classes": "from privtail.trusted.records import as_records\n",
}


@pytest.mark.parametrize("name", SABOTAGED)
def test_a_breach_of_law_1_is_caught(name: str) -> None:
    assert breaches(SABOTAGED[name])


def test_honest_code_is_no_breach() -> None:
    honest = (
        "class A:\n    def f(self):\n        return self._value\n"
        "g = batch.gradient(loss, w, mean).release(GaussianNoise(m))\n"
    )
    assert breaches(honest) == []


@pytest.mark.parametrize(
    ("home", "source"),
    [
        ("trusted", "from privtail.algorithms import CatoniDescent\n"),
        ("trusted", "def f():\n    from privtail.statement import state\n"),
        ("losses", "import privtail.trusted.curator\n"),
        ("domains", "from privtail import losses\n"),
        ("algorithms", "from privtail.linear_model import DPLinearRegression\n"),
        ("algorithms", "from privtail.statement import state\n"),
        ("statement", "from privtail.mean import private_mean\n"),
        ("mean", "from privtail.linear_model.fitting import chosen\n"),
        ("linear_model", "from privtail.cli import main\n"),
        ("linear_model", "from privtail.trusted.curator import _median\n"),
    ],
)
def test_an_import_upwards_is_caught(home: str, source: str) -> None:
    assert wrong_imports(source, home)


def test_a_missing_docstring_is_caught() -> None:
    source = '"""M."""\nclass A:\n    pass\n'
    assert undocumented(source) == ["A"]
    assert undocumented("x = 1\n") == ["the module"]


def test_the_checker_reads_every_file() -> None:
    rooms = {room(p) for p in FILES}
    assert {"trusted", "algorithms", "linear_model", "mean", "statement", "losses"} <= rooms
    assert len(FILES) > 30


def test_constants_agree_with_the_classes(monkeypatch: Any) -> None:
    """A private attribute that is renamed must be renamed here."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in TRUSTED.rglob("*.py"))
    assert [name for name in PRIVATE if f".{name}" not in text and f"def {name}" not in text] == []
