# `make demo` shows privtail at work, `make test` proves that it works here.
# Both need python3 (3.11 to 3.14), git and make; everything else goes into .venv.

SHELL = /bin/sh
MAKEFLAGS += --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test check lint docs audits bench peers accuracy reproduce stale lock clean

VENV = .venv
PY = $(VENV)/bin/python

# Settings that would send an install somewhere else than into the environment.
# Those that say where packages come from (indexes, proxies, certificates) are kept.
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_DRY_RUN PIP_REQUIRE_HASHES PIP_CONSTRAINT
unexport PIP_REQUIREMENT PIP_EDITABLE PIP_NO_BINARY PIP_PYTHON
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV
export PIP_USER = 0
export PIP_NO_INPUT = 1
export PIP_DISABLE_PIP_VERSION_CHECK = 1

# Stamps. Each is written last, so an interrupted step is done again. The folder's own name
# is part of one of them: a moved or copied folder installs itself again.
HERE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
READY = $(VENV)/ready
DEMO = $(VENV)/installed-demo
DEV = $(VENV)/installed-dev
DOCS = $(VENV)/installed-docs
SELF = $(VENV)/installed-privtail-$(HERE)

# An environment whose Python is gone or half made is made anew.
$(shell "$(PY)" -c 'import pip' >/dev/null 2>&1 || rm -f "$(READY)")

help:
	@echo 'make demo        a private model of real data, its quality, a report and a picture, in demo/'
	@echo 'make test        the fast tests'
	@echo 'make check       format, lint, types, and the slow statistical audits'
	@echo 'make lint        the first three of these alone'
	@echo 'make docs        this documentation as a web site, in build/docs/html; its examples run,'
	@echo '                 and every page is opened in Chromium, where there is one'
	@echo 'make audits      every published algorithm: what an audit finds of its epsilon, in five minutes'
	@echo 'make bench       speed and memory, beside the plain gradient and the limits we set ourselves'
	@echo 'make peers       environments of diffprivlib, Opacus, JAX-Privacy and DP-EBM, for the next'
	@echo 'make accuracy    the table: defaults, published algorithms, peers, baselines; what is'
	@echo '                 missing is computed. make accuracy QUICK=1: a small one of its own'
	@echo 'make reproduce   the experiments of the papers in small, and the report on their claims'
	@echo 'make stale       runs some cells of each again: fails if a row differs, says what mends it'
	@echo 'make lock        regenerate requirements/*.txt from pyproject.toml'
	@echo 'make clean       remove .venv, demo/ and caches'
	@echo
	@echo 'Another Python:  make clean, then  make test PYTHON=/path/to/python3.12'

demo: $(DEMO) $(SELF)
	@"$(PY)" -m privtail.cli demo --out demo/

test: $(DEV) $(SELF)
	@"$(PY)" -m pytest -n 2 -m "not slow"

# Everything is tried even when something fails, so one run shows all there is to mend.
check: $(DEV) $(SELF)
	@failed=; \
	$(MAKE) --no-print-directory lint || failed=" lint"; \
	"$(PY)" -m pytest -n 2 -m slow || failed="$$failed audits"; \
	[ -z "$$failed" ] || { echo "make check: failed:$$failed" >&2; exit 1; }

lint: $(DEV) $(SELF)
	@failed=; \
	"$(PY)" -m ruff format --check . || failed="$$failed format"; \
	"$(PY)" -m ruff check . || failed="$$failed ruff"; \
	"$(PY)" -m mypy || failed="$$failed mypy"; \
	[ -z "$$failed" ] || { echo "make lint: failed:$$failed" >&2; exit 1; }

# Pages that did not change are not run again. Nothing is fetched, and a warning is an error. So are
# a dead link, and a page that in a browser has an error or is too wide for a phone.
docs: $(DOCS) $(SELF)
	@PRIVTAIL_THREADS=1 "$(PY)" -m sphinx -q -W --keep-going -b html \
	  -d build/docs/doctrees docs build/docs/html
	@"$(PY)" docs/check.py build/docs/html
	@"$(PY)" docs/browser.py build/docs/html
	@echo 'open build/docs/html/index.html'

audits: $(DEV) $(SELF)
	@PYTHONDONTWRITEBYTECODE=1 PRIVTAIL_THREADS=1 "$(PY)" tests/auditing/audits.py

bench: $(DEV) $(SELF)
	@for name in gradients fit memory files algorithms accounting; do \
	  PYTHONDONTWRITEBYTECODE=1 "$(PY)" -m benchmarks.$$name || exit 1; echo; \
	done

accuracy: $(DEV) $(SELF)
ifdef QUICK
	@"$(PY)" -m benchmarks.comparison quick
