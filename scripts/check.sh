#!/usr/bin/env bash
# Every test of the project. CI runs exactly this.
set -euo pipefail
cd "$(dirname "$0")/.."
export CTEST_OUTPUT_ON_FAILURE=1
start=$(date +%s)
section() { printf '\n== %s (%ds)\n' "$1" $(($(date +%s) - start)); }

section "format and layers"
scripts/format.sh
scripts/layers.sh

section "the smallest build: library and command alone"
scripts/build.sh minimal
build/minimal/polyccl run algorithms/allreduce_ring.lua -p ranks=2 --size 4k

section "release: all tests"
scripts/build.sh check
ctest --test-dir build/check -j2 --no-label-summary

section "address and undefined-behaviour sanitizers"
scripts/build.sh asan
ctest --test-dir build/asan -j2 -LE 'slow|python|page|models' --no-label-summary

section "thread sanitizer"
scripts/build.sh tsan
ctest --test-dir build/tsan -j2 -L tsan --no-label-summary

section "every fuzzer for half a minute"
tests/fuzz/run.sh "${FUZZ_SECONDS:-30}"
section "done"
