"""Law 1, read from the source: only the trusted core touches records, noise and budgets.

What reading the source cannot see: code that runs under another name (a library that is handed the
records, a callback of a user, an import made at run time), values that pass through attributes,
containers or closures on their way, and whoever changes this package while it runs. Names of
records are followed within one function, from the parameters of the functions that take them to
what is assigned from them. For the rest there are the doors of the core, which hand out nothing
else, and audits of what is released.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import privtail
from privtail.trusted import callbacks
from privtail.trusted.losses.rowwise import Rowwise

SOURCE = Path(privtail.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TRUSTED = SOURCE / "trusted"

PRIVATE = {
    "_value", "_sensitivity", "_opening", "_data", "_last", "_targets", "_sampler", "_ledger",
    "_plan", "_cursor", "_current", "_public", "_deals", "_X", "_y", "_codes", "_parts", "_curator",
    "_sample", "_sums", "_batch", "_with", "_events", "_next", "_groups", "_persons", "_kept",
    "_leaders", "_shares", "_keys", "_key", "_opened", "_format", "_copies", "_found",
}  # fmt: skip
"""Attributes of the core that hold records, noise, or the right to release."""

RECORD_METHODS = {"rows", "counts", "charge", "batches", "windows", "sums"}
SPIES = {
    "__getstate__",
    "__dict__",
    "__slots__",
    "__getattribute__",
    "__reduce__",
    "__reduce_ex__",
    "_getframe",
    "currentframe",
    "f_locals",
    "f_back",
}
REFLECTION = {"gc", "ctypes", "marshal", "pickle"}
"""Modules that find objects which nobody handed over."""

TAKERS = {"fit", "private_mean", "_curate", "values", "derivatives", "gradients"}
"""Functions that are handed records, or what a loss sees of them."""
HELD = {"X", "y", "x", "groups", "margins"}
"""What they call records."""
SHOWN = {"shape", "dtype", "columns", "column_names", "ndim", "size", "without", "declaring"}
"""What may be read of records outside the core, or asked of a file: nothing that a cell decides."""
LOOKS = {"max", "min", "sum", "abs", "sorted", "set", "any", "all", "list", "map", "zip", "iter"}

RANDOM_MODULES = {"random", "secrets", "opendp", "uuid"}
RANDOM_NAMES = {"urandom", "getrandom", "default_rng", "RandomState", "SystemRandom"}

ROOMS = {
    "cli": {
        "ledgers",
        "describe", "evaluation", "export", "linear_model", "model", "mean", "lost", "default",
        "published", "algorithms", "reporting", "statement", "calibration", "trusted", "losses",
        "domains", "json_files", "ledger_texts", "promised", "schema", "table_files", "written",
    },
    "linear_model": {
        "dask_collections", "ledgers", "promised",
        "coefficients", "lost", "model", "mean", "published", "default", "inference", "summaries",
        "algorithms", "statement", "calibration", "trusted", "losses", "domains", "schema",
    },
    "export": {"model", "schema"},
    "reporting": {"json_files", "ledger_texts", "model", "statement", "views"},
    "describe": {
        "coefficients", "ledgers", "promised", "second_moments", "summaries", "statement",
        "calibration",
        "table_files", "trusted", "views",
    },
    "promised": {"ledgers", "table_files", "trusted"},
    "ledgers": {"ledger_texts", "trusted"},
    "evaluation": {
        "ledgers", "robust_means",
        "coefficients", "promised", "linear_model", "mean", "model", "statement", "summaries",
        "calibration", "trusted", "losses", "views",
    },
    "coefficients": {"views"},
    "model": {
        "coefficients", "export", "json_files", "statement", "trusted", "schema", "losses",
        "written",
    },
    "mean": {
        "ledgers",
        "influence", "robust_means",
        "describe", "coefficients", "promised", "lost", "summaries", "algorithms", "statement",
        "calibration", "table_files", "trusted", "losses", "domains",
    },
    "published": {
        "robust_means", "second_moments", "default", "summaries", "algorithms", "trusted",
        "losses", "domains",
    },
    "default": {
        "lines", "momentum",
        "robust_means", "second_moments", "summaries", "algorithms", "trusted", "losses", "domains",
    },
    "inference": {"default", "losses", "summaries"},
    "summaries": {"robust_means", "trusted", "losses"},
    "algorithms": {"robust_means", "second_moments", "trusted", "losses", "domains"},
    "calibration": {"trusted"},
    "statement": {"json_files", "trusted", "ledger_texts"},
    "trusted": {
        "dask_client", "dask_collections", "losses", "domains", "json_files", "ledger_texts",
        "schema", "storage",
    },
    "dask_client": set(),
    "dask_collections": set(),
    "storage": set(),
    "table_files": {"trusted", "schema"},
    "robust_means": {"influence", "trusted"},
    "schema": set(),
    "ledger_texts": set(),
    "influence": set(),
    "lines": set(),
    "momentum": set(),
    "second_moments": set(),
    "domains": set(),
    "losses": {"trusted"},
    "compilation": set(),
    "data": set(),
    "errors": set(),
    "features": {"schema", "describe", "trusted", "errors"},
    "gaps": set(),
    "lost": {"summaries"},
    "progress": set(),
    "spelling": set(),
    "views": set(),
    "json_files": set(),
    "written": set(),
    "privtail": set(),
}  # fmt: skip
"""Which room may import which; COMMON rooms are everybody's."""

