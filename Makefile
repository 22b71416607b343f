# `make run` and `make test` do all their own set-up in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test lint types clean

run: $(VENV)/.run
	$(BIN)/embark run

test: $(VENV)/.test lint types
	$(BIN)/pytest

lint: $(VENV)/.test
	$(BIN)/ruff check .

types: $(VENV)/.test
	$(BIN)/mypy

$(VENV)/.run: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[pocket]'
	touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.run
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
