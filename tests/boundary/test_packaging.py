"""The package as it is installed: light to import, complete, locked, and clear when it cannot."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import privtail
from privtail.data import ADULT, adult_schema

SOURCE = Path(privtail.__file__).parent
HEAVY = (
    "dp_accounting",
    "matplotlib",
    "numba",
    "opendp",
    "pandas",
    "pyarrow",
    "scipy.stats",
    "sklearn",
    "typer",
)


@pytest.fixture(scope="session")
def pyproject(root):
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


# The import


def test_import_is_light():
    code = f"import sys, privtail; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == []
    assert out.stderr == ""


def test_public_modules_are_there_after_import_privtail():
    """In a new process, as another test may have imported them; dir() has them, too."""
    code = """
        import privtail
        bins = privtail.features.bins("age", [20, 40])
        assert issubclass(privtail.errors.InvalidInput, privtail.errors.PrivtailError)
        assert privtail.domains.L1(alpha=1.0) and privtail.losses.SquaredLoss()
        assert privtail.linear_model.DPRidge and privtail.data.ADULT
        assert privtail.algorithms.CatoniDescent and "features" in dir(privtail)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_the_lightness_test_would_notice():
    code = f"import sys, scipy.stats; print(*(m for m in {HEAVY!r} if m in sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["scipy.stats"]