ROOM_OF_LOOPS = "privtail.trusted.losses"
"""What the losses may import of the core, which imports their names."""

COMMON = {"errors", "compilation", "gaps", "privtail", "data", "progress", "spelling"}
NO_NOUN = {"utils", "util", "base", "common", "helpers", "helper", "misc", "tools"}
GUARANTEED = (
    "kernels", "means", "sensitive", "sensitivity", "curator", "dataset", "contributions", "cells",
    "opening", "ledger", "mechanisms", "smooth", "questions", "partitions", "deals", "cluster",
    "losses",
)  # fmt: skip


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


def looks(source: str) -> list[str]:
    """Where code that is handed records does more than to read a shape and pass them on."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and function.name in TAKERS:
            held = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} & HELD
            for node in ast.walk(function):
                found += _look(node, held)
    return found


def _look(node: ast.AST, held: set[str]) -> list[str]:
    def is_held(part: ast.AST | None) -> bool:
        return isinstance(part, ast.Name) and part.id in held

    if isinstance(node, ast.Assign) and is_held(node.value):
        held |= {name.id for name in node.targets if isinstance(name, ast.Name)}
    line = f"{getattr(node, 'lineno', 0)}:"
    if isinstance(node, ast.Attribute) and is_held(node.value) and node.attr not in SHOWN:
        return [f"{line} .{node.attr} of records"]
    if isinstance(node, ast.Subscript | ast.For | ast.comprehension):
        inside = node.value if isinstance(node, ast.Subscript) else node.iter
        return [f"{line} cells of records"] if is_held(inside) else []
    if isinstance(node, ast.BinOp) and (is_held(node.left) or is_held(node.right)):
        return [f"{line} arithmetic with records"]
    if isinstance(node, ast.Compare):
        identity = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        parts = [node.left, *node.comparators]
        return [f"{line} records compared"] if not identity and any(map(is_held, parts)) else []
    if isinstance(node, ast.Call) and any(map(is_held, node.args)):
        f = node.func
        numpy = (
            isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "np"
        )
        if numpy or (isinstance(f, ast.Name) and f.id in LOOKS):
            return [f"{line} a function of records"]
    return []


STORES = {"append", "extend", "update", "add", "__setattr__"}


def keeps(source: str) -> list[str]:
    """Losses that store what they were shown."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and function.name in TAKERS:
            for node in ast.walk(function):
                stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
                if stored or isinstance(node, ast.Global | ast.Nonlocal):
                    found.append(f"{node.lineno}: a loss keeps something")
                call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
                if call and node.func.attr in STORES:
                    found.append(f"{node.lineno}: .{node.func.attr}")
    return found


