# Everything here sets itself up: a fresh clone, Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup test lint docs unit openenv notebooks boundscheck coverage format run bench peers clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv and install the project with its development tools

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed; "$(PYTHON)" is not that. Try: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

test: lint docs unit openenv notebooks boundscheck coverage  ## all checks, as CI runs them

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

unit: $(READY)  ## all tests, on two workers
	$(BIN)/python -m pytest -n 2

# OpenEnv wants older packages than the other tests do, so it has an environment of its own.
.openenv/.ready: pyproject.toml
	$(PYTHON) -m venv .openenv
	.openenv/bin/python -m pip install --quiet --editable '.[openenv]' pytest
	@touch $@

openenv: .openenv/.ready  ## the tests of the OpenEnv server, in an environment of its own (700 MB)
	.openenv/bin/python -m pytest tests/test_text_frameworks.py -k openenv

notebooks: $(READY)  ## execute the notebooks
	$(BIN)/python -m pytest -n 2 --nbmake notebooks

# Not with --quiet: it would hide warnings from --strict.
docs: $(READY)  ## build the documentation into site/; warnings and broken links are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

boundscheck: $(READY)  ## the engine's tests again, every array index checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 -m engine

coverage: $(READY)  ## line coverage of the kernels, run as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m interpreted --cov=montecristo_env.core --cov-fail-under=95

format: $(READY)  ## let ruff mend and format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

run: $(READY)  ## train a small agent by self-play, measure it and show a game of it
	$(BIN)/python -m montecristo_train.demo

bench: $(READY)  ## measure the speed of the engine, the shells and the training
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/shells.py
	$(BIN)/python benchmarks/training.py

peers: $(READY)  ## measure random play here and in other projects, and write docs/benchmarks.md
	$(BIN)/python benchmarks/peers.py --json runs/peers.json --write

clean:  ## remove the environment, builds and caches
	rm -rf $(VENV) .openenv .peers build dist site *.egg-info agents/*.egg-info train/*.egg-info \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
