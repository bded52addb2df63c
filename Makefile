# One verb per target; CI calls only these. `make help` lists them.

# The first interpreter that is Python 3.11. Set PYTHON to choose another one.
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
INSTALLED := .venv/.installed
PROTOS := $(wildcard protos/outrider/v1/*.proto)

# Waiting OpenMP threads that spin take the cores that Ray, gRPC and the other engine threads need.
export OMP_WAIT_POLICY := PASSIVE

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test house lint format types imports protos protos-check buf check bench profile clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Create .venv and install everything; reuses what is there

$(INSTALLED): pyproject.toml
	@test -x $(BIN)/pip || test -n "$(PYTHON)" || \
		{ echo "Python 3.11 is needed: install it, or say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	@echo "Installing into .venv: first PyTorch, then Ray, transformers and the rest. 3.2 GB on disk; it takes"
	@echo "some minutes, of which pip is silent for one or two at a time while it unpacks, on a busy machine for up to"
	@echo "four. Later runs reuse it. The model of the demo takes another 0.5 GB in ~/.cache/outrider."
	@echo "1/2 PyTorch"
	@$(BIN)/python -m pip install --disable-pip-version-check "torch==2.13.0"
	@echo "2/2 Outrider and all that it needs"
	@$(BIN)/python -m pip install --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: setup ## Serve the embedded model locally, stream one chat answer, show its speed, stop again
	@$(BIN)/python examples/demo.py

serve: setup ## Serve cluster.yaml in the foreground until Ctrl-C
	@exec $(BIN)/outrider serve cluster.yaml

test: setup ## Run all tests
	$(BIN)/python -m pytest

house: setup ## Check the rules of the house: layout, names, docs (a part of test that takes half a minute)
	$(BIN)/python -m pytest -q tests/house

lint: setup ## Check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: setup ## Format, and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

types: setup ## Check types (mypy, strict)
	$(BIN)/mypy

imports: setup ## Check that imports follow the arrows between packages
	$(BIN)/lint-imports

protos: setup ## Generate the protobuf modules anew
	$(BIN)/python -m grpc_tools.protoc -I protos \
		--python_out=protos --pyi_out=protos --grpc_python_out=protos $(PROTOS)

protos-check: setup ## Check that the protobuf modules are what the protos generate
	$(BIN)/python -m pytest -q tests/house/test_protos.py

buf: setup ## Lint the protos
	cd protos && ../$(BIN)/buf lint

check: lint types imports buf house test ## All that CI checks

bench: setup ## Measure a running server: depth 0, ngram and all pools, at 1, 4 and 16 clients
	$(BIN)/python benchmarks/serving/closed_loop.py --url http://127.0.0.1:8000 --concurrency 1 4 16 \
		--arm 'depth 0={"speculation": {"max_depth": 0}}' --arm 'ngram={"speculation": {"pool": "ngram"}}' \
		--arm 'all pools={}'

profile: setup ## Say where the time of one engine step goes
	$(BIN)/python benchmarks/serving/profile_step.py

clean: ## Remove caches, compiled kernels and build products; keeps .venv and downloaded models
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