def computes(source: str) -> list[str]:
    """Classes of losses that say themselves what a row is worth: they name loops of the core.

    Protocols do not. What is called by copies, row by row, is for `callbacks` to call.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        for function in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(function, ast.FunctionDef) and function.name in ("values", "derivatives"):
                found |= {node.name for inside in ast.walk(function) if _is_work(inside)}
    return sorted(found)


def _is_work(node: ast.AST) -> bool:
    numpy = isinstance(node, ast.Attribute) and ast.unparse(node).startswith("np.")
    return numpy or isinstance(node, ast.BinOp | ast.For | ast.comprehension | ast.Subscript)


def _calls(node: ast.Call) -> list[str]:
    f = node.func
    named = isinstance(f, ast.Name) and f.id in ("getattr", "setattr") and len(node.args) > 1
    if named and not isinstance(node.args[1], ast.Constant | ast.Name | ast.Attribute):
        return [f"{node.lineno}: getattr of a name that is put together"]
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
    guilty += [n for n in names if n.split(".")[0] in REFLECTION]
    inside = [n for n in names if "samplers" in n or "kernels" in n or _holds_records(n)]
    return [f"{node.lineno}: import {n}" for n in guilty + inside]


def _holds_records(module: str) -> bool:
    """The classes that read cells. Tables have a door, `trusted.tables`, and files `TableFile`."""
    own = ("privtail.trusted.files", "privtail.trusted.files.TableFile")
    return "trusted.records" in module or ("trusted.files" in module and module not in own)


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
            if (home, target) == ("losses", "trusted") and not module.startswith(ROOM_OF_LOOPS):
                found.append(f"{node.lineno}: {home} imports {module}")
            if target == "trusted" and ROOMS[home] and any(p.startswith("_") for p in parts[2:]):
                found.append(f"{node.lineno}: a private name of the core")
            if parts[0] == "sklearn" and home not in ("linear_model", "cli"):
                found.append(f"{node.lineno}: {home} imports scikit-learn")
    return found


def circles(sources: dict[str, str]) -> list[str]:
    """Modules that import themselves by way of others; late imports and those for types count."""
    imports: dict[str, set[str]] = {}
    for module, source in sources.items():
        found = imports[module] = set()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{alias.name}" for alias in node.names]
                found |= {name if name in sources else str(node.module) for name in named}
        found &= sources.keys() - {module}
    reached = {module: set(found) for module, found in imports.items()}
    for _ in sources:
        for module, found in reached.items():
            reached[module] = found.union(*(reached[other] for other in found))
    return sorted(module for module, found in reached.items() if module in found)


def imported(start: str, sources: dict[str, str]) -> set[str]:
    """All modules that one imports, by way of others; those for types count."""
    found, left = set(), {start}
    while left:
        module = left.pop()
        found.add(module)
        for node in ast.walk(ast.parse(sources[module])):
            named: list[str] = []
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{alias.name}" for alias in node.names]
                named.append(str(node.module))
            left |= {name for name in named if name in sources} - found
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


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if room(p) in ("linear_model", "mean", "losses")],
    ids=lambda p: str(p.relative_to(SOURCE)),
)
def test_estimators_pass_records_on_and_look_at_nothing(path: Path) -> None:
    assert looks(path.read_text(encoding="utf-8")) == []


def test_losses_keep_nothing() -> None:
    paths = [p for p in FILES if room(p) == "losses" or p.parent == TRUSTED / "losses"]
    assert len(paths) > 10
    assert [keeps(path.read_text(encoding="utf-8")) for path in paths] == [[]] * len(paths)


def test_what_sees_a_block_of_rows_is_code_of_the_core() -> None:
    """Law 1: the loops that are run without a guard, of every type that is called so."""
    for kind, called in callbacks._OURS.items():
        assert type(called) is Rowwise, kind
        for one in called:
            held = [one.func, *one.args] if isinstance(one, partial) else [one]
            functions = [each for each in held if callable(each)]
            assert functions, kind
            assert all(each.__module__.startswith(ROOM_OF_LOOPS) for each in functions), kind


def test_no_loss_outside_the_core_computes_on_rows() -> None:
    found = [p.name for p in FILES if room(p) == "losses" and computes(p.read_text("utf-8"))]
    assert found == []


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
    loops = path == TRUSTED / "losses" / "loops.py"  # a loop is called after its loss
    assert loops or undocumented(source) == []
    named = set(path.relative_to(TRUSTED).with_suffix("").parts) & set(GUARANTEED)
    works = any(isinstance(n, ast.ClassDef | ast.FunctionDef) for n in ast.parse(source).body)
    if named and works:
        assert "Formal guarantee" in source


def test_no_file_of_the_core_is_long() -> None:
    lengths = {
        p.name: len(p.read_text(encoding="utf-8").splitlines()) for p in TRUSTED.rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_the_core_has_no_import_circles() -> None:
    """A reviewer reads one room at a time."""
    names = {p: ".".join(p.relative_to(SOURCE.parent).with_suffix("").parts) for p in FILES}
    sources = {
        names[p].removesuffix(".__init__"): p.read_text(encoding="utf-8")
        for p in FILES
        if TRUSTED in p.parents
    }
    assert circles(sources) == []


DRIVER = {
    "curator", "ledger", "journal", "opening", "samplers", "simulated", "sensitive", "noise",
    "batch",
}  # fmt: skip
"""What may release something, or draws noise: nobody who only answers questions has it."""


def sources() -> dict[str, str]:
    names = {p: ".".join(p.relative_to(SOURCE.parent).with_suffix("").parts) for p in FILES}
    return {n.removesuffix(".__init__"): p.read_text(encoding="utf-8") for p, n in names.items()}


def test_who_answers_questions_can_release_nothing() -> None:
    found = imported("privtail.trusted.partitions", sources())
    assert "privtail.trusted.questions" in found
    assert {name.split(".")[-1] for name in found} & DRIVER == set()


def test_an_answer_that_imports_the_ledger_is_caught() -> None:
    known = sources()
    known["privtail.trusted.maps"] += "\n\ndef f():\n    from privtail.trusted import ledger\n"
    found = imported("privtail.trusted.partitions", known)
    assert {name.split(".")[-1] for name in found} & DRIVER == {"ledger", "journal"}


OPTIONAL = ("privtail.trusted.smooth", "privtail.trusted.cluster", "privtail.trusted.files")
"""Rooms of the core that the first core is read and run without."""
MOST_LOADED = 9_800
"""Lines of the core that a fit of an array loads: what a review of such fits has to read."""


def loads_at_import(source: str, room_: str) -> bool:
    """Whether a module imports this room when it is imported itself, not for types."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return any(name.startswith(room_) for name in found)


