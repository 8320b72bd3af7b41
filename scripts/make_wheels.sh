#!/bin/sh
# Builds, checks and tests a manylinux wheel for every CPython from 3.10 on that this machine has.
# Usage: make_wheels.sh [folder] [interpreter...]. Without interpreters: one of each version from
# PATH and pyenv. Each gets its own environment below build/wheels. All share one build folder, so
# the library is compiled once, and the bindings for each Python.
# If a wheel fails, the others are still made, and the exit code is 1.
set -eu
cd "$(dirname "$0")/.."
out=${1:-dist}
[ $# -eq 0 ] || shift
root=build/wheels
mkdir -p "$root" "$out"

# Prints a tag such as "cp313t" for a usable interpreter, nothing for any other.
tag_of() {
  "$1" -c '
import platform, sys, sysconfig, venv
if platform.python_implementation() == "CPython" and sys.version_info >= (3, 10):
    threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    print("cp%d%d%s" % (*sys.version_info[:2], threads))' 2>/dev/null || true
}

candidates() {
  for python in "$@"; do command -v "$python" || true; done
  [ $# -eq 0 ] || return 0
  for minor in 10 11 12 13 14; do
    for threads in "" t; do command -v "python3.$minor$threads" || true; done
  done
  # Folders of pyenv, the newest patch release of each version first.
  find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path '*/bin/python3' 2>/dev/null | sort -rV
}

requirements=$(sed -n 's/^requires = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '",')
done_tags=
failed=
for python in $(candidates "$@"); do
  tag=$(tag_of "$python")
  case " $done_tags " in *" $tag "*) continue ;; esac
  [ -n "$tag" ] || continue
  done_tags="$done_tags $tag"
  echo "== $tag: $python"
  env="$root/$tag"
  if [ ! -x "$env/bin/python" ]; then "$python" -m venv "$env"; fi
  # shellcheck disable=SC2086
  if "$env/bin/python" -m pip install -q --disable-pip-version-check $requirements &&
    scripts/make_wheel.sh "$env/bin/python" "$out" "$root/objects" &&
    "$env/bin/python" scripts/test_wheel.py "$out"; then
    continue
  fi
  failed="$failed $tag"
done
if [ -z "$done_tags" ]; then
  echo "no CPython from 3.10 on was found" >&2
  exit 1
fi
if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi
echo "made and tested:$done_tags"
