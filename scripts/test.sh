#!/usr/bin/env bash
# test.sh [all|unit|interop]: runs the tests and ends with the count of tests and of judges.
#
#   unit      every package but test/interop, in random order; with the race detector but for fabric, which has one thread
#   interop   test/interop, one package at a time and without the race detector: guests are slow enough
#   all       go vet here and for macOS and Windows, then both
#
# VERBENA_JUDGES says what a judge that is not to be had means, see test/interop/judge.
# A test that fails may leave files (consoles, recordings): they are under out/artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."

what=${1:-all}
go=${GO:-go}
timeout=${VERBENA_TEST_TIMEOUT:-20m}
artifacts=$PWD/out/artifacts

case $what in
  all | unit | interop) ;;
  *) echo "usage: $0 [all|unit|interop]" >&2; exit 2 ;;
esac

# What runs here must not hang on to a file of the run before.
rm -rf "$artifacts"
mkdir -p "$artifacts"

if [ "$what" != unit ]; then
  scripts/judges.sh
fi

# The race detector is C.
race=(-race)
if ! command -v "$("$go" env CC)" >/dev/null; then
  race=()
  echo "test: no C compiler, so the tests run without the race detector"
fi

commands=()
if [ "$what" != interop ]; then
  mapfile -t packages < <("$go" list ./... | grep -v '/test/interop\(/\|$\)\|/fabric\(/\|$\)')
  commands+=(-- "$go" test -json "${race[@]}" -shuffle=on -timeout "$timeout" "${packages[@]}")
  # Simulations are long and start no goroutine: a test of the house says so.
  commands+=(-- "$go" test -json -shuffle=on -timeout "$timeout" ./fabric/...)
fi
if [ "$what" != unit ]; then
  # Packages do not compete for the processors: each may boot guests.
  # On a busy machine, emulated guests take several times as long as on a free one: that is no failure.
  commands+=(-- "$go" test -json -p 1 -count=1 -timeout "${VERBENA_TEST_TIMEOUT:-60m}" -artifacts -outputdir "$artifacts" ./test/interop/...)
fi

status=0
if [ "$what" = all ]; then
  for target in "$("$go" env GOOS)/$("$go" env GOARCH)" darwin/arm64 windows/amd64; do
    CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} "$go" vet ./... || { status=1; echo "go vet failed for $target"; }
  done
fi

# Built first: a package that does not compile must not take the summary with it, and "go run" adds lines of its own.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$go" build -o "$tmp/" ./internal/testsum ./test/interop/judge/report
export VERBENA_JUDGE_LOG=$tmp/judges.log

"$tmp/testsum" "${commands[@]}" || status=1
if [ "$what" != unit ]; then
  "$tmp/report" || status=1
fi
exit $status
