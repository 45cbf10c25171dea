"""How Sphinx builds this site: offline, and every warning is an error (`make docs`)."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.util.logging import getLogger

import privtail

sys.path.insert(0, str(Path(__file__).parent))
from messages import page
from outputs import without

os.environ.setdefault("PRIVTAIL_THREADS", "1")
os.environ.setdefault("PRIVTAIL_DATA", str(Path(__file__).parents[2] / "shared/data"))
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

project = "privtail"
author = "privtail contributors"
copyright = "privtail contributors"  # noqa: A001
version = release = privtail.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
]
exclude_patterns = ["_build", "api/class.rst"]
templates_path = ["_templates"]
default_role = "py:obj"
html_theme = "pydata_sphinx_theme"
html_title = "privtail"
html_static_path = ["_static"]
html_extra_path = [str(path) for path in Path(__file__).parents[1].glob("reports/*.html")]
html_css_files = ["privtail.css"]
html_context = {"default_mode": "auto"}  # the theme complains in the console without it
html_show_sourcelink = False
html_show_search_summary = False  # it fetches pages, which browsers refuse of files
html_sidebars = {
    "index": [],
    "get-started": [],
    "papers": [],
    "which-method": [],
    "glossary": [],
    "changelog": [],
    "contributing": [],
    "security": [],
}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = os.environ.get("PRIVTAIL_DOCS_RUN", "cache")
nb_execution_timeout = 170
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "show"
suppress_warnings = ["mystnb.unknown_mime_type"]

MOST_SECONDS = 180.0
_CODE = re.compile(r"``.+?``|`[^`]+`_?|:\w+:`[^`]+`")


def _plain(text: str) -> str:
    """The same text, where |x| and a trailing underscore mean themselves."""
    text = re.sub(r"(?<!\*)\*(?=\w+\.)", r"\\*", text.replace("|", r"\|"))
    return re.sub(r"(?<![\w`*\\])(\w*[A-Za-z0-9])_(?![\w`*])", r"\1\\_", text)


def _escape(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings write |x| for a norm and `coef_` for an attribute, which are marks in RST."""
    literal = False
    for i, line in enumerate(lines):
        if line.strip() and not line.startswith(" "):
            literal = False
        if literal or line.lstrip().startswith((">>>", "...", "..")):
            continue
        parts, last = [], 0
        for code in _CODE.finditer(line):
            parts += [_plain(line[last : code.start()]), code.group()]
            last = code.end()
        lines[i] = "".join([*parts, _plain(line[last:])])
        literal = literal or line.rstrip().endswith("::")


def _skip(_app: Any, _what: str, _name: str, obj: Any, skip: bool, _options: Any) -> bool:
    """Members that come from scikit-learn are described there."""
    home = getattr(obj, "__module__", None) or getattr(type(obj), "__module__", "")
    return skip or home.startswith("sklearn")


def _run_anew(_app: Any, _name: str, content: list[str]) -> None:
    """What cells printed when the page was written gives way to what they print now."""
    content[0] = without(content[0])


def _list_messages(app: Any, name: str, content: list[str]) -> None:
    """The page of all messages is made of the source, and made anew when it changes."""
    if name == "messages":
        source = Path(privtail.__file__).parent
        for module in source.rglob("*.py"):
            app.env.note_dependency(str(module))
        content[0] += page(source)


def _time_notebooks(_app: Any, env: Any) -> None:
    """A page that runs for more than three minutes is an error, as every warning is."""
    for name in sorted(env.found_docs):
        taken = (NbMetadataCollector.get_exec_data(env, name) or {}).get("runtime") or 0.0
        if taken > MOST_SECONDS:
            getLogger(__name__).warning("runs for %.0f s", taken, location=name)


def _name_pictures(_app: Any, doctree: Any, _name: str) -> None:
    """A picture that a cell drew is called by its heading: its file has the name of a hash."""
    for picture in doctree.findall(nodes.image):
        section = picture.parent
        while section is not None and not isinstance(section, nodes.section):
            section = section.parent
        if section is not None and not picture.get("alt"):
            picture["alt"] = f"Picture of the section “{section.next_node(nodes.title).astext()}”"


def setup(app: Any) -> None:
    """Add the hooks above, after numpydoc has read a docstring."""
    app.connect("source-read", _run_anew)
    app.connect("source-read", _list_messages)
    app.connect("autodoc-process-docstring", _escape, priority=600)
    app.connect("autodoc-skip-member", _skip)
    app.connect("env-check-consistency", _time_notebooks)
    app.connect("doctree-resolved", _name_pictures)