else
	@"$(PY)" -m benchmarks.comparison run
	@"$(PY)" -m benchmarks.comparison report
endif

# It goes on where it stopped and keeps what is finished; FRESH=--fresh runs everything again.
stale: $(DEV) $(SELF)
	@"$(PY)" -m experiments.runner all --stale

reproduce: $(DEV) $(SELF)
	@"$(PY)" -m privtail.cli reproduce all --quick $(FRESH)
	@"$(PY)" -m experiments.report

# Every peer has an environment of its own outside the tree: their requirements contradict ours.
PRIVTAIL_PEERS ?= $(or $(TMPDIR),/tmp)/privtail-peers
export PRIVTAIL_PEERS

peers: $(READY)
	@for name in diffprivlib opacus jax_privacy interpret; do \
	  echo "installing benchmarks/peers/$$name.txt in $(PRIVTAIL_PEERS)/$$name"; \
	  "$(PY)" -m venv "$(PRIVTAIL_PEERS)/$$name" && \
	  "$(PRIVTAIL_PEERS)/$$name/bin/python" -m pip install --quiet \
	    -r "benchmarks/peers/$$name.txt" || exit 1; \
	done

# uv resolves for every platform and every Python from 3.11 on; pip does all the installing.
LOCK = "$(PY)" -m uv pip compile pyproject.toml --quiet --upgrade \
  --universal --python-version 3.11 --fork-strategy fewest --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

lock: $(READY)
	@"$(PY)" -m uv --version >/dev/null 2>&1 || "$(PY)" -m pip install --quiet uv
	$(LOCK) --extra cli --extra plot --group build --output-file requirements/demo.txt
	$(LOCK) --extra all --group dev --constraint requirements/demo.txt --output-file requirements/dev.txt
	$(LOCK) --extra cli --extra plot --group docs --constraint requirements/dev.txt --output-file requirements/docs.txt
	@! grep -nE '://|--(extra-)?index|--find-links' requirements/*.txt

clean:
	rm -rf "$(VENV)" demo build dist docs/api/generated .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A Python of the right age that has venv and ensurepip, or one line that says what is missing.
$(READY):
	@if "$(PY)" -c 'import pip, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' \
	    >/dev/null 2>&1; then touch "$@"; exit 0; fi; \
	found=; bare=; seen=; \
	for name in $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11); do \
	  version=$$("$$name" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
	    || continue; \
	  case "$$version" in \
	    3.11|3.12|3.13|3.14) ;; \
	    *) seen="$${seen:+$$seen, }$$name is $$version"; continue ;; \
	  esac; \
	  if "$$name" -c 'import ensurepip, venv' >/dev/null 2>&1; then found=$$name; break; fi; \
	  bare="$${bare:-$$name (version $$version)}"; \
	done; \
	if [ -n "$$found" ]; then \
	  echo "making $(VENV) with $$found"; \
	  "$$found" -m venv --clear "$(VENV)" && touch "$@"; \
	elif [ -n "$$bare" ]; then \
	  echo "$$bare has no venv module: install it (on Debian and Ubuntu: apt install python3-venv) and run make again." >&2; exit 1; \
	else \
	  echo "privtail needs Python 3.11 to 3.14, but $${seen:-no $(or $(PYTHON),python3) was found}: install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; \
	fi

# requirements/dev.txt holds all of demo.txt in the same versions: after it there is nothing to do.
$(DEMO): requirements/demo.txt $(READY)
	@if [ ! "$(DEV)" -nt requirements/dev.txt ]; then \
	  echo "installing requirements/demo.txt (1 GB the first time)"; \
	  "$(PY)" -m pip install --quiet --require-hashes --only-binary :all: -r requirements/demo.txt; \
	fi
	@touch "$@"

$(DEV): requirements/dev.txt $(READY)
	@echo "installing requirements/dev.txt (1 GB the first time)"
	@"$(PY)" -m pip install --quiet --require-hashes --only-binary :all: -r requirements/dev.txt
	@touch "$@"

$(DOCS): requirements/docs.txt $(READY)
	@echo "installing requirements/docs.txt"
	@"$(PY)" -m pip install --quiet --require-hashes --only-binary :all: -r requirements/docs.txt
	@touch "$@"

# Every lock brings hatchling, so this step needs no network.
$(SELF): pyproject.toml $(READY) | $(if $(filter demo,$(MAKECMDGOALS)),$(DEMO),$(if $(filter docs,$(MAKECMDGOALS)),$(DOCS),$(DEV)))
	@rm -f "$(VENV)"/installed-privtail-*
	@"$(PY)" -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	@touch "$@"
