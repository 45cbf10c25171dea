"""Pages for readers: short sentences, whole paragraphs, and every public name in the reference."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import math
import re
import runpy
from decimal import Decimal
from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import opendp.prelude as dp
import pandas as pd
import pytest
import sklearn.linear_model

import privtail
from privtail import Ledger, Statement, errors, evaluation, linear_model, private_mean
from privtail.algorithms import HeavyTailedFrankWolfe, NetSearch
from privtail.domains import L1Ball
from privtail.linear_model import DPLinearRegression, DPLogisticRegression, DPRidge
from privtail.trusted.events import LAWS

MOST_WORDS = 35
"""In one sentence."""


@pytest.fixture
def root():
    return Path(privtail.__file__).parents[2]


def sentences(text: str) -> list[str]:
    """The sentences of the prose of a page: no code, no tables, no marks."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(
        r"^(```+|:::+)[^\n]*\n.*?^\1[ \t]*$", "\n\n", text, flags=re.DOTALL | re.MULTILINE
    )
    lines = [
        "" if line.lstrip().startswith(("#", "|", ":::", "<!--")) else line
        for line in text.splitlines()
    ]
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", "\n".join(lines))
    text = re.sub(r"`+[^`]+`+", "code", text).replace("*", "")
    found = []
    for paragraph in re.split(r"\n[ \t]*\n|\n(?=[ \t]*(?:[-*>:]|\d+\.) )", text):
        found += re.split(r"(?<=[.!?:])[\"”)]*\s+", " ".join(paragraph.split()))
    return [one for one in found if one]


def pages(root: Path) -> list[Path]:
    """All but the proofs of `docs/mathematics.md` and what Sphinx makes."""
    written = (path for path in (root / "docs").rglob("*.md") if "generated" not in path.parts)
    kept = (path for path in written if path.name != "mathematics.md")
    return [*root.glob("*.md"), *sorted(kept)]


def too_long(text: str) -> list[str]:
    return [one for one in sentences(text) if len(one.split()) > MOST_WORDS]


def test_no_sentence_of_a_page_is_too_long(root):
    offenders = [
        f"{page.relative_to(root)}: {len(one.split())} words: {one}"
        for page in pages(root)
        for one in too_long(page.read_text(encoding="utf-8"))
    ]
    assert not offenders, "\n" + "\n".join(offenders)


def test_a_long_sentence_is_found_and_code_is_not_read():
    words = "word " * (MOST_WORDS + 1)
    assert too_long(f"Short.\n\n- {words}\n")
    assert too_long(f"{words.strip()}. Short.")
    assert not too_long(f"```python\n{words}\n```\n\n| {words} |\n|---|\n\n# {words}\n")


def test_a_dead_link_and_a_fetch_are_found(root, tmp_path):
    faults = runpy.run_path(str(root / "docs/check.py"))["faults"]
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    (tmp_path / "a.html").write_text('<a href="b.html#top">b</a> <a href="https://x.org">x</a>')
    assert faults(tmp_path) == []
    (tmp_path / "a.html").write_text(
        '<a href="c.html">c</a> <a href="b.html#no">b</a> <script src="https://x.org/y.js"></script>'
        '<img src="b.html" alt="0a1b.png"><img src="b.html"><img src="b.html" alt="A curve">'
    )
    said = [line.split(": ", 1)[1] for line in faults(tmp_path)]
    assert said == [
        *["no words name b.html"] * 2,
        "no such page: c.html",
        "no such anchor: b.html#no",
        "fetches https://x.org/y.js",
    ]


def test_every_public_name_is_in_the_reference(root):
    text = "\n".join(page.read_text(encoding="utf-8") for page in (root / "docs/api").glob("*.md"))
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", text, flags=re.MULTILINE))
    public = {*privtail.__all__, *linear_model.__all__, *evaluation.__all__}
    public |= {name for name in dir(errors) if name.endswith(("Error", "Warning", "Exceeded"))}
    public = {name for name in public if not name.startswith("__") and name not in NO_PAGE}
    assert public <= listed, sorted(public - listed)


