# SPDX-License-Identifier: Apache-2.0
# The commands of this repository; `make help` lists them. Set-up happens by itself: see tools/setup.sh.

.DEFAULT_GOAL := help
SHELL := /bin/bash
JOBS ?= $(shell nproc)
# The problem that `make run` solves, in the grammar of `gemmery run`.
PROBLEM ?= gemm 1024x1024x1024 a=f32 out=f32
# A build folder to take test programs from, for a machine that cannot build: make test-gpu PREBUILT=build/release
PREBUILT ?=
# Where test-gpu and soak-gpu keep the whole output of each test program.
LOGS ?=
# Where `make race-gpu` keeps its records, which sets of bench/problems/races.txt it races (all by default), and when it ends.
RACES ?= build/races
SETS ?=
BUDGET_S ?=
DEVICE ?= h200
# One part of `make soak` alone; `make soak PART=list` names them.
PART ?=

IN := tools/in_environment.sh
RELEASE := build/release
SOURCES = $(filter-out tests/data/%,$(shell git ls-files '*.hpp' '*.cpp' '*.cuh' '*.cu' '*.h'))
PYTHON = python tests/python tests/packaging bench/python_host_times.py $(wildcard tutorials)
BUILD_FOR_GPU = $(if $(PREBUILT),,build-tests)
GPU_TESTS = $(or $(PREBUILT),$(RELEASE))

.PHONY: help run test soak test-gpu soak-gpu race-gpu race-list bench-scaled bench coverage format lint site wheel sizes clean setup build-tests

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

run: setup ## build and run one GEMM: find, compile, run, verify, time
	@$(IN) tools/build.sh release gemmery_cli
	@$(IN) $(RELEASE)/gemmery run $(PROBLEM)

test: build-tests ## build and run every test that this machine can run
	@$(IN) python3 tools/run_tests.py $(RELEASE) --jobs $(JOBS)

soak: setup ## the long tests: full counts, fuzzers, sanitizers; resumable; PART=list names the parts
	@$(IN) python3 tools/run_soak.py --jobs $(JOBS) $(PART)

test-gpu: $(BUILD_FOR_GPU) ## the tests that need a GPU, on every GPU here; PREBUILT=build/release builds nothing
	@$(IN) python3 tools/run_tests.py $(GPU_TESTS) --label gpu --each-gpu $(if $(LOGS),--logs $(LOGS))

soak-gpu: $(BUILD_FOR_GPU) ## their long form; PREBUILT as above
	@GEMMERY_SOAK=1 GEMMERY_TEST_TIME_LIMIT=14400 $(IN) python3 tools/run_tests.py $(GPU_TESTS) --label gpu --each-gpu $(if $(LOGS),--logs $(LOGS))

race-gpu: $(if $(PREBUILT),,setup) ## first kernels against the vendor's library on this GPU: RACES=FOLDER SETS="types layouts" BUDGET_S=500; PREBUILT as above
	@$(if $(PREBUILT),,$(IN) tools/build.sh release gemm_peers)
	@$(IN) python3 tools/run_races.py $(GPU_TESTS) --out $(RACES) $(foreach name,$(SETS),--set $(name)) $(if $(BUDGET_S),--budget-s $(BUDGET_S))

race-list: $(if $(PREBUILT),,setup) ## what race-gpu would race, with first kernels and predicted times for DEVICE (h200); needs no GPU
	@$(if $(PREBUILT),,$(IN) tools/build.sh release gemmery_cli)
	@$(IN) python3 tools/run_races.py $(GPU_TESTS) $(foreach name,$(SETS),--set $(name)) --dry-run $(DEVICE)

bench-scaled: $(if $(PREBUILT),,setup) ## problems with scales, codes and quantised results on this GPU, timed alone; PREBUILT as above
	@$(if $(PREBUILT),,$(IN) tools/build.sh release gemmery_cli)
	@grep -v '^#' bench/problems/scaled.txt | xargs -d '\n' $(GPU_TESTS)/gemmery bench --device 0 --top 1 --provider templates --json

bench: setup ## build and run the benchmarks
	@$(IN) tools/build.sh release bench/all
	@for program in $(RELEASE)/bench/bin/*; do echo "== $$program"; $(IN) "$$program" || exit 1; done

coverage: setup ## which branches of the cache and its keys the tests take; needs clang++ with llvm-cov
	@$(IN) tools/build.sh release gemmery_static
	@$(IN) python3 tools/report_coverage.py --jobs $(JOBS)

format: ## format the C++ and CUDA sources
	@clang-format -i $(SOURCES)

lint: ## layers, formatting, types, spelling
	@python3 tools/check_layers.py
	@if command -v clang-format >/dev/null; then clang-format --dry-run -Werror $(SOURCES); else echo "lint: no clang-format here"; fi
	@if command -v ruff >/dev/null; then ruff check $(PYTHON) && ruff format --check $(PYTHON); else echo "lint: no ruff here (pip install .[dev])"; fi
	@if command -v mypy >/dev/null; then mypy; else echo "lint: no mypy here (pip install .[dev])"; fi
	@if command -v codespell >/dev/null; then codespell $$(git ls-files); else echo "lint: no codespell here"; fi

site: ## the documentation as a site, with a reference of C++ and Python: build/site/html/index.html
	@$(IN) python3 tools/make_site.py

wheel: ## the wheel of the Python package for this Python, built into build/wheel and tried in an empty environment
	@$(IN) python3 tools/make_wheel.py

sizes: ## lines per room and the longest files and functions
	@python3 tools/report_sizes.py

clean: ## remove what was built (not .deps/ and .venv/)
	@rm -rf build

setup:
	@tools/setup.sh

build-tests: setup
	@$(IN) tools/build.sh release all all_verify_interface_header_sets
