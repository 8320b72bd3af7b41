#!/usr/bin/env bash
# The suites through the real driver: C++ unit tests, Python tests, both devices compared, and
# compute-sanitizer. Uses the Python it is given (PYTHON, else .venv, else python3) and needs no network
# when its packages are there. The CUDA toolkit is not used: NVRTC comes from its Python package.
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
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKERNWRIGHT_BUILD_TESTS=ON \
  -DKERNWRIGHT_BUILD_EXAMPLES=ON -DKERNWRIGHT_BUILD_BENCH=ON >/dev/null
cmake --build "$build" -j "$jobs"
"$python" -m pip install -q --no-build-isolation --no-deps --upgrade --target "$build/site" .
set +e

export PYTHONPATH="$PWD/$build/site${PYTHONPATH:+:$PYTHONPATH}"
export KERNWRIGHT_DEVICE=cuda
"$python" scripts/run_tests.py --build "$build" --gpu ${sanitizer:+--sanitizer "$sanitizer"}