def test_every_algorithm_is_on_the_page_of_the_papers(root):
    page = (root / "docs/papers.md").read_text(encoding="utf-8")
    listed = (root / "docs/api/algorithms.md").read_text(encoding="utf-8")
    for name in re.findall(r"^   (\w+)$", listed, flags=re.MULTILINE):
        assert f"`{name}`" in page or name == "Result", name
    errata = (root / "docs/errata.md").read_text(encoding="utf-8")
    for key in re.findall(r"\b[WXT]\d\d-[\w.]+", page):
        assert f"`{key}`" in errata, key


def test_every_error_and_warning_is_in_the_faq(root):
    page = (root / "docs/faq.md").read_text(encoding="utf-8")
    roots = {"PrivtailError", "PrivacyWarning"}
    names = {name for name in dir(errors) if name.endswith(("Error", "Warning", "Exceeded"))}
    names |= {"NotPlanned", "NotReleased", "UnsupportedAccounting", "IncompatibleParts"}
    assert {name for name in names - roots if f"`{name}`" not in page} == set()


WARNING = (
    "linear_model.remarks", "mean.private", "describe.quantiles", "describe.matrices",
    "describe.summary", "evaluation.evaluating", "default.finish",
)  # fmt: skip
"""Modules whose texts in capital names are those of warnings and notes."""


def texts_of_warnings(source: Path) -> list[str]:
    modules = [vars(importlib.import_module(f"privtail.{name}")) for name in WARNING]
    found = [
        text
        for module in modules
        for name, text in module.items()
        if name.isupper() and isinstance(text, str) and text.endswith(".")
    ]
    planned = (source / "linear_model/planning.py").read_text(encoding="utf-8")
    found += re.findall(r'(?:Delta|Noise)Warning\(\s*f?"([^"]+)"', planned)
    missing = (source / "gaps.py").read_text(encoding="utf-8")
    return found + re.findall(r'append\(\s*f?"([^"]+)"', missing)


def key(text: str) -> str:
    """The first words that are the same in every warning of this kind."""
    parts = re.split(r"\{[^}]*\}|[,:;(.'=](?!\d)", text.split(". ", maxsplit=1)[0])
    return " ".join(next(part for part in parts if len(part.split()) > 2).split()[:9])


def test_every_warning_is_in_the_faq(root):
    page = (root / "docs/faq.md").read_text(encoding="utf-8")
    needed = {key(text) for text in texts_of_warnings(root / "src/privtail")}
    assert len(needed) > 20
    assert {words for words in needed if words not in page} == set()


def texts(tree: ast.AST) -> list[str]:
    """Every text of some source but its docstrings; three dots stand for what varies."""
    described = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "..." for one in node.values]
            found.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [] if id(node) in described else [node.value]
    return found


def errors_of_the_faq(root: Path) -> list[tuple[str, re.Pattern[str]]]:
    """Class, or nothing, and text of every error in the FAQ."""
    page = (root / "docs/faq.md").read_text(encoding="utf-8")
    part = page.split("\n## Errors\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (?:`(\w+)`: )?(?!error|---)([^|]+) \|", part, flags=re.MULTILINE)
    gap = re.escape("...")
    return [(kind, re.compile(re.escape(text).replace(gap, ".*"))) for kind, text in cells]


def test_every_error_of_the_faq_is_one_that_the_code_says(root):
    source = (root / "src/privtail").rglob("*.py")
    said = [one for path in source for one in texts(ast.parse(path.read_text(encoding="utf-8")))]
    listed = errors_of_the_faq(root)
    assert len(listed) > 50
    unknown = [text.pattern for _, text in listed if not any(text.search(one) for one in said)]
    assert unknown == []


