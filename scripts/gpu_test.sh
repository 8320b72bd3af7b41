#!/usr/bin/env bash
# Runs the suites on the real driver while every CUDA toolkit is hidden: C++ unit tests, Python
# tests, the comparison of both devices, and compute-sanitizer's memcheck over tests with launches.
# Takes the Python from PYTHON, else .venv, else python3; with all packages installed it needs no
# network. The whole output stays in $BUILD/gpu_test.log (build/gpu).
# Options go to run_tests.py: "--part suites" and "--part sanitizer" are the two halves; "--part
# cpp", "python", "memcheck" and "tools" are the quarters.
# Ends with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-}
[ -n "$python" ] || { [ -x .venv/bin/python ] && python=.venv/bin/python || python=python3; }
build=${BUILD:-build/gpu}
jobs=$(nproc)

# Users have no toolkit. So empty folders are mounted over this machine's toolkits, only for the
# processes of this script. compute-sanitizer lies in one of them and stays usable.
toolkits=$(for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda*; do
  [ -n "$folder" ] && [ -d "$folder" ] && readlink -f "$folder"
done | sort -u)
unset CUDA_HOME CUDA_PATH
if [ -n "$toolkits" ] && [ -z "${KERNWRIGHT_TOOLKIT_HIDDEN:-}" ]; then
  for apart in "unshare --mount" "unshare --mount --map-root-user"; do
    $apart mount -t tmpfs none /mnt 2>/dev/null || continue
    export KERNWRIGHT_TOOLKIT_HIDDEN=1
    export KERNWRIGHT_SANITIZER=${KERNWRIGHT_SANITIZER:-$(command -v compute-sanitizer || true)}
    exec $apart bash scripts/gpu_test.sh "$@"
  done
  echo "NOTE: these tests see $(echo $toolkits): this user may not mount an empty folder over it"
fi
sanitizer=${KERNWRIGHT_SANITIZER:-$(command -v compute-sanitizer || true)}
if [ -n "${KERNWRIGHT_TOOLKIT_HIDDEN:-}" ]; then
  # The command in a toolkit's bin/ only starts the real program in the folder beside it.
  tool=$(dirname "$(dirname "$(readlink -f "${sanitizer:-/}")")")/compute-sanitizer
  [ -x "$tool/compute-sanitizer" ] || tool=
  kept=$PWD/$build/compute-sanitizer
  mkdir -p "$kept"
  [ -z "$tool" ] || { mount --bind "$tool" "$kept" && sanitizer=$kept/compute-sanitizer; }
  for toolkit in $toolkits; do
    mount -t tmpfs none "$toolkit" || { echo "cannot hide $toolkit"; exit 1; }
    echo "hidden: $toolkit"
  done
fi
[ -x "$sanitizer" ] || { echo "NOTE: no compute-sanitizer: memcheck is left out"; sanitizer=; }

set -e
on="KERNWRIGHT_BUILD_TESTS KERNWRIGHT_BUILD_EXAMPLES KERNWRIGHT_BUILD_BENCH KERNWRIGHT_BUILD_PYTHON"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$(command -v "$python")" $(printf -- '-D%s=ON ' $on) >/dev/null
cmake --build "$build" -j "$jobs" -- -k 0  # tell every error at once
"$python" -m pip install -q --no-build-isolation --no-deps --upgrade --target "$build/site" \
  --config-settings build-dir="$build" \
  $(printf -- '--config-settings cmake.define.%s=ON ' $on) .
set +e

export PYTHONPATH="$PWD/$build/site${PYTHONPATH:+:$PYTHONPATH}"
export KERNWRIGHT_DEVICE=cuda
{
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
  "$python" scripts/run_tests.py --build "$build" --gpu ${sanitizer:+--sanitizer "$sanitizer"} "$@"
} 2>&1 | tee "$build/gpu_test.log"
