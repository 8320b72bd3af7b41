# The commands of the project. `make demo` and `make test` set up all they need.
VENV    ?= .venv
PYTHON  ?= python3
BUILD   ?= build/release
JOBS    ?= $(shell nproc)
BIN     := $(VENV)/bin
# Everything the installed package is made from: a change in any of it reinstalls.
SOURCES := $(shell find runtime jit worker tune kernels_src engine bindings cmake CMakeLists.txt pyproject.toml -type f 2>/dev/null)

.PHONY: help setup configure build install demo test lint tidy format docs bench soak gpu-test asan tsan fuzz wheel wheels wheel-test ray-serve compile-gate clean
help:
	@sed -n 's/^## //p' Makefile

## make setup     system packages (through apt where it may), .venv with the Python packages
setup:
	@scripts/setup.sh $(VENV) $(PYTHON)

configure: setup
	@cmake --preset release -DPython_EXECUTABLE=$(abspath $(BIN)/python) >$(BUILD).log 2>&1 || \
	  { cat $(BUILD).log; exit 1; }

## make build     everything in build/release: libraries, extension, examples, unit tests
build: configure
	@cmake --build $(BUILD) -j $(JOBS)

$(VENV)/.installed: $(SOURCES)
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS) --target kernwright_python kernwright_libcuda kernwright_python_worker
	@scripts/install.sh $(VENV) $(BUILD)
	@touch $@
## make install   the package into .venv, which builds the extension alone
install: setup
	@$(MAKE) --no-print-directory $(VENV)/.installed

## make demo      string kernels over a picture, compiled, launched and checked
demo: install
	@mkdir -p $(BUILD) && $(BIN)/python -m kernwright demo --output $(BUILD)/demo.png

## make test      C++ unit tests, Python tests and lints; ends with "N passed, N failed";
##                CHANGED=main: only those that the difference from main may concern
test: install build
	@$(BIN)/python scripts/run_tests.py --build $(BUILD) $(if $(CHANGED),--changed $(CHANGED))

## make lint      layers, sizes, ASCII, spelling, formatting, ruff, mypy
lint: setup
	@$(BIN)/python -m pytest -q tests/lint

## make tidy      clang-tidy over FILES, or over what differs from the last commit
tidy: configure
	@scripts/tidy.sh $(BUILD) $(FILES)

## make docs      the documentation site in build/docs/site; needs no network once it is set up
docs: install
	@$(BIN)/python scripts/site/make_site.py build/docs && echo "build/docs/site/index.html"

## make format    clang-format and ruff over the tree
format: setup
	@git ls-files '*.h' '*.cpp' | xargs $(BIN)/clang-format -i
	@$(BIN)/ruff check --fix -q . && $(BIN)/ruff format -q .

## make bench     the benchmarks that need no GPU; JSON into bench/results
bench: install
	@cmake --preset release -DKERNWRIGHT_BUILD_BENCH=ON >/dev/null && cmake --build $(BUILD) -j $(JOBS)
	@$(BIN)/python bench/run.py --build $(BUILD)

## make soak      random work on the device for SOAK_SECONDS (3600): memory and handles stay flat
soak: build
	@KERNWRIGHT_SOAK=$(or $(SOAK_SECONDS),3600) $(BUILD)/tests/stress/test_stress

## make gpu-test  the same suites on a real GPU with every toolkit hidden, and memcheck over them
gpu-test:
	@scripts/gpu_test.sh

## make asan      C++ unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
## make tsan      C++ unit tests under ThreadSanitizer
asan tsan: setup
	@cmake --preset $@ >/dev/null && cmake --build build/$@ -j $(JOBS)
	@KERNWRIGHT_DEVICE=sim ASAN_OPTIONS=protect_shadow_gap=0 \
	  LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp:print_suppressions=0 \
	  TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.supp:die_after_fork=0 \
	  ctest --test-dir build/$@ -j $(JOBS) --output-on-failure

## make wheel     a manylinux wheel in dist/
wheel: configure
	@scripts/make_wheel.sh $(BIN)/python dist $(BUILD)

## make wheels    the same for every CPython here from 3.10 on, each tested in an empty environment
wheels: setup
	@scripts/make_wheels.sh dist

## make wheel-test  builds the wheel, installs it in an empty environment, runs the README there
wheel-test: wheel
	@$(BIN)/python scripts/test_wheel.py dist

## make ray-serve  replicas of Ray Serve on simulated devices: the example, with Ray from the index
ray-serve: install
	@scripts/ray_serve.sh $(abspath $(BIN)/python) $(abspath $(BUILD))/ray_serve

## make fuzz      libFuzzer (clang) over every reader of untrusted bytes, FUZZ_SECONDS each (60)
fuzz: setup
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz.sh build/fuzz

## make compile-gate  every kernel here for every architecture, without warnings
compile-gate: install
	@$(BIN)/python scripts/compile_gate.py --jobs $(JOBS)

clean:
	rm -rf build dist $(VENV)
