#!/usr/bin/env bash
# fuzz.sh [TIME]: runs every fuzz target of the module for TIME (default 10s) each. go test takes one target a call.
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-10s}
go=${GO:-go}
status=0
while read -r dir; do
  for target in $(grep -ho '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort -u); do
    echo "fuzz $dir $target for $time"
    "$go" test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" || status=1
  done
done < <(grep -rl '^func Fuzz' --include='*_test.go' . | xargs -r -n 1 dirname | sort -u)
exit $status
