"""Docstrings of public names say type and default of every parameter, and their examples run."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import math
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import ClassifierMixin

import privtail
from privtail import linear_model
from privtail.linear_model.documented import documented
from privtail.losses import SquaredLoss

API = Path(privtail.__file__).parents[2] / "docs/api"

WITH_METHODS = {"results", "models", "privacy"}
"""Pages of the reference whose classes people call by method. Methods of the others are those of a
protocol, which describes them."""

WITHOUT_EXAMPLES = {"Result"}
"""Nobody makes these by hand."""


def listed(page: Path) -> list[tuple[str, object]]:
    """The names that a page of the reference lists, and what they are."""
    found, module = [], ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   [\w.]+", line):
            path, _, name = f"{module}.{line.strip()}".rpartition(".")
            found.append((f"{path}.{name}", getattr(importlib.import_module(path), name)))
    return found


def methods(cls: type) -> list[tuple[str, object]]:
    """Public methods that the package itself defines."""
    found = []
    for name, method in inspect.getmembers(cls, inspect.isroutine):
        home = getattr(method, "__module__", None) or ""
        if not name.startswith("_") and home.startswith("privtail"):
            found.append((f"{cls.__name__}.{name}", method))
    return found


def public() -> dict[str, object]:
    found = {}
    for page in sorted(API.glob("*.md")):
        for name, thing in listed(page):
            if inspect.isclass(thing) and issubclass(thing, BaseException):
                continue
            found[name] = thing
            if inspect.isclass(thing) and page.stem in WITH_METHODS:
                found.update(methods(thing))
    return found


PUBLIC = public()


def sections(text: str) -> dict[str, str]:
    _, *parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """What stands after the colon, by name."""
    found = {}
    for line in section.splitlines():
        if line[:1].strip():
            names, _, kind = line.partition(" : ")
            found.update(dict.fromkeys(re.split(r",\s*", names.strip()), kind.strip()))
    return found


def value(text: str) -> object:
    """A default as it is written."""
    return math.inf if text == "inf" else ast.literal_eval(text)


def same(written: str, default: object) -> bool:
    try:
        return value(written) == default
    except (ValueError, SyntaxError):
        return bool(written)


def faults(name: str, thing: object) -> list[str]:
    """What a reader misses in a docstring."""
    text = inspect.getdoc(thing) or ""
    if not text:
        return [f"{name}: no docstring"]
    parts = sections(text)
    described = entries(parts.get("Parameters", ""))
    attributes = entries(parts.get("Attributes", ""))
    known = parameters(thing)
    found = ["refers to another docstring"] if re.search(r"\bas in `", text, re.IGNORECASE) else []
    for key, parameter in known.items():
        if key in described:
            found += [f"{key} {fault}" for fault in wrong(described[key], parameter.default)]
        elif key not in attributes:  # of a result, which nobody makes by hand
            found.append(f"{key} is not described")
    found += [f"there is no parameter {key}" for key in described.keys() - known.keys()]
    found += [f"the attribute {key} has no type" for key, kind in attributes.items() if vague(kind)]
    returned = inspect.signature(thing).return_annotation if callable(thing) else None
    silent = returned in (None, "None") or inspect.isclass(thing)
    if not silent and known and not {"Returns", "Yields"} & parts.keys():
        found.append("does not say what it returns")
    if can_fail(name, thing) and "Raises" not in parts:
        found.append("does not say what it raises")
    return [f"{name}: {fault}" for fault in found]


READ_ROWS = {
    "fit", "predict", "predict_proba", "decision_function", "score", "transform",
    "inverse_transform",
}  # fmt: skip
"""Methods that are given rows, and so can fail."""


def can_fail(name: str, thing: object) -> bool:
    """Whether it raises itself, or is a method of an estimator or a model that is given rows."""
    owner, _, method = name.partition(".")
    if method in READ_ROWS and owner not in {"Model", "privtail"}:
        return True
    made = ("__init__", "__new__", "__post_init__")
    bodies = (
        [vars(thing)[one] for one in made if one in vars(thing)]
        if inspect.isclass(thing)
        else [thing]
    )
    return any(raises(body) for body in bodies)


def raises(body: Any) -> bool:
    try:
        source = inspect.getsource(inspect.unwrap(body))
    except (OSError, TypeError):  # made by dataclasses, or a constant
        return False
    nodes = ast.walk(ast.parse(textwrap.dedent(source)))
    return any(isinstance(node, ast.Raise) for node in nodes)


def wrong(kind: str, default: object) -> list[str]:
    """What is wrong with the type and the default of a parameter, as written."""
    written = re.search(r"(?:^|, )default=(.+)$", kind)
    found = ["has no type"] if vague(kind[: written.start()] if written else kind) else []
    if default is inspect.Parameter.empty:
        return [*found, *(["has no default"] if written else [])]
    if written and same(written[1], default):
        return found
    return [*found, f"has the default {default!r}, not as written"]


def vague(kind: str) -> bool:
    """Whether a type is missing, or is a sentence."""
    return not kind or " : " in kind or kind.endswith(".")


def parameters(thing: object) -> dict[str, inspect.Parameter]:
    """As they are written: ``*args`` with its star."""
    if not callable(thing) or getattr(thing, "_is_protocol", False):
        return {}
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(thing).parameters.items()
    return {
        stars.get(parameter.kind, "") + key: parameter
        for key, parameter in found
        if not key.startswith("_") and (key != "self" or inspect.isclass(thing))
    }


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_types_and_defaults_are_written(name):
    assert faults(name, PUBLIC[name]) == []


def test_what_is_missing_would_be_seen():
    def f(a: int, b: float = 2.0, *, c: str = "x") -> int:
        """Do.

        Parameters
        ----------
        a : a number.
        b : float, default=3.0
        d : int
            As in `g`.
        """
        raise ValueError

    assert faults("f", f) == [
        "f: refers to another docstring",
        "f: a has no type",
        "f: b has the default 2.0, not as written",
        "f: c is not described",
        "f: there is no parameter d",
        "f: does not say what it returns",
        "f: does not say what it raises",
    ]


def test_a_class_says_what_is_its_own_and_inherits_the_rest():
    class Parent:
        """P.

        Parameters
        ----------
        a : int
            Its a.
        b, c : float, default=1.0
            Its b.
        """

    class Child(Parent):
        """C.

        Parameters
        ----------
        a : str
            Another a.

        Examples
        --------
        >>> 1
        1
        """

    text = documented(Child)
    assert entries(sections(text)["Parameters"]) == {
        "a": "str", "b": "float, default=1.0", "c": "float, default=1.0",
    }  # fmt: skip
    assert list(sections(text)) == ["Parameters", "Examples"]
    Child.__doc__ = None
    assert documented(Child) is None


def fitted(cls: type) -> Any:
    """An estimator of this class, fitted to made-up rows."""
    X = np.random.default_rng(0).normal(size=(3_000, 2))
    y = X[:, 0] > 0 if issubclass(cls, ClassifierMixin) else np.exp(X[:, 0])
    own: dict[str, Any] = {
        "PrivateSearchCV": {"estimator": linear_model.DPRidge(), "param_grid": {"alpha": [1, 2]}},
        "DPGeneralizedLinearEstimator": {"loss": SquaredLoss()},
    }.get(cls.__name__, {"sparsity": 1} if "Sparse" in cls.__name__ else {})
    return cls(**own, epsilon=4.0, noise="simulated", random_state=0).fit(X, y)


ESTIMATORS = [name for name in linear_model.__all__ if hasattr(getattr(linear_model, name), "fit")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_a_fit_sets_is_described(name):
    cls = getattr(linear_model, name)
    described = entries(sections(inspect.getdoc(cls) or "")["Attributes"])
    found = {key for key in vars(fitted(cls)) if key.endswith("_") and not key.startswith("_")}
    assert "privacy_" in found
    assert found <= described.keys()


@pytest.mark.parametrize(
    "name", [n for n in ESTIMATORS if hasattr(getattr(linear_model, n), "score")]
)
def test_a_score_without_noise_says_so(name):
    said = inspect.getdoc(getattr(linear_model, name).score) or ""
    assert "outside the promise, unless the rows are public" in " ".join(said.split())


def examples() -> dict[str, object]:
    """Classes and functions, without methods; a method's example runs where it has one."""
    return {name: thing for name, thing in PUBLIC.items() if ">>>" in (inspect.getdoc(thing) or "")}


@pytest.mark.parametrize("name", sorted(examples()))
def test_an_example_prints_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = PUBLIC[name]
    module = sys.modules[thing.__module__]
    test = doctest.DocTestParser().get_doctest(
        inspect.getdoc(thing), dict(vars(module)), name, None, None
    )
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


@pytest.mark.parametrize("page", sorted(path.stem for path in API.glob("*.md")))
def test_there_is_an_example(page):
    things = dict(listed(API / f"{page}.md"))
    shown = {
        name for name, thing in things.items()
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception))
    }  # fmt: skip
    silent = {name for name in shown if ">>>" not in (inspect.getdoc(things[name]) or "")}
    assert {name.rpartition(".")[2] for name in silent} <= WITHOUT_EXAMPLES
