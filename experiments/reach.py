"""The code that a method of a study reaches, and a mark of it.

A change of the default ages the rows of the default, not those of a published algorithm. What is
reached is found without running anything. From a method the objects that it holds and the global
names of its functions are followed. A function or class of a study is taken alone, with what it
names; anything else of the repository stands for its whole module, with all that this imports,
inside functions too. Docstrings and claims are no code, and `OUTSIDE` is not followed.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

ROOMS = ("privtail", "experiments")
OUTSIDE = (
    "privtail.errors", "privtail.export", "privtail.ledger_texts", "privtail.progress",
    "privtail.linear_model.documented", "privtail.schema", "privtail.spelling",
    "privtail.statement", "privtail.trusted.cluster", "privtail.trusted.entries",
    "privtail.trusted.journal", "privtail.trusted.ledger", "privtail.trusted.records.arrow",
    "privtail.trusted.records.files",
    "privtail.trusted.records.folders", "privtail.trusted.records.headers",
    "privtail.trusted.records.queries", "privtail.trusted.records.remote",
    "privtail.trusted.records.source", "privtail.trusted.records.streams", "experiments.claims",
)  # fmt: skip
"""What no number of a study on arrays in memory depends on: texts, files, clusters, ledgers."""


class _Bare(ast.NodeTransformer):
    """Drops what no result depends on: docstrings and claims."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        claims = isinstance(node.func, ast.Name) and node.func.id == "Claim"
        return ast.Constant("a claim") if claims else self.generic_visit(node)


def bare(source: str) -> str:
    """Source as a text that changes only where a result could."""
    return ast.dump(_Bare().visit(ast.parse(textwrap.dedent(source))))


def mark(*objects: Any) -> str:
    """A digest of all code and all numbers that the objects reach."""
    walk = _Walk()
    for one in objects:
        walk.follow(one)
    files = [f"{name}:{_code(name)}" for name in sorted(modules_behind(walk.modules))]
    return hashlib.sha256("\n".join([*walk.pieces, *files]).encode()).hexdigest()[:12]


class _Walk:
    """The pieces of code and the modules that objects reach, each once, in order."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.modules: set[str] = set()
        self._seen: set[int] = set()
        self._kept: list[Any] = []

    def follow(self, one: Any) -> None:
        """Add what this object is made of."""
        if one is None or isinstance(one, bool | int | float | str | bytes | complex):
            self.pieces.append(repr(one))
            return
        if id(one) in self._seen:
            return
        self._seen.add(id(one))
        self._kept.append(one)
        if isinstance(one, partial):
            self._all(one.func, one.args, one.keywords)
        elif isinstance(one, Mapping):
            self._all(*[part for pair in one.items() for part in pair])
        elif isinstance(one, tuple | list):
            self._all(*one)
        elif isinstance(one, types.ModuleType):
            self._module(one.__name__)
        elif isinstance(one, types.FunctionType | type):
            self._code(one)
        elif is_dataclass(one):
            self._all(type(one), *[getattr(one, f.name) for f in fields(one) if f.name != "claims"])
        else:
            self._all(type(one))

    def _all(self, *parts: Any) -> None:
        for part in parts:
            self.follow(part)

    def _code(self, one: Any) -> None:
        one = inspect.unwrap(one)
        if isinstance(one, types.FunctionType) and one.__code__.co_filename.startswith("<"):
            return  # made by a decorator of a class, whose source is there
        if not _ours(one.__module__):
            self.pieces.append(f"{one.__module__}.{one.__qualname__}")
            return
        if not _of_a_study(one.__module__):
            self._module(one.__module__)
            return
        self.pieces.append(_source(one))
        functions = [one] if isinstance(one, types.FunctionType) else _methods(one)
        for function in functions:
            for cell in function.__closure__ or ():
                self.follow(cell.cell_contents)
            for name in sorted(_names(function.__code__)):
                if name in function.__globals__:
                    self.follow(function.__globals__[name])

    def _module(self, name: str) -> None:
        if _ours(name):
            self.modules.add(name)


@cache
def _source(one: Any) -> str:
    """Of a lambda, all that stand on its line: it has no source of its own."""
    if one.__name__ != "<lambda>":
        return bare(inspect.getsource(one))
    line = one.__code__.co_firstlineno
    nodes = ast.walk(ast.parse(_text(one.__module__)))
    return "".join(ast.dump(n) for n in nodes if isinstance(n, ast.Lambda) and n.lineno == line)


def _ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in ROOMS


def _of_a_study(name: str) -> bool:
    """Whether a module holds studies, of which only what is named counts."""
    return hasattr(sys.modules[name], "STUDIES")


def _methods(kind: type) -> list[types.FunctionType]:
    return [m for m in vars(kind).values() if isinstance(m, types.FunctionType)]


def _names(code: types.CodeType) -> set[str]:
    found = set(code.co_names)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            found |= _names(part)
    return found


def modules_behind(names: set[str]) -> set[str]:
    """These modules and all that they import of the repository, `OUTSIDE` left out."""
    found, waiting = set[str](), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    return found


@cache
def imports(name: str) -> tuple[str, ...]:
    """What a module of the repository imports from it.

    Names that a package passes on count where they are made.
    """
    found = set()
    for module, wanted in _imported(name):
        for one in wanted:
            found.add(_made(module, one))
    return tuple(sorted(m for m in found - {name, *ROOMS} if not _outside(m)))


def _outside(name: str) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in OUTSIDE)


class _Run(ast.NodeTransformer):
    """Drops imports for types alone."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if ast.unparse(node.test) == "TYPE_CHECKING" else self.generic_visit(node)


def _imported(name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(_Run().visit(ast.parse(_text(name)))):
        if isinstance(node, ast.ImportFrom) and node.module and _ours(node.module):
            yield node.module, tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _ours(alias.name):
                    yield alias.name, ("",)


def _made(module: str, name: str) -> str:
    """The module that makes ``name``, which ``module`` is asked for."""
    if name and _file(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    file = _file(module)
    if file is not None and file.name == "__init__.py" and name:
        for source, names in _imported(module):
            if name in names and source != module:
                return _made(source, name)
    return module


@cache
def _file(name: str) -> Path | None:
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(found.origin) if found and found.origin and found.origin.endswith(".py") else None


@cache
def _text(name: str) -> str:
    file = _file(name)
    return "" if file is None else file.read_text(encoding="utf-8")


@cache
def _code(name: str) -> str:
    return hashlib.sha256(bare(_text(name)).encode()).hexdigest()
