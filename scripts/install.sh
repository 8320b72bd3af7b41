#!/bin/sh
# Installs the package into the virtual environment; reuses the objects of the build folder.
set -eu
venv=${1:-.venv}
build=${2:-build/release}
cd "$(dirname "$0")/.."
echo "installing kernwright into $venv"
# NOTE: these long options stay, because pip 23.0 of Debian 12 does not know -C.
exec "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-build-isolation \
  --no-deps --force-reinstall \
  --config-settings build-dir="$build" \
  --config-settings cmake.define.KERNWRIGHT_BUILD_TESTS=ON \
  --config-settings cmake.define.KERNWRIGHT_BUILD_EXAMPLES=ON .
