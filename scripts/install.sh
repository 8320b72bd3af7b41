#!/bin/sh
# Builds the extension and installs the package into the virtual environment.
set -eu
venv=${1:-.venv}
cd "$(dirname "$0")/.."
echo "building and installing kernwright into $venv"
exec "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
  --force-reinstall .