def test_every_refusal_of_a_ledger_is_in_the_faq(root):
    listed = [text for _, text in errors_of_the_faq(root)]
    tree = ast.parse((root / "src/privtail/ledger_texts.py").read_text(encoding="utf-8"))
    refusals = [
        node for node in tree.body
        if isinstance(node, ast.FunctionDef) and getattr(node.returns, "id", "") in dir(errors)
    ]  # fmt: skip
    assert len(refusals) > 10
    missing = [
        one.name for one in refusals
        if not any(text.search(said) for text in listed for said in texts(one))
    ]  # fmt: skip
    assert missing == []


AUTHORS = {"NotPlanned", "NotReleased"}
"""Errors that only somebody who writes an algorithm can meet."""


@functools.cache
def listed_errors(root: Path, source: Path) -> list[Any]:
    return runpy.run_path(str(root / "docs/messages.py"))["messages"](source)


def mute(root: Path, source: Path) -> list[str]:
    """Errors that do not say what to do."""
    remedy = runpy.run_path(str(root / "docs/messages.py"))["remedy"]
    found = listed_errors(root, source)
    return [one.text for one in found if one.kind not in AUTHORS and not remedy(one)]


def test_every_error_says_what_to_do(root):
    assert len(listed_errors(root, root / "src/privtail")) > 500
    assert mute(root, root / "src/privtail") == []


def test_an_error_that_does_not_is_found(root, tmp_path):
    (tmp_path / "a.py").write_text(
        'WHY = "It is odd."\n'
        "def f(x):\n    what = 'Nothing fits'\n    raise InvalidInput(f'{what}: {x}. {WHY}')\n"
        "def g(x):\n    raise InvalidInput('It is odd.', 'Take another.', cli='--other')\n"
        "def h(x):\n    raise InvalidInput(f'x must be even, got {x}. ' + ('A' if x else 'B'))\n"
        "def i():\n    raise NotPlanned('It is odd.')\n"
    )
    said = [one.text for one in listed_errors(root, tmp_path)]
    assert said == [
        "Nothing fits: …. It is odd.", "It is odd. Take another.", "x must be even, got …. A",
        "x must be even, got …. B", "It is odd.",
    ]  # fmt: skip
    assert mute(root, tmp_path) == [said[0]]


def test_names_of_another_function_or_module_are_not_put_in(root, tmp_path):
    """The page of errors said that the epsilon of an analyst was an element of SVG."""
    (tmp_path / "a.py").write_text(
        "def _line(x):\n    return '<line/>'\n"
        "def conversion(x):\n    mend = FORMS.get(x, 'a')\n    return f'Turn it into {mend}'\n"
    )
    (tmp_path / "b.py").write_text(
        "def _line(x):\n    return x\n"
        "def f(x):\n    raise InvalidInput(f'{_line(x)} must be positive.')\n"
        "def g(x):\n    mend = 'odd'\n    raise InvalidInput(f'{conversion(x)}.', mend)\n"
    )
    said = [one.text for one in listed_errors(root, tmp_path)]
    assert said == ["… must be positive.", "Turn it into …. odd"]


def test_every_error_is_on_the_page_of_errors(root):
    """Each call of the class of an error, but for one that passes on what a worker said."""
    source = root / "src/privtail"
    kinds = {cls.__name__ for cls in errors.PrivtailError.__subclasses__()}
    calls = {
        (path.relative_to(source).as_posix(), node.lineno)
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in kinds
    }
    assert len(calls) > 500
    missing = calls - {(one.module, one.line) for one in listed_errors(root, source)}
    said = [(source / module).read_text("utf-8").splitlines()[line - 1] for module, line in missing]
    assert [one for one in said if not one.rstrip().endswith("refused)")] == []


