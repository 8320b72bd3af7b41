#!/bin/sh
# Installs the package into the virtual environment from the build folder, whose objects it reuses.
set -eu
venv=${1:-.venv}
build=${2:-build/release}
cd "$(dirname "$0")/.."
echo "installing kernwright into $venv"
exec "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-build-isolation \
  --no-deps \
  --force-reinstall -C build-dir="$build" -C cmake.define.KERNWRIGHT_BUILD_TESTS=ON \
  -C cmake.define.KERNWRIGHT_BUILD_EXAMPLES=ON .
