#!/usr/bin/env bash
# The suites through the real driver: C++ unit tests, Python tests, both devices compared, and
# compute-sanitizer. Uses the Python it is given (PYTHON, else .venv, else python3) and needs no
# network when its packages are there. NVRTC comes from its Python package; of a toolkit in
# /usr/local/cuda only headers are used that the packages lack.
# Ends with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-}
[ -n "$python" ] || { [ -x .venv/bin/python ] && python=.venv/bin/python || python=python3; }
build=${BUILD:-build/gpu}
jobs=$(nproc)
sanitizer=$(command -v compute-sanitizer || true)
unset CUDA_HOME CUDA_PATH

set -e
on="KERNWRIGHT_BUILD_TESTS KERNWRIGHT_BUILD_EXAMPLES KERNWRIGHT_BUILD_BENCH KERNWRIGHT_BUILD_PYTHON"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$(command -v "$python")" $(printf -- '-D%s=ON ' $on) >/dev/null
cmake --build "$build" -j "$jobs"
"$python" -m pip install -q --no-build-isolation --no-deps --upgrade --target "$build/site" \
  --config-settings build-dir="$build" --config-settings build.targets=kernwright_python \
  $(printf -- '--config-settings cmake.define.%s=ON ' $on) .
set +e

export PYTHONPATH="$PWD/$build/site${PYTHONPATH:+:$PYTHONPATH}"
export KERNWRIGHT_DEVICE=cuda
"$python" scripts/run_tests.py --build "$build" --gpu ${sanitizer:+--sanitizer "$sanitizer"}
