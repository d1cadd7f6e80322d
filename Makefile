# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
INSTALL := $(UV) pip install -q --python $(BIN)/python
else
INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check
endif
LOCK_FLAGS := -q --universal --python-version 3.10 --generate-hashes --no-header --no-annotate --no-emit-index-url

.PHONY: demo test check bench lock clean

demo: $(VENV)/.installed
	$(BIN)/cockpit demo

test: $(VENV)/.installed-dev
	$(BIN)/pytest -n auto --dist worksteal

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --dist worksteal

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

# Versions and hashes come from the constraints files; the project itself is installed on top, editable.
$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(INSTALL) --require-hashes -r constraints.txt
	$(INSTALL) --no-deps -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml constraints-dev.txt
	$(INSTALL) --require-hashes -r constraints-dev.txt
	$(INSTALL) --no-deps -e .
	touch $@ $(VENV)/.installed

# Resolves anew for Python 3.10 and up, on every platform; needs uv.
lock:
	uv pip compile pyproject.toml $(LOCK_FLAGS) -o constraints.txt
	uv pip compile pyproject.toml --all-extras $(LOCK_FLAGS) -o constraints-dev.txt