X, Y = np.ones((50, 2)), np.ones(50)
JOBS = pd.DataFrame({"job": ["clerk", "cook"] * 25})
COMMON = {
    "text": lambda: DPRidge().fit(JOBS, Y),
    "misspelt column": lambda: DPRidge(categories={"jop": ["clerk"]}).fit(JOBS, Y),
    "list of rows": lambda: DPRidge().fit(X.tolist(), Y),
    "one dimension": lambda: DPRidge().fit(Y, Y),
    "lengths": lambda: DPRidge().fit(X, Y[:40]),
    "labels": lambda: DPRidge().fit(X, JOBS["job"]),
    "name of y": lambda: DPRidge().fit(JOBS, "cost"),
    "weights": lambda: DPRidge().fit(X, Y, sample_weight=Y),
    "persons": lambda: DPRidge().fit(X, Y, groups=Y),
    "rows of nobody": lambda: DPRidge(max_rows=2).fit(X, Y),
    "generator": lambda: DPRidge(random_state=np.random.default_rng()).fit(X, Y),
    "kinds": lambda: DPLogisticRegression(classes=["a", "b"]).fit(X, np.arange(50) % 2),
    "epsilon": lambda: DPRidge(epsilon=0).fit(X, Y),
    "delta": lambda: DPRidge(delta=1).fit(X, Y),
    "pure": lambda: DPRidge(delta=0).fit(X, Y),
    "algorithm": lambda: DPRidge(algorithm="magic").fit(X, Y),
    "NaN": lambda: DPRidge(invalid="raise").fit(X * np.nan, Y),
    "no ledger": lambda: DPRidge(ledger="nowhere.jsonl").fit(X, Y),
    "spent": lambda: private_mean(Y, epsilon=1, ledger=Ledger(epsilon=0.5, delta=1e-6)),
    "simulated": lambda: private_mean(
        Y, epsilon=1, noise="simulated", ledger=Ledger(epsilon=2, delta=1e-6)
    ),
}
"""What people get wrong most, we think."""


@pytest.mark.parametrize("mistake", COMMON)
@pytest.mark.filterwarnings("ignore::privtail.errors.PrivacyWarning")
def test_a_common_mistake_is_refused_as_the_faq_says(root, mistake):
    with pytest.raises(errors.PrivtailError) as refusal:
        COMMON[mistake]()
    kinds = [kind for kind, text in errors_of_the_faq(root) if text.search(str(refusal.value))]
    assert type(refusal.value).__name__ in kinds, str(refusal.value)
    texts = (re.escape(one.text) for one in listed_errors(root, root / "src/privtail"))
    patterns = [one.replace("\\ …", "(?:\\ .*)?").replace("…", ".*") for one in texts]
    assert any(re.fullmatch(one, str(refusal.value), re.DOTALL) for one in patterns)


def words_of_statements(source: Path) -> set[str]:
    """What may stand in a statement's table and name its theorem, as the source writes it."""
    core = "\n".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    stages = re.findall(r'(?:stage=|_round\()"([^"]+)"', core)
    questions = re.findall(r'question="([^"]+)"', core)
    questions += re.findall(r'self\._mean\(.*, "([^"]+)"\)', core)
    laws = [law.replace("_", " ") for law in LAWS]
    header = [*Statement(epsilon=1.0, delta=0.0, n=1, plan=()).table()[0]]
    theorems = {*re.findall(r'theorem: str = field\(default="([^"]+)"', core)}
    return {*stages, *questions, *laws, *header, *theorems - {"no noise: not private"}}


def explained(text: str) -> set[str]:
    """The words in the first column of a table of the glossary."""
    cells = re.findall(r"^\| ([^|]+) \|", text, flags=re.MULTILINE)
    return {word for cell in cells for word in cell.split(", ")}


def test_every_word_of_a_statement_is_in_the_glossary(root):
    known = explained((root / "docs/glossary.md").read_text(encoding="utf-8"))
    needed = words_of_statements(root / "src/privtail")
    needed |= {one.stage for one in linear_model.DPSparseRegressor(2).plan(5_000, 200).releases}
    assert len(needed) > 40
    assert needed <= known, sorted(needed - known)


