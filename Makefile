SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TASK ?= peg_insert
ARGS ?=
# One more than the least of cores: tests that keep to the wall clock wait for half of their time.
JOBS ?= 3

# Small networks: more threads cost more than they bring. Cameras render without a screen.
export OMP_NUM_THREADS ?= 1
export MUJOCO_GL ?= egl

.PHONY: help
help: ## List the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 18

.PHONY: setup
setup: $(STAMP) ## Make the environment (.venv); does nothing if it is up to date

$(STAMP): pyproject.toml constraints.txt scripts/setup
	@scripts/setup
	@touch $@

.PHONY: train
train: $(STAMP) ## Teach the arm the default task (TASK=..., ARGS='--seed 1')
	@$(BIN)/robot-rl train $(TASK) $(ARGS)

.PHONY: test
test: $(STAMP) ## Run the tests (ARGS=tests/data for some)
	@$(BIN)/python -m pytest --numprocesses $(JOBS) --max-worker-restart 2 --dist loadfile $(ARGS)

.PHONY: test-fast
test-fast: $(STAMP) ## Run the tests that are not marked slow, in a few minutes
	@$(BIN)/python -m pytest -m "not slow" --numprocesses $(JOBS) --max-worker-restart 2 --dist loadfile $(ARGS)

.PHONY: check
check: $(STAMP) ## Check format, lint, types and architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/test_architecture.py

.PHONY: format
format: $(STAMP) ## Format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: docs
docs: $(STAMP) ## Build the documentation site into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

.PHONY: dist
dist: $(STAMP) ## Build wheel and sdist into dist/; scripts/check-dist tries them in clean environments
	@$(BIN)/python -m build --outdir dist .
	@rm -rf robot_rl.egg-info build/lib build/bdist.*  # tests would find entry points of that day in it

.PHONY: clean
clean: ## Remove caches and builds; the environment and runs/ stay
	rm -rf build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
