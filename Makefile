# Every target sets up what it needs: `make demo` and `make test` work in a fresh clone.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
INSTALLED := .venv/.installed
WORKERS ?= 2

.PHONY: env demo test tests test-browser check bench docs

env: $(INSTALLED)

# Installed again only when pyproject.toml changes; `touch` comes last, so a broken
# installation is never taken for a finished one.
$(INSTALLED): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is missing: sudo apt-get install python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "$(PYTHON) is older than 3.11: sudo apt-get install python3.11, or make PYTHON=/path/to/python"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "Python's venv module is missing: sudo apt-get install python3-venv"; exit 1; }
	@echo "Setting up .venv (a few minutes the first time) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: env
	@$(BIN)/bayesdag demo

check: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# Checked beside the tests, because types are checked on one core.
test: env
	@$(MAKE) --no-print-directory -j 2 check tests

# Bytecode is written, whatever the environment says: commands under test start in half the time.
tests: env
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS)

# The report in a real browser; pictures to look at end in build/pictures.
test-browser: env
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
	  || { echo "a browser is missing: sudo apt-get install chromium chromium-driver"; exit 1; }
	BAYESDAG_BROWSER=1 $(BIN)/python -m pytest tests/browser -p no:xdist

# The documentation as a site, in build/docs; it has an environment of its own.
docs: build/docs-env/.installed
	build/docs-env/bin/python -m sphinx -W --keep-going -b html docs build/docs

build/docs-env/.installed: pyproject.toml
	@$(PYTHON) -m venv build/docs-env
	@build/docs-env/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs,plot]'
	@touch $@

# SUITE=linear, SIZE=paper and so on; `bayesdag bench` lists the suites.
SUITE ?= speed
SIZE ?= quick
bench: env
	$(BIN)/bayesdag bench $(SUITE) --size $(SIZE) --out bench
