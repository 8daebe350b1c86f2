# Everything runs in .venv, which `make setup` builds from requirements/. `make` alone lists what there is.
# PYTHON=… chooses the interpreter, ARGS=… is handed on: make test ARGS="-k claim"

.DEFAULT_GOAL := help
SHELL := /bin/sh
BIN := .venv/bin
ARGS ?=
# Four where there are two processors: tests wait for servers and deadlines much of their time.
JOBS ?= 4
# Files stay whole and in order: the long ones, which are the first, leave no processor idle at the end.
SPREAD := --dist loadfile --no-loadscope-reorder
CHECKED := src tests tools benchmarks examples docs/conf.py

export PYTHON
# Where it is set, as in many images of containers, each process of the tests would compile Headrace anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup runtime demo bench pictures prefect growth test test-all faults simulate check lint types layers sql lua words docs reference site links fix requirements clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## build .venv with everything for development
	@sh tools/setup.sh dev

runtime: ## build .venv with what the demo and the command line need
	@sh tools/setup.sh runtime

demo: runtime ## run the main job on the embedded default and say where its result is
	@$(BIN)/headrace demo $(ARGS)

bench: ## measure Headrace beside the raw SQL and other job systems (ARGS="--quick"), in .venv-bench
	@sh tools/setup.sh bench
	@.venv-bench/bin/headrace bench $(ARGS)

pictures: setup ## take the pictures of docs/pictures of a running dashboard (needs Chromium)
	@$(BIN)/python -m tools.make_pictures

prefect: ## build .venv-prefect: Headrace beside a Prefect server, for the tests of its integration
	@sh tools/setup.sh prefect

growth: setup ## measure what a million jobs and steady work cost (ARGS=claims, ARGS="soak 600 500")
	@$(BIN)/python benchmarks/growth.py $(or $(ARGS),latency)

test: setup ## run the tests, with a part of the campaigns (ARGS="-k claim")
	@$(BIN)/python -m pytest -q -n $(JOBS) $(SPREAD) -m "not slow" $(ARGS)

test-all: setup ## run every test, the campaigns at full size
	@$(BIN)/python -m pytest -q -n $(JOBS) $(SPREAD) $(ARGS)
	@$(BIN)/python -m headrace.testing.simulation --seeds 20000 --jobs $(JOBS)
	@$(BIN)/python -m headrace.testing.simulation --world pauses --seeds 20000 --jobs $(JOBS)

faults: setup ## run the tests that kill, freeze and cut off real processes
	@$(BIN)/python -m pytest -q -n $(JOBS) $(SPREAD) -m faults -rP --show-capture=stdout $(ARGS)

simulate: setup ## run the engine in SEEDS=2000 simulated worlds, or SEED=n alone with its trace
	@$(BIN)/python -m headrace.testing.simulation $(if $(SEED),--seed $(SEED) --trace,--seeds $(or $(SEEDS),2000) --jobs $(JOBS)) $(ARGS)

check: lint types layers sql lua words docs ## lint, types, layers, SQL, Lua, words and links: what CI asks (-k shows all)

lint: setup
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)

types: setup
	$(BIN)/mypy
	$(BIN)/mypy -p tools

layers: setup
	$(BIN)/lint-imports --no-cache --no-logo

sql: setup
	$(BIN)/python tools/check_sql.py

lua: setup
	$(BIN)/python tools/check_lua.py

words: setup
	$(BIN)/python tools/check_words.py

docs: setup
	$(BIN)/python tools/check_docs.py
	$(BIN)/python -m tools.make_reference --check
	$(BIN)/python tools/make_figures.py --check

reference: setup ## write the generated pages of docs/reference and the figures of the README anew
	$(BIN)/python -m tools.make_reference
	$(BIN)/python tools/make_figures.py

site: ## build the documents as a site, build/site, in .venv-site; a warning is an error
	@sh tools/setup.sh site
	@rm -rf build/site build/site-cache
	@.venv-site/bin/sphinx-build -q -n -W --keep-going -j auto -c docs -d build/site-cache . build/site
	@echo "build/site/index.html"

links: site ## check the links, anchors and sources of the built site (ARGS=--external lists what leads elsewhere)
	@.venv-site/bin/python -m tools.site.check build/site $(ARGS)

fix: setup ## format and repair what can be repaired
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

# Versions already pinned stay; UPGRADE=1 takes the newest, UPGRADE=name only that package.
PIN := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements" \
	$(if $(UPGRADE),$(if $(filter 1,$(UPGRADE)),--upgrade,--upgrade-package $(UPGRADE)))

# All but litellm: it is 200 MB, and only its own test needs it, in an environment of its own.
EXTRAS := celery flows kafka memory otel papers ray redis report s3 service testing

# What the image of deploy/Dockerfile has: all but the farms, which have images of their own, and tests.
CONTAINED := flows kafka memory otel papers redis report s3 service

requirements: setup ## pin requirements/ anew from pyproject.toml (UPGRADE=1, UPGRADE=name)
	cd requirements && ../$(PIN) bootstrap.in --output-file bootstrap.txt
	cd requirements && ../$(PIN) --no-deps local-model.in --output-file local-model.txt
	$(PIN) pyproject.toml --extra papers --group build --output-file requirements/runtime.txt
	$(PIN) pyproject.toml $(EXTRAS:%=--extra %) --group dev --constraints requirements/runtime.txt \
		--output-file requirements/dev.txt
	$(PIN) pyproject.toml $(CONTAINED:%=--extra %) --group build --constraints requirements/dev.txt \
		--output-file requirements/container.txt
	$(PIN) pyproject.toml --extra litellm --constraints requirements/runtime.txt \
		--output-file requirements/litellm.txt
	$(PIN) pyproject.toml requirements/bench.in --group build --constraints requirements/runtime.txt \
		--output-file requirements/bench.txt
	$(PIN) pyproject.toml requirements/prefect.in --group build --constraints requirements/runtime.txt \
		--output-file requirements/prefect.txt
	cd requirements && ../$(PIN) site.in --output-file site.txt
	$(subst 3.11,3.12,$(PIN)) requirements/bench-oban.in --constraints requirements/bench.txt \
		--output-file requirements/bench-oban.txt

clean: ## remove .venv and everything the tools left
	rm -rf .venv .venv-bench .venv-prefect .venv-site build dist demo-out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
