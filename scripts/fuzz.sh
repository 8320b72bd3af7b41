#!/bin/sh
# Runs every fuzzer for FUZZ_SECONDS (60) over its stored inputs. New inputs stay in the build
# folder, findings in its artifacts folder. Exit code 1 when there was a finding.
# Usage: fuzz.sh [build folder]
set -u
build=${1:-build/fuzz}
seconds=${FUZZ_SECONDS:-60}
cd "$(dirname "$0")/.."
mkdir -p "$build/artifacts"
failed=0
count=0
for fuzzer in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
  count=$((count + 1))
  name=${fuzzer##*/fuzz_}
  mkdir -p "$build/corpus/$name"
  log="$build/artifacts/$name.log"
  if "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$build/artifacts/$name-" "$build/corpus/$name" \
    "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    echo "$name: $(grep '^Done' "$log"), no finding"
  else
    echo "$name: FINDING, see $log" >&2
    tail -n 25 "$log" >&2
    failed=$((failed + 1))
  fi
done
[ "$count" -gt 0 ] || { echo "there are no fuzzers in $build: make fuzz" >&2; exit 1; }
echo "$((count - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