@pytest.mark.parametrize("optional", OPTIONAL)
def test_no_module_loads_an_optional_room_but_its_own(optional: str) -> None:
    loading = {name for name, source in sources().items() if loads_at_import(source, optional)}
    assert {name.startswith(optional) for name in loading} == {True}


def test_a_default_fit_loads_no_optional_room() -> None:
    code = """
        import sys
        import numpy as np
        import privtail.trusted.curator
        from privtail import private_mean, verify
        from privtail.linear_model import DPLinearRegression, DPLogisticRegression

        X = np.random.default_rng(0).normal(size=(300, 2))
        model = DPLinearRegression(epsilon=1.0, delta=1e-6).fit(X, X[:, 0])
        verify(model.privacy_)
        print(model.privacy_)
        DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1]).fit(X, X[:, 0] > 0)
        private_mean(X[:, 0], epsilon=1.0)
        assert not [name for name in sys.modules if name.startswith(OPTIONAL)]
        loaded = [m for name, m in sys.modules.items() if name.startswith("privtail.trusted")]
        lines = sum(len(open(m.__file__, encoding="utf-8").readlines()) for m in loaded)
        assert lines <= MOST_LOADED, lines
        from privtail.algorithms import TrimmedDescent
        from privtail.linear_model import DPGeneralizedLinearEstimator

        trimmed = TrimmedDescent(steps=1, step_size=0.3, low=-5.0, high=5.0)
        DPGeneralizedLinearEstimator(algorithm=trimmed, epsilon=1.0).fit(X, X[:, 0])
        assert [name for name in sys.modules if name.startswith(OPTIONAL[0])]
    """
    code = f"OPTIONAL, MOST_LOADED = {OPTIONAL!r}, {MOST_LOADED}\n" + textwrap.dedent(code)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=300)


def inner_first(source: str) -> list[tuple[str, str]]:
    """Packages that a function imports a module of, before it imports the package itself."""
    found = []
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef))
    for function in functions:
        whole: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                package, _, inner = name.partition(".")
                if inner and package not in whole:
                    found.append((package, name))
                whole.add(package)
    return found


def test_threads_do_not_import_a_package_from_two_ends() -> None:
    """Whoever imports ``a.b`` first holds its lock while ``a`` is imported, which wants ``a.b``.

    Then Python gives another thread half of the package. So it is imported as a whole first, if it
    imports this module of its own: two first fits at once failed to import mpmath.
    """
    own = "privtail", "numba"  # who compiles has imported all of it
    asked = {
        pair
        for path in sorted(SOURCE.rglob("*.py"))
        if path.parent.name != "cli"  # one thread
        for pair in inner_first(path.read_text(encoding="utf-8"))
        if pair[0] not in (*own, *sys.stdlib_module_names)
    }
    assert ("opendp", "opendp.measurements") in asked  # it is not imported by opendp
    code = "import sys, {}; sys.exit({!r} in sys.modules)"
    for package, name in sorted(asked):
        if importlib.util.find_spec(package) is None:
            continue
        command = [sys.executable, "-W", "ignore", "-c", code.format(package, name)]
        assert subprocess.run(command, check=False, timeout=300).returncode == 0, name


