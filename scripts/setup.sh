#!/bin/sh
# Installs missing system packages through apt, where allowed, and makes a virtual environment.
# Usage: scripts/setup.sh [venv folder] [python]. Quick when nothing is missing.
set -eu
venv=${1:-.venv}
python=${2:-python3}
cd "$(dirname "$0")/.."

missing=
need() { missing="$missing $1"; }
have_header() { echo "#include <$1>" | c++ -E -x c++ - >/dev/null 2>&1; }

command -v c++ >/dev/null 2>&1 || need g++
command -v cmake >/dev/null 2>&1 || need cmake
command -v ninja >/dev/null 2>&1 || need ninja-build
command -v ccache >/dev/null 2>&1 || need ccache
if command -v c++ >/dev/null 2>&1; then
  have_header fmt/format.h || need libfmt-dev
  have_header doctest/doctest.h || have_header doctest.h || need doctest-dev
  have_header nlohmann/json.hpp || need nlohmann-json3-dev
  have_header xxhash.h || need libxxhash-dev
else
  missing="$missing libfmt-dev doctest-dev nlohmann-json3-dev libxxhash-dev"
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then need python3-venv; fi
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
[ -f "$include/Python.h" ] || need python3-dev

if [ -n "$missing" ]; then
  install="apt-get update && apt-get install -y --no-install-recommends$missing"
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "installing system packages:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
  elif command -v apt-get >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    echo "installing system packages with sudo:$missing"
    sudo -n apt-get update -qq
    # shellcheck disable=SC2086
    sudo -n apt-get install -y -qq --no-install-recommends $missing >/dev/null
  else
    echo "System packages are missing. Run this as root, then try again:" >&2
    echo "  $install" >&2
    exit 1
  fi
fi

[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
stamp="$venv/.requirements"
if ! cmp -s pyproject.toml "$stamp"; then
  echo "installing Python packages into $venv"
  "$venv/bin/python" scripts/requirements.py pyproject.toml >"$venv/requirements.txt"
  # Python compiles modules at import, and most modules of these packages are never imported.
  "$venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check \
    -r "$venv/requirements.txt"
  cp pyproject.toml "$stamp"
fi
mkdir -p build
