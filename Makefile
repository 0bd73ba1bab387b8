# Every target sets itself up: a fresh machine needs git, make and Python only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed: the extra that the demo needs, or everything.
PLOT := $(VENV)/.plot
READY := $(VENV)/.ready
# Beside it, the lowest versions that pyproject.toml allows.
LOWEST := .venv-lowest
LOWEST_READY := $(LOWEST)/.ready
# Other Pythons, which pyproject.toml names as well.
PYTHONS := 3.12 3.13
OTHERS := $(PYTHONS:%=test-python-%)
# Tests that need none of the extras: what an installed wheel has to pass.
CORE := $(addprefix tests/test_,$(addsuffix .py,calibration contrasts covariance datasets \
	dirichlet_process discrete_prior estimator_checks evaluation factors linear_rule \
	modelfile_fuzz moments npmle paper prior_contract samples selection shrinkage \
	shrunken_centroids theory units variance))
INSTALL := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-fast test-versions $(OTHERS) lint browser docs dist test-r bench bench-accuracy clean help

help:
	@echo "make demo   compare rules on the embedded leukemia data, list genes, draw and report"
	@echo "make test   lint, type check and all tests with coverage"
	@echo "make test-fast  the tests that take no longer than a second, while editing"
	@echo "make test-versions  the same tests with the lowest versions that are allowed"
	@echo "make test-python-3.13  the same tests with another Python: $(PYTHONS)"
	@echo "make lint   ruff and strict mypy only"
	@echo "make browser  install Chromium (Debian), for the tests of the report"
	@echo "make docs   build the documentation, running its examples"
	@echo "make dist   sdist and wheel, and the core tests against the installed wheel"
	@echo "make test-r  the R package r/ebda with R (Debian), which it installs"
	@echo "make bench  speed and accuracy, as ratios to peers in the same run"
	@echo "make bench-accuracy  errors on real and simulated data against peers (hours)"

$(BIN)/python:
	@echo "Setting up $(VENV) (once)..."
	@$(PYTHON) -m venv $(VENV)

$(PLOT): pyproject.toml | $(BIN)/python
	@$(BIN)/python $(INSTALL) --editable ".[plot,lasso]"
	@touch $@

$(READY): pyproject.toml | $(BIN)/python
	@$(BIN)/python $(INSTALL) --editable ".[dev]"
	@touch $(PLOT) $@

$(LOWEST_READY): pyproject.toml tools/lowest_versions.py
	@echo "Setting up $(LOWEST) (once)..."
	@$(PYTHON) -m venv $(LOWEST)
	@$(LOWEST)/bin/python $(INSTALL) --editable ".[all,test]" \
		$$($(PYTHON) tools/lowest_versions.py all test)
	@touch $@

.venv-%/.ready: pyproject.toml
	@echo "Setting up .venv-$* (once)..."
	@python$* -m venv .venv-$*
	@.venv-$*/bin/python $(INSTALL) --editable ".[all,test]"
	@touch $@

demo: $(PLOT)
	@$(BIN)/ebda demo

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: lint
	@$(BIN)/pytest --numprocesses auto --cov --cov-report=term

test-fast: $(READY)
	@$(BIN)/pytest --numprocesses auto -m "not slow"

# The doctests in src show numbers as NumPy 2 does.
test-versions: $(LOWEST_READY)
	@$(LOWEST)/bin/pytest --numprocesses auto -m "not slow" tests

$(OTHERS): test-python-%: .venv-%/.ready
	@.venv-$*/bin/pytest --numprocesses auto -m "not slow" tests

browser:
	@tools/install-chromium

docs: $(READY)
	@rm -rf docs/api/generated
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

dist: $(READY)
	@tools/make-dist $(BIN)/python $(CORE)

# R and reticulate are Debian's, which need NumPy 1: the environment of the lowest
# versions has it.
test-r: $(LOWEST_READY)
	@tools/test-r $(abspath $(LOWEST)/bin/python)

bench: $(READY)
	@$(BIN)/python benchmarks/speed.py
	@$(BIN)/python benchmarks/study1.py
	@$(BIN)/python benchmarks/fit_time.py

bench-accuracy: $(READY)
	@$(BIN)/python benchmarks/no_signal.py
	@$(BIN)/python benchmarks/planning.py
	@$(BIN)/python benchmarks/accuracy.py

clean:
	rm -rf $(VENV) $(VENV)-* .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/api/generated
