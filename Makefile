# make demo   patch a real CUTLASS, prove the gain on bare sm_121 and on sm_120a, in about two minutes
# make test   everything that CI runs
# make check  lint, types and the fast tests, for the edit loop
# make arm64  images and programs for GB10's kind of host, in emulation unless the machine is one (root)
# make docs   the documentation as a searchable site, in build/site
# make lock   the versions and hashes that both install, anew from pyproject.toml (needs uv)
# Both need python >= 3.11, g++, git and make; the CUDA compiler comes from the package index into .venv.

PYTHON ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3,$(if $(shell $(p) -c 'import sys, venv, ensurepip; print(int(sys.version_info >= (3, 11)))' 2>/dev/null | grep 1),$(p))))
VENV := .venv
BIN := $(VENV)/bin
CUTLASS ?= 4.2.1
VARIANT ?= next3
# Two of the targets of next3; `make demo ARCH=` verifies all of them.
ARCH ?= sm_120a,sm_121

# Beside fp4patch's own caches: in a fresh clone mypy reads only what differs.
export MYPY_CACHE_DIR ?= $(or $(FP4PATCH_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fp4patch)/mypy

# The tests start hundreds of Python processes: what one compiles, the others read, whatever the caller prefers.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: compiler demo test arm64 check style lint docs lock clean

$(VENV)/.ready: pyproject.toml requirements.txt Makefile
	@test -n "$(PYTHON)" || { echo "make: no python >= 3.11 with venv here; install one (Debian: apt install python3 python3-venv), or say make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --require-hashes --only-binary :all: --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

demo: | compiler $(VENV)/.ready
	rm -rf demo && mkdir demo
	$(BIN)/fp4patch fetch --archive cutlass==$(CUTLASS) demo/cutlass
	$(BIN)/fp4patch apply --variant $(VARIANT) demo/cutlass
	$(BIN)/fp4patch verify $(if $(ARCH),--arch $(ARCH)) --execute --report demo/report.html --json demo/report.json demo/cutlass

compiler:
	@command -v "$${NVCC_CCBIN:-g++}" >/dev/null || { echo "make: there is no g++, which nvcc needs; install it (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), or set NVCC_CCBIN" >&2; exit 1; }

style: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

lint: style
	$(BIN)/mypy

# A file's tests go to one worker, which makes their fixtures once; those that take longest come first (tests/conftest.py).
# Three workers for two cores: some wait for containers, packages and the disk.
PYTEST := $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

test: style
	$(BIN)/mypy & types=$$!; $(PYTEST); tests=$$?; wait $$types && exit $$tests

arm64: $(VENV)/.ready
	tests/engine/emulation.sh
	FP4PATCH_REQUIRE_ENGINE=1 FP4PATCH_TEST_MACHINE=arm64 $(BIN)/pytest \
	  tests/sass/test_arm64.py tests/proof/test_sweep_arm64.py tests/images/test_cross.py tests/images/test_dockerfile_builds.py

check: lint
	$(PYTEST) --fast

docs: $(VENV)/.ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --only-binary :all: --no-annotate \
	--custom-compile-command 'make lock'

lock:
	@command -v uv >/dev/null || { echo "make: this takes uv; install it (pipx install uv)" >&2; exit 1; }
	$(LOCK) pyproject.toml --extra cuda --group dev --output-file requirements.txt
	$(LOCK) --group audit --output-file requirements-audit.txt

clean:
	rm -rf demo $(VENV) build dist