@pytest.mark.parametrize("writable", [True, False])
def test_kernels_are_compiled_once_where_a_folder_can_be_written(tmp_path, writable):
    """A second process loads the machine code; without any folder it compiles in memory."""
    site = tmp_path / "site"
    shutil.copytree(SOURCE, site / "privtail", ignore=shutil.ignore_patterns("__pycache__"))
    if not writable:
        for folder in [path for path in site.rglob("*") if path.is_dir()]:
            (folder / "__pycache__").write_text("in the way")
    code = """
        import numpy as np
        from privtail.trusted import kernels
        rows, ones = np.ones((3, 9)), np.ones(9)
        margins, squares, valid = np.empty((3, 1)), np.empty(3), np.empty(3, np.bool_)
        kernels.margins_dense(
            rows, ones, ones, np.ones((9, 1)), np.ones(1), margins, squares, valid
        )
        assert margins.tolist() == [[19.0]] * 3 and squares.tolist() == [36.0] * 3
        print(sum(kernels.margins_dense.dispatcher.stats.cache_hits.values()))
    """
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    nowhere = {} if writable else {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null/cache"}
    hits = [
        subprocess.run(
            [sys.executable, "-B", "-c", textwrap.dedent(code)],
            env={**keep, **nowhere, "PYTHONPATH": str(site)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for _ in range(1 + writable)
    ]
    assert hits == ["0", "1"][: 1 + writable]


@pytest.mark.parametrize("watched", [True, False], ids=["honest", "twin"])
def test_code_on_disk_is_stale_once_what_it_calls_has_changed(tmp_path, watched):
    """The twin is Numba alone, which looks at the file of the caller."""
    inner, outer = tmp_path / "inner.py", tmp_path / "outer.py"
    start = "from privtail.compilation import compiled\n"
    outer.write_text(f"{start}from inner import one\n@compiled\ndef two():\n    return 2 * one()\n")
    code = "from outer import two; print(two(), *two.dispatcher.stats.cache_hits.values())"
    if not watched:
        code = f"import privtail.compilation as c; c._watch = lambda d, _: d; {code}"
    found = []
    for value in (1, 1, 10):
        source = f"{start}@compiled\ndef one():\n    return {value}\n"
        if not inner.exists() or inner.read_text() != source:
            inner.write_text(source)
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": f"{SOURCE.parent}:{tmp_path}"},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(run.stdout.split())
    assert found == [["2"], ["2", "1"], ["20"] if watched else ["2", "1"]]


def test_version_is_that_of_the_metadata(pyproject):
    assert privtail.__version__ == importlib.metadata.version("privtail")
    assert privtail.__version__ == pyproject["project"]["version"]


def test_every_file_has_a_noun():
    banned = {"utils", "util", "base", "common", "helpers", "helper", "misc"}
    named = [p for p in SOURCE.rglob("*") if p.stem.strip("_") in banned]
    assert named == []


def test_the_repository_holds_no_link(root):
    """One that leads out of it is dead in a clone."""
    if not (root / ".git").exists():
        pytest.skip("this is no clone")
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(listed) > 100
    assert [line for line in listed if line.startswith("120000")] == []


# Adult


def test_adult_is_here_with_its_attribution_and_checksum():
    digest, name = ADULT.with_name("SHA256SUMS").read_text(encoding="utf-8").split()
    assert name == ADULT.name
    assert hashlib.sha256(ADULT.read_bytes()).hexdigest() == digest
    attribution = ADULT.with_name("ADULT.md").read_text(encoding="utf-8")
    for fact in ("Becker", "Kohavi", "10.24432/C5XW20", "CC BY 4.0", "What we changed"):
        assert fact in attribution


def test_adult_schema_covers_the_file():
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(ADULT)
    schema = adult_schema()
    roles = [*schema["numeric"], *schema["categories"], schema["target"], *schema["drop"]]
    assert sorted(roles) == sorted(table.column_names)
    declared = {**schema["categories"], schema["target"]: schema["classes"]}
    for name, values in declared.items():
        assert len(values) == len(set(values)), name
        assert set(table[name].unique().to_pylist()) <= set(values), name
    assert all(table[name].null_count == 0 for name in table.column_names)
    assert (table.num_rows, table["split"].to_pylist().count("train")) == (48_842, 32_561)


# The wheel


@pytest.fixture(scope="session")
def wheel(root, tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_holds_the_whole_source_and_nothing_else(wheel):
    inside = {n for n in zipfile.ZipFile(wheel).namelist() if n.startswith("privtail/")}
    outside = {
        f"privtail/{path.relative_to(SOURCE).as_posix()}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == outside
    assert {"privtail/py.typed", "privtail/data/adult.parquet", "privtail/data/ADULT.md"} <= inside


@pytest.mark.slow
def test_wheel_works_where_it_is_installed(wheel, tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(site), str(wheel)], check=True)
    code = (
        "import privtail, privtail.data, importlib.metadata as m;"
        "print(privtail.__file__); print(privtail.data.ADULT.is_file(), m.version('privtail'))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.splitlines() == [
        str(site / "privtail" / "__init__.py"),
        f"True {privtail.__version__}",
    ]


@pytest.mark.slow
def test_wheel_brings_all_that_it_needs(wheel, tmp_path):
    """In an empty environment, with the versions that the index has today."""
    env = tmp_path / "env"
    venv.create(env, with_pip=True)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def run(*command: str) -> str:
        out = subprocess.run(
            [env / "bin" / command[0], *command[1:]],
            cwd=tmp_path, env=clean, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert out.returncode == 0, out.stderr
        return out.stdout

    run("python", "-m", "pip", "install", "--quiet", str(wheel))
    code = """
        import numpy as np, privtail
        from privtail.linear_model import DPRidge
        X = np.random.default_rng(0).normal(size=(500, 2))
        print(privtail.verify(DPRidge().fit(X, X[:, 0]).privacy_).ok)
    """
    assert run("python", "-W", "ignore", "-c", textwrap.dedent(code)) == "True\n"
    run("python", "-m", "pip", "install", "--quiet", f"{wheel}[all]")
    file = run("python", "-c", "from privtail.data import ADULT; print(ADULT)").strip()
    assert str(env) in file
    said = run("privtail", "mean", file, "--column", "age", "--epsilon", "1", "--out", "age.json")
    assert "age" in said
    assert "recomputed  ε = 1 " in run("privtail", "verify", "age.json")


# The locks


def pins(path: Path) -> dict[str, str]:
    """Map `name==version ; marker` to the block of lines that carries its hashes."""
    text = "\n".join(
        line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"
    )
    return {
        block.split(" \\", 1)[0]: block
        for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE)
        if block
    }


@pytest.mark.parametrize("name", ["demo", "dev", "docs"])
def test_lock_has_hashes_and_no_address(root, name):
    path = root / "requirements" / f"{name}.txt"
    assert not re.search(r"://|--(extra-)?index|--find-links|\bfile:", path.read_text("utf-8"))
    for pin, block in pins(path).items():
        assert re.match(r"[a-z0-9.-]+==\S+( ; .+)?$", pin), pin
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", block), pin


def test_dev_lock_contains_the_demo_lock(root):
    assert pins(root / "requirements/demo.txt").keys() <= pins(root / "requirements/dev.txt").keys()


def test_locks_hold_every_declared_dependency(root, pyproject):
    def names(requirements):
        found = {re.split(r"[\s<>=!~;\[]", r)[0] for r in requirements if isinstance(r, str)}
        return found - {"privtail"}

    project, groups = pyproject["project"], pyproject["dependency-groups"]
    extras = project["optional-dependencies"]
    for lock, group, chosen in (
        ("demo", "build", ("files", "cli", "plot")),
        ("dev", "dev", tuple(extras)),
        ("docs", "docs", ("files", "cli", "plot")),
    ):
        needed = names(project["dependencies"]).union(*(names(extras[one]) for one in chosen))
        locked = {pin.split("==")[0] for pin in pins(root / f"requirements/{lock}.txt")}
        assert needed | names(groups[group]) <= locked, lock


# The two commands


def test_makefile_and_ci_have_their_targets(root):
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    for target in ("help", "demo", "test", "check", "docs", "bench", "lock", "clean"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
        assert target == "help" or f"@echo 'make {target} " in makefile, target
    run = root / ".ci" / "run"
    assert os.access(run, os.X_OK)
    assert "for target in test check docs" in run.read_text(encoding="utf-8")


def make(root, tmp_path, python):
    """Run `make test` in an empty folder where every Python is the shell script `python`."""
    if not (shutil.which("make") and os.name == "posix"):
        pytest.skip("needs make")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        (tools / name).write_text(f"#!/bin/sh\n{python}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    folder = tmp_path / "a clone"
    (folder / "requirements").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements/demo.txt", "requirements/dev.txt"):
        shutil.copy(root / name, folder / name)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHON", "MFLAGS"))}
    env["PATH"] = f"{tools}{os.pathsep}{env['PATH']}"
    out = subprocess.run(
        ["make", "test"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    said = [line for line in out.stderr.splitlines() if not line.startswith("make")]
    return folder, out, said


def test_make_says_in_one_line_that_python_is_too_old(root, tmp_path):
    folder, out, said = make(root, tmp_path, "echo 3.9")
    assert out.returncode != 0
    (line,) = said
    assert "needs Python 3.11 to 3.14" in line
    assert "python3 is 3.9" in line
    assert not (folder / ".venv").exists()


def test_make_says_in_one_line_that_there_is_no_python(root, tmp_path):
    _, out, said = make(root, tmp_path, "exit 127")
    assert out.returncode != 0
    (line,) = said
    assert "no python3 was found" in line


def test_make_says_in_one_line_that_venv_is_missing(root, tmp_path):
    script = 'case "$2" in *ensurepip*) exit 1 ;; *) echo 3.12 ;; esac'
    _, out, said = make(root, tmp_path, script)
    assert out.returncode != 0
    (line,) = said
    assert "apt install python3-venv" in line


def test_make_takes_the_first_python_that_fits(root, tmp_path):
    script = """case "$0" in *python3.12) ;; *) echo 3.9; exit ;; esac
case "$2" in *ensurepip*) ;; venv) echo "venv by $0" >&2; exit 1 ;; *) echo 3.12 ;; esac"""
    _, out, said = make(root, tmp_path, script)
    assert out.returncode != 0
    assert said == [f"venv by {tmp_path / 'tools' / 'python3.12'}"]


def test_make_leaves_no_stamp_behind_a_failed_install(root, tmp_path):
    inner = "case \\$* in *install*) echo no network >&2; exit 1 ;; esac"
    script = f"""case "$2" in
  *ensurepip*) ;;
  venv) mkdir -p "$4/bin"; printf '#!/bin/sh\\n%s\\n' "{inner}" > "$4/bin/python"
        chmod +x "$4/bin/python" ;;
  *) echo 3.12 ;;
esac"""
    folder, out, said = make(root, tmp_path, script)
    assert out.returncode != 0
    assert said == ["no network"]
    assert (folder / ".venv" / "ready").exists()
    assert not list((folder / ".venv").glob("installed*"))
