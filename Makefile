# Everything here sets itself up: a fresh clone, Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := $(VENV)/.run

export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup test lint docs unit wasm frameworks notebooks boundscheck coverage wheels dist fuzz format run bench peers clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## make .venv and install the project with its development tools

$(READY): EXTRA := dev
$(RUN): EXTRA := build,sb3
$(READY) $(RUN): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed; "$(PYTHON)" is not that. Try: make PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[$(EXTRA)]'
	@touch $@

test: lint docs unit notebooks boundscheck coverage  ## all checks, as CI runs them

lint: $(READY)  ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

unit: wasm  ## all tests, on two workers
	$(BIN)/python -m pytest -n 2

wasm: $(READY)  ## compile the rules and the players for browsers into build/wasm
	$(BIN)/python -m montecristo_agents.wasm build/wasm

# verifiers brings many packages, and OpenEnv wants older ones than all others do: each has an environment of its own.
FRAMEWORKS := .frameworks/verifiers .frameworks/openenv
.frameworks/verifiers/.ready: PINS := --constraint constraints.txt
.frameworks/%/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .frameworks/$*
	.frameworks/$*/bin/python -m pip install --quiet $(PINS) --editable '.[$*]' pytest
	@touch $@

frameworks: $(FRAMEWORKS:=/.ready)  ## the tests of verifiers and OpenEnv, each in an environment of its own
	for each in $(FRAMEWORKS); do $$each/bin/python -m pytest tests/test_text_frameworks.py -k $${each##*/} || exit 1; done

notebooks: $(READY)  ## execute the notebooks
	$(BIN)/python -m pytest -n 2 --nbmake --nbmake-timeout=900 notebooks

# Not with --quiet: it would hide warnings from --strict.
docs: wasm  ## build the documentation into site/; warnings and broken links are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

boundscheck: $(READY)  ## the engine's tests again, every array index checked
	MONTECRISTO_BOUNDSCHECK=1 $(BIN)/python -m pytest -n 2 -m engine

coverage: $(READY)  ## line coverage of the kernels, run as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m interpreted --cov=montecristo_env/core --cov-fail-under=95

TARGETS := x86_64-linux aarch64-linux x86_64-windows x86_64-macos aarch64-macos

wheels: $(READY)  ## wheels for all systems, into dist/
	rm -rf dist
	$(BIN)/python -m montecristo_env.core.build --target all --folder build/kernels
	for target in $(TARGETS); do \
		MONTECRISTO_TARGET=$$target MONTECRISTO_KERNELS=build/kernels \
			$(BIN)/python -m build --wheel --no-isolation --quiet || exit 1; \
	done

format: $(READY)  ## let ruff mend and format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# As long as FUZZ_MINUTES says; other games every time.
FUZZ_MINUTES ?= 10
fuzz: $(READY)  ## explore: random rules and games against the twin, damaged records, properties
	$(BIN)/python tests/fuzz.py --minutes $(FUZZ_MINUTES)

dist: wheels  ## wheels for all systems and the sdist, into dist/, checked as the package index does
	$(BIN)/python -m build --sdist --no-isolation --quiet
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m check_wheel_contents dist/*.whl

run: $(RUN)  ## train a small agent by self-play, measure it and show a game of it
	$(BIN)/python -m montecristo_train.demo

bench: $(READY)  ## measure the speed of the engine, the shells and the training
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/shells.py
	$(BIN)/python benchmarks/training.py

peers: $(READY)  ## measure random play here and in other projects, and write docs/benchmarks.md
	$(BIN)/python benchmarks/peers.py --json runs/peers.json --write

clean:  ## remove the environment, builds and caches
	rm -rf montecristo_env/core/kernels* $(VENV) .frameworks .peers build dist site *.egg-info agents/*.egg-info train/*.egg-info \
		.mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
