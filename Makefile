# `make run`: set up, then bring the embedded lab cluster back from a power loss.
# `make test`: set up, then lint, types, import arrows and all tests.
# `make setup-torch`: torch beside them, for the tests that need it; those skip without.
PYTHON ?= python3
TORCH ?= torch
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check

export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: run test lint bench setup setup-torch clean

# What a user needs, and what a developer needs besides.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.developed: pyproject.toml $(VENV)/.installed
	$(PIP) -e '.[dev]'
	touch $@

setup: $(VENV)/.installed

# Not in `.[dev]`: where PyPI has only the CUDA build, it is several GB.
setup-torch: $(VENV)/.developed
	$(PIP) '$(TORCH)'

run: setup
	$(BIN)/recover lab up --fresh --scenario power-loss
	$(BIN)/recover run lab --yes; status=$$?; $(BIN)/recover lab down; exit $$status

lint: $(VENV)/.developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/pytest

bench: $(VENV)/.developed
	$(BIN)/python -m tests.bench

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