def test_every_fact_of_a_statement_is_explained(root):
    page = (root / "docs/guide/statement.md").read_text(encoding="utf-8")
    facts = Statement(epsilon=1.0, delta=0.0, n=1, plan=()).facts()
    assert [name for name, _ in facts if f"**{name}**" not in page] == []


COUNTERPARTS = {
    "DPRidge": "Ridge", "DPLasso": "Lasso", "DPElasticNet": "ElasticNet",
    "DPHuberRegressor": "HuberRegressor", "DPQuantileRegressor": "QuantileRegressor",
    "DPPoissonRegressor": "PoissonRegressor", "DPGammaRegressor": "GammaRegressor",
    "DPTweedieRegressor": "TweedieRegressor", "DPLogisticRegression": "LogisticRegression",
}  # fmt: skip
NOT_HERE = {
    "copy_X", "max_iter", "tol", "solver", "solver_options", "selection", "precompute",
    "warm_start", "dual", "intercept_scaling", "n_jobs", "positive", "link", "penalty", "l1_ratio",
}  # fmt: skip
"""Parameters of scikit-learn that steer its solvers, or choose what privtail does not have."""


@pytest.mark.parametrize(("ours", "theirs"), COUNTERPARTS.items())
def test_an_estimator_names_its_parameters_as_scikit_learn_does(ours, theirs):
    own = inspect.signature(getattr(linear_model, ours)).parameters
    other = inspect.signature(getattr(sklearn.linear_model, theirs)).parameters
    assert other.keys() - own.keys() - NOT_HERE == set()
    assert {"alpha", "C", "quantile", "power"} & other.keys() <= own.keys()


def test_names_of_other_libraries_are_theirs(root):
    page = (root / "docs/guide/other-libraries.md").read_text(encoding="utf-8")
    part = page.split("\n## Names\n")[1].split("\n## ")[0]
    for where, names in {
        dp_accounting.NeighboringRelation: ("REPLACE_ONE", "REPLACE_SPECIAL"),
        dp_accounting: ("DpEvent", "GaussianDpEvent", "ZCDpEvent"),
        dp: ("change_one_distance", "user_distance"),
        dp.c: ("make_privacy_filter",),
        dp.t: ("make_clamp",),
    }.items():
        for name in names:
            assert f"`{name}`" in part
            assert hasattr(where, name)


CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$(.{0,20})", re.DOTALL | re.MULTILINE)


def test_the_repository_shows_what_the_cells_of_a_page_printed(root):
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        silent = [
            code for code, after in CELL.findall(text)
            if re.search(r"^ *print\(", code, re.MULTILINE) and "<!-- printed" not in after
        ]  # fmt: skip
        assert silent == [], f"{page}: make docs, then python docs/outputs.py build/docs/html"
        assert not re.search(r"(?<![\w.~])/(?:tmp|home|root|Users)/", text), page


def same_in_all(text: str) -> set[tuple[str, ...]]:
    """Of every statement that a page shows: noise, what is outside, and whose versions it gives."""
    flat = " ".join(text.split())
    noises = re.findall(r" noise (exact: .*?)(?: \d+)? public choices ", flat)
    versions = re.findall(r" versions (python [^`]*)", flat + "`")
    outside = re.findall(r" outside the promise (.*?)(?: \d+)? versions ", flat)
    return {(one,) for one in (*noises, *outside)} | {
        tuple(re.findall(r"([a-z-]+) \d", one)) for one in versions
    }


def test_a_page_shows_statements_as_they_are_printed_now(root):
    """Of a fit with Gaussian noise, as all of them are."""
    now = same_in_all(str(Statement(epsilon=1.0, delta=0.0, n=1, plan=())))
    assert len(now) == 3
    shown = {page: same_in_all(page.read_text(encoding="utf-8")) for page in pages(root)}
    assert sum(found == now for found in shown.values()) >= 4
    assert all(found <= now for found in shown.values()), shown


