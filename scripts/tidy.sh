#!/bin/sh
# Runs clang-tidy over the named files, or over those that differ from the last commit.
# Usage: scripts/tidy.sh BUILD [file...]; BUILD has compile_commands.json.
set -eu
build=$1
shift
cd "$(dirname "$0")/.."
if ! command -v clang-tidy >/dev/null 2>&1; then
  echo "clang-tidy is not installed: apt-get install clang-tidy" >&2
  exit 1
fi
[ $# -gt 0 ] || set -- $(git diff --name-only --diff-filter=d HEAD -- '*.cpp')
# Unity builds list no single source, so each file gets the flags of its module.
flags="-std=c++20 -I. -Iruntime -I$build/bindings/generated"
[ $# -eq 0 ] || exec clang-tidy --quiet "$@" -- $flags \
  $(.venv/bin/python -m pybind11 --includes 2>/dev/null || true)
