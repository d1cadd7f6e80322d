# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)

.PHONY: demo test check bench lock clean

demo: $(VENV)/.installed
	$(BIN)/cockpit demo

test: $(VENV)/.installed-dev
	$(BIN)/pytest -n auto

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist

$(VENV)/bin/python:
ifdef UV
	$(UV) venv -q --python $(PYTHON) $(VENV)
else
	$(PYTHON) -m venv $(VENV)
endif

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
ifdef UV
	$(UV) pip install -q --python $(BIN)/python -c constraints.txt -e .
else
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
endif
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml constraints.txt
ifdef UV
	$(UV) pip install -q --python $(BIN)/python -c constraints.txt -e '.[dev,notify,serve]'
else
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,notify,serve]'
endif
	touch $@