def test_a_package_that_is_imported_from_within_is_noticed() -> None:
    source = "def f():\n    from mpmath.ctx_iv import MPIntervalContext\n"
    assert inner_first(source) == [("mpmath", "mpmath.ctx_iv")]
    assert not inner_first("def f():\n    import a\n    from a.b import c\n")


def test_randomness_lives_in_three_files_of_the_core() -> None:
    """Privacy noise in the samplers, and simulated; public deals and choices in the curator."""
    homes = set()
    for path in sorted(TRUSTED.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in RANDOM_NAMES:
                homes.add(path.relative_to(TRUSTED).as_posix())
    assert homes == {"curator.py", "mechanisms/samplers.py", "mechanisms/simulated.py"}


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
    "records": "def run(c):\n    return c._data.records\n",
    "matrix": "x = curator._data.records._X\n",
    "target": "y = curator._data.targets._y\n",
    "rows": "block = records.rows(slice(0, 5))\n",
    "counts": "found = targets.counts()\n",
    "batches of a file": "for cells in table.batches(names, ()):\n    pass\n",
    "windows": "found = list(curator._data.windows(None))\n",
    "sampler": "noise = curator._sampler\n",
    "forged charge": "sampler = answer.opening.charge(event)\n",
    "getattr": "x = getattr(answer, '_value')\n",
    "methodcaller": "import operator\nx = operator.attrgetter('_value')(answer)\n",
    "object": "x = object.__getattribute__(answer, name)\n",
    "state": "x = answer.__getstate__()\n",
    "vars": "x = vars(curator)\n",
    "put together": "x = getattr(curator, '_da' + 'ta')\n",
    "formatted": "x = getattr(curator, f'_{name}')\n",
    "collector": "import gc\nfound = gc.get_objects()\n",
    "frames": "import sys\nx = sys._getframe(1).f_locals\n",
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
    "streams of a file": "from privtail.trusted.files import streams\n",
}


LOOKING = {
    "largest": "def fit(self, X, y):\n    limit = abs(X).max()\n",
    "method": "def fit(self, X, y):\n    limit = X.max()\n",
    "labels": "def fit(self, X, y):\n    classes = np.unique(y)\n",
    "centred": "def private_mean(x):\n    return x - 3\n",
    "cell": "def private_mean(x):\n    first = x[0]\n",
    "loop": "def fit(self, X, y):\n    for row in X:\n        pass\n",
    "comprehension": "def fit(self, X, y):\n    return [row for row in y]\n",
    "compared": "def fit(self, X, y):\n    rare = (y == 1)\n",
    "renamed": "def fit(self, X, y):\n    table = X\n    return table.mean()\n",
    "a set": "def fit(self, X, y):\n    return set(y)\n",
}
KEEPING = {
    "attribute": "def values(self, margins, y):\n    self.block = margins\n",
    "list": "def values(self, margins, y):\n    SEEN.append(margins)\n",
    "global": "def values(self, margins, y):\n    global seen\n    seen = y\n",
    "object": "def gradients(self, w, X, y):\n    object.__setattr__(self, 'seen', X)\n",
}


@pytest.mark.parametrize("name", LOOKING)
def test_a_look_at_records_is_caught(name: str) -> None:
    assert looks(LOOKING[name])


@pytest.mark.parametrize("name", KEEPING)
def test_a_loss_that_keeps_its_block_is_caught(name: str) -> None:
    assert keeps(KEEPING[name])


@pytest.mark.parametrize(
    "body", ["margins[:, 0] - y", "np.clip(margins, 0, 1)", "self.loss.values(margins, y) * 2"]
)
def test_a_loss_that_computes_is_caught(body: str) -> None:
    source = f"class A:\n    def values(self, margins, y):\n        return {body}\n"
    assert computes(source) == ["A"]


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
        ("losses", "from privtail.trusted import callbacks\n"),
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


@pytest.mark.parametrize(
    "back",
    [
        "from p.a import A\n",
        "def f():\n    import p.a\n",
        "if TYPE_CHECKING:\n    from p import a\n",
    ],
    ids=["import", "late", "type"],
)
def test_an_import_circle_is_caught(back: str) -> None:
    sources = {
        "p.a": "from p.b import B\n",
        "p.b": "import p.c\n",
        "p.c": back,
        "p.d": "import p.a\n",
    }
    assert circles(sources) == ["p.a", "p.b", "p.c"]


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
