#!/bin/sh
# Runs every fuzzer for FUZZ_SECONDS (60) over its stored inputs. New inputs stay in the build
# folder, findings in its artifacts folder. Exit code 1 when there was a finding.
# Usage: fuzz.sh [build folder] [target...]; without targets: all of them.
set -u
build=${1:-build/fuzz}
seconds=${FUZZ_SECONDS:-60}
[ $# -eq 0 ] || shift
cd "$(dirname "$0")/.."
mkdir -p "$build/artifacts" "$build/corpus"
# Frequent words of PTX, from the sources in the tests.
words="$build/corpus/ptx.dict"
cat "$build"/recorded/ptx/*.ptx | grep -oE '[.%]?[A-Za-z_][A-Za-z0-9_.:]+' | sort | uniq -c |
  sort -rn |
  awk 'NR <= 1000 && length($2) <= 40 { print "\"" $2 "\"" }' >"$words"
failed=0
count=0
for fuzzer in "$build"/tests/fuzz/fuzz_*; do
  [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
  name=${fuzzer##*/fuzz_}
  case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
  count=$((count + 1))
  case $name in
    ptx*) stored="-dict=$words tests/fuzz/corpus/ptx $build/recorded/ptx" ;;
    *) stored="tests/fuzz/corpus/$name" ;;
  esac
  mkdir -p "$build/corpus/$name"
  log="$build/artifacts/$name.log"
  # shellcheck disable=SC2086
  if "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -artifact_prefix="$build/artifacts/$name-" "$build/corpus/$name" \
    $stored >"$log" 2>&1; then
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
