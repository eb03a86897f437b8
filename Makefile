# The front desk. `make` alone lists what it can do.
#
# Everything Python lives in .venv. The stamp files in it remember what was installed, so that a second run
# starts at once; a change of pyproject.toml makes them stale, and a change of a source the compiled core.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS   ?=
# Of the campaigns: how long they run, the seed of a run to repeat, and what is fuzzed (`campaigns.fuzz --list`).
FUZZ_SECONDS ?= 60
FUZZ_SEED    ?=
FUZZ_ONLY    ?=
SOAK_MINUTES ?= 2
SOAK_SEED    ?=
CHAOS_ROUNDS ?= 20
CHAOS_SEED   ?=
SOURCES := $(shell find src -name '*.py')

# Tests wait for processes and disks much of their time: one more worker than there are cores. The tests of a file share
# servers, so they share a worker too; tests/support/order.py says which file comes first.
# What took longest is listed at the end, since a test that waits is easily added and hardly noticed.
PYTEST := $(BIN)/python -m pytest --numprocesses $(shell expr $$(nproc) + 1) --dist loadfile --no-loadscope-reorder \
          --durations 20 --durations-min 5
# Everything runs on the compiled core where there is one; the modules that it replaces also run as plain Python.
# `GEARTRAIN_PURE=1 make test` runs everything as plain Python. One PostgreSQL is enough for them.
PURE_TESTS := tests/unit/test_docstring_examples.py tests/unit/engine tests/unit/doors tests/unit/runtime \
              tests/unit/store tests/wire tests/property tests/contract/stores
QUICK_TESTS := tests/unit tests/wire tests/property tests/contract/stores
QUICK := GEARTRAIN_PURE=1 $(PYTEST) --hypothesis-profile=quick

# The tests start hundreds of servers, and each would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve quick test compile check docs bench deb fuzz soak chaos clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  ARGS="..." adds arguments to serve, quick, test (pytest) and bench; PYTHON=python3.12 picks the interpreter of a new .venv'

serve: $(VENV)/.compiled ## run the server with its defaults; it keeps its jobs on disk
	$(BIN)/geartrain serve $(ARGS)

quick: $(VENV)/.installed-tests ## the tests that start no server, in less than a minute
	$(QUICK) $(QUICK_TESTS) $(ARGS)

# Peers are downloaded while the core is compiled and the checks run.
test: $(VENV)/.installed-tests ## install real peers, run every check and every test
	$(MAKE) --no-print-directory --jobs 3 --output-sync $(VENV)/.compiled $(VENV)/.installed-peers check
	$(PYTEST) $(ARGS)
	$(if $(ARGS),,$(QUICK) $(PURE_TESTS) -k 'not postgresql-15')

compile: $(VENV)/.compiled ## turn the core into C and compile it; without a compiler the pure version stays

check: $(VENV)/.installed-tests ## formatting, lint, types, import directions and generated pages
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/check_imports.py
	@set -ex; for page in tools/*_doc.py; do GEARTRAIN_PURE=1 $(BIN)/python $$page --check; done

docs: $(VENV)/.installed-tests ## build the documentation site into build/site; a broken link is an error
	$(BIN)/python tools/build_site.py

bench: $(VENV)/.installed-tests $(VENV)/.installed-peers $(VENV)/.compiled ## measure side by side with the real servers and queues
	$(BIN)/python tools/peers.py install-bench
	$(BIN)/python bench/run.py $(ARGS)

deb: ## build a Debian package in build/deb; GEARTRAIN_PURE=1 does not compile the core
	rm -rf build/deb
	mkdir -p build/deb/geartrain
	tar c $(addprefix --exclude=,./build ./dist ./.* *.so *.egg-info __pycache__) . | tar x -C build/deb/geartrain
	cp -r deploy/debian build/deb/geartrain/debian
	cd build/deb/geartrain && dpkg-buildpackage -us -uc $(or $(ARGS),-b)
	@ls build/deb/geartrain_*

fuzz: $(VENV)/.installed-tests $(VENV)/.compiled ## send mutated bytes to every codec and door for FUZZ_SECONDS (60)
	$(BIN)/python -m campaigns.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ_SEED:%=--seed %) $(FUZZ_ONLY)

soak: $(VENV)/.installed-tests $(VENV)/.installed-peers $(VENV)/.compiled ## load and faults for SOAK_MINUTES (2); no acknowledged job may be lost
	$(BIN)/python -m campaigns.soak --minutes $(SOAK_MINUTES) $(SOAK_SEED:%=--seed %)

chaos: $(VENV)/.installed-tests $(VENV)/.installed-peers $(VENV)/.compiled ## CHAOS_ROUNDS (20) faults of servers that share a PostgreSQL
	$(BIN)/python -m pytest tests/chaos -s --chaos-rounds $(CHAOS_ROUNDS) $(CHAOS_SEED:%=--chaos-seed %) $(ARGS)

clean: ## remove .venv, caches and build output; never a store
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist src/*.egg-info
	find src tests tools campaigns -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.so' -delete

# Debian's python3 without python3-venv cannot put pip into a new environment, but its pip can do that from outside.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV) || { \
	    rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $@ install pip; \
	}

# Installed as it is, and compiled below: that is repeated more often.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	GEARTRAIN_PURE=1 $(PIP) install --editable '.[compile]'
	@touch $@

$(VENV)/.installed-tests: pyproject.toml | $(BIN)/python
	GEARTRAIN_PURE=1 $(PIP) install --editable '.[check,compile,docs,test]'
	@touch $@ $(VENV)/.installed

# GEARTRAIN_PURE=1 leaves no stamp: the next run without it compiles.
$(VENV)/.compiled: setup.py $(SOURCES) | $(VENV)/.installed
	$(BIN)/python setup.py --quiet build_ext --inplace
	$(if $(filter-out 0 no false,$(GEARTRAIN_PURE)),,@touch $@)

# A peer that cannot be installed does not stop the tests: they name it at their end.
$(VENV)/.installed-peers: pyproject.toml tools/peers.py | $(VENV)/.installed-tests
	$(BIN)/python tools/peers.py install
	@touch $@
