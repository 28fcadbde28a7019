# make demo    see Oncue at work, on SQLite alone       make test    run all tests
# make check   lint, types and layers                   make bench   measure
# ARGS=… goes on to the command: make demo ARGS=--once, make test ARGS="-k clock -x", make bench ARGS=--json

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test check bench clean

demo: $(VENV)/.core
	@$(BIN)/oncue demo $(ARGS)

test: $(VENV)/.all
	@$(BIN)/python -m pytest -n auto $(ARGS)

check: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.all
	@$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) oncue-demo

# The stamps: an environment is made once, and again when pyproject.toml has changed. After that nothing needs a network.

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@echo "Installing Oncue into $(VENV) (once; about a minute) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable .
	@touch $@

# Dependency groups need pip 25.1.
$(VENV)/.all: pyproject.toml | $(BIN)/python
	@echo "Installing Oncue with all extras and the tools for its tests into $(VENV) (once; some minutes) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check "pip>=25.1"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[all]" --group test --group check
	@touch $@ $(VENV)/.core

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "Oncue needs Python 3.11 or newer, and there is no '$(PYTHON)' here: install one, or name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Oncue needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1): name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
		{ echo "'$(PYTHON)' cannot make environments, its module ensurepip is missing: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
