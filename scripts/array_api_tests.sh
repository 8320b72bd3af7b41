#!/usr/bin/env bash
# Runs all of the array API standard's own tests (https://github.com/data-apis/array-api-tests)
# against this package: scripts/array_api_tests.sh CHECKOUT [pytest's options]. CHECKOUT needs its
# submodule. KERNWRIGHT_DEVICE chooses the device. scripts/array_api_failures.txt lists the expected
# failures with reasons; every other test must pass.
set -euo pipefail
cd "$(dirname "$0")/.."
checkout=${1:?"usage: scripts/array_api_tests.sh CHECKOUT [options of pytest]"}
shift
[ -d "$checkout/array_api_tests" ] || { echo "$checkout: no array-api-tests here"; exit 2; }
[ -d "$checkout/array-api/src" ] || { echo "$checkout lacks its submodule array-api"; exit 2; }
python=${PYTHON:-}
[ -n "$python" ] || { [ -x .venv/bin/python ] && python=$PWD/.venv/bin/python || python=python3; }
failures=$PWD/scripts/array_api_failures.txt
export ARRAY_API_TESTS_MODULE=kernwright ARRAY_API_TESTS_VERSION=2025.12
cd "$checkout"
# The file of failures has paths relative to the checkout, even if it lies inside this tree.
exec "$python" -m pytest -q array_api_tests --rootdir "$PWD" --xfails-file "$failures" \
  --max-examples "${MAX_EXAMPLES:-20}" --derandomize --disable-deadline -p no:cacheprovider "$@"