def stages_shown(text: str) -> set[str]:
    """Of every plan and statement that a page shows: the names of its stages."""
    blocks = re.findall(r"^```text\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    shown = "".join(block for block in blocks if "multiplier" in block or "std/rad." in block)
    return set(
        re.findall(r"^[\d ]{2,6}([a-z][a-z -]*)(?:, .*% of the cost)?:$", shown, re.MULTILINE)
    )


def test_a_page_shows_stages_that_the_glossary_knows(root):
    glossary = (root / "docs/glossary.md").read_text(encoding="utf-8")
    part = glossary.split("\n### Stages\n")[1].split("\n#")[0]
    known = {
        stage for row in re.findall(r"^\| ([a-z].*?) \|", part, re.MULTILINE)
        for stage in row.split(", ")
    }  # fmt: skip
    shown = {page: stages_shown(page.read_text(encoding="utf-8")) for page in pages(root)}
    assert sum(len(found) >= 6 for found in shown.values()) >= 5
    assert all(found <= known for found in shown.values()), shown


def test_noise_of_slopes_is_what_plans_say(root):
    page = (root / "docs/guide/choose-epsilon.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d,]+) \| ([\d.]+) to ([\d.]+) \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for product, low, high in rows:
        places = len(low.split(".")[1])
        plans = (
            linear_model.DPLinearRegression(epsilon=epsilon).plan(
                n=round(int(product.replace(",", "")) / epsilon), d=10
            )
            for epsilon in (0.05, 0.1, 0.5, 1.0, 2.0)
        )
        found = {round(float(plan.noise_error), places) for plan in plans}
        assert (min(found), max(found)) == (float(low), float(high))


def test_what_a_cell_printed_is_written_below_it_and_taken_out_again(root):
    tool = runpy.run_path(str(root / "docs/outputs.py"))
    page = "# T\n\n```{code-cell} ipython3\n:tags: [hide-input]\n\nprint(1)\n```\n\nEnd.\n"
    outputs = [
        {"text": ["1"]},
        {"text": [" of 2\n", ".../y.py:3: NoiseWarning: noise\n", "  fit()\n"]},
        {"data": {"image/png": "", "text/plain": "<Figure>"}},
    ]
    cells = [
        {"cell_type": "markdown"},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
    ]
    once = tool["filled"](page, [{"cells": cells}])
    assert "```text\n1 of 2\nNoiseWarning: noise\n```\n\n" + tool["PICTURE"] in once
    assert tool["filled"](once, [{"cells": cells}]) == once
    assert tool["without"](once) == page
    with pytest.raises(SystemExit):
        tool["filled"](page, [{"cells": []}])


NO_PAGE = {"MODELS"}
"""Tables of names, which need none."""


@pytest.mark.parametrize(("name", "most"), [("README.md", 170), ("CHANGELOG.md", 150)])
def test_readme_and_changelog_stay_short(root, name, most):
    assert len((root / name).read_text(encoding="utf-8").splitlines()) <= most


def test_the_readme_has_the_numbers_of_the_table_of_methods(root):
    readme = (root / "README.md").read_text(encoding="utf-8")
    page = (root / "docs/which-method.md").read_text(encoding="utf-8")
    said = re.search(r"^On (\d+) pairs .*? best on \d+ \((\d+)%\)", page, re.MULTILINE)
    assert said is not None
    assert f"There are {said[1]} pairs of a table and a budget" in readme
    assert f"within 5 % of the best in {said[2]} % of the pairs" in " ".join(readme.split())
    rows = re.findall(r"^\| ([^|]+) \| ([\d.e+]+) \| ([\d.e+]+) \| \d+ of", page, re.MULTILINE)
    measured = {name: numbers for name, *numbers in rows}
    shown = re.findall(r"^\| ([^|]+) \| [^|]+ \| (\d[^|]*) \| (\d[^|]*) \|$", readme, re.MULTILINE)
    compared = 0
    for names, *columns in shown:
        for i, name in enumerate(names.split(", ")):
            for text, number in zip(
                (c.split(", ")[i] for c in columns), measured[name], strict=True
            ):
                unit = 10.0 ** int(Decimal(text).as_tuple().exponent)
                assert abs(float(text) - float(number)) <= 0.51 * unit, (name, text, number)
                compared += 1
    assert compared == 10


def test_the_guide_names_the_algorithms_that_give_pure_epsilon(root):
    page = (root / "docs/guide/models.md").read_text(encoding="utf-8")
    pure = {
        "absolute": NetSearch(points=100, scale=0.1),
        "squared": HeavyTailedFrankWolfe(steps=5, scale=2.0),
    }
    for loss, algorithm in pure.items():
        assert f"`{type(algorithm).__name__}`" in page.split("#pure-ε")[1].split("\n- ")[0]
        model = linear_model.DPGeneralizedLinearEstimator(
            loss, L1Ball(radius=1.0), algorithm=algorithm, delta=0.0, fit_intercept=False
        )
        assert model.plan(n=3_000, d=2).budget.delta == 0


def test_the_page_on_intervals_counts_the_cells_of_its_table(root):
    page = (root / "docs/guide/intervals.md").read_text(encoding="utf-8")
    table = page.split("<!-- begin slopes -->")[1].split("<!-- end slopes -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    held = [
        float(cell.split(" %")[0])
        for name, _, fits, *cells in filter(None, rows)
        if fits == "1,000" and "labels" not in name
        for cell in cells[:3]
        if cell != "refused"
    ]
    usual = sum(93 <= share <= 99 for share in held)
    said = (
        f"{len(held)} cells have 1,000 fits and are not refused. In {usual} of them 93 to 99 % of "
        f"the intervals held, and in all of them {math.floor(min(held))} % or more."
    )
    assert said in " ".join(page.split())


def test_code_names_sections_of_pages_that_are_there(root):
    named = set()
    for folder in ("src", "experiments", "benchmarks", "tests"):
        for path in (root / folder).rglob("*.py"):
            named |= set(re.findall(r"docs/([a-z-]+\.md)#([a-z0-9-]+)", path.read_text("utf-8")))
    assert ("mathematics.md", "disputed-proofs") in named
    for page, anchor in named:
        text = (root / "docs" / page).read_text(encoding="utf-8")
        heads = [re.sub(r"[^\w\s-]", "", h).strip().lower().replace(" ", "-")
                 for h in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)]  # fmt: skip
        assert f"({anchor})=" in text or anchor in heads, f"{page}#{anchor}"


def test_the_page_on_scale_plans_by_its_formula(root):
    """Its example of 1e9 rows follows from what it says was measured, and from a plan's passes."""
    page = (root / "docs/background/scale.md").read_text(encoding="utf-8")
    passes = DPLinearRegression(epsilon=1, delta=1e-10).plan(n=10**9, d=50).passes
    assert f"which is {passes}." in page
    costs = {}
    for start in ("in memory", "in a folder"):
        line = next(line for line in page.splitlines() if line.startswith(f"| {start}"))
        each, whole = (float(cell.replace(",", "")) for cell in line.split("|")[2:4])
        assert each == pytest.approx(whole / passes, rel=0.01)
        costs[start] = whole
    for start, cost in (("rows in memory", "in memory"), ("read from Parquet", "in a folder")):
        line = next(line for line in page.splitlines() if line.startswith(f"| {start}"))
        seconds, *plans = (cell.strip() for cell in line.split("|")[2:5])
        assert float(seconds.replace(",", "")) == costs[cost]
        for workers, plan in zip((10, 100), plans, strict=True):
            minutes = (costs[cost] / (4 * workers) + passes * 0.04) / 60
            assert float(plan.split()[0]) == pytest.approx(minutes, abs=0.051)
            if "GB" in plan:
                assert float(plan.split(", ")[1].split()[0]) == pytest.approx(
                    408 / workers, rel=0.02
                )
