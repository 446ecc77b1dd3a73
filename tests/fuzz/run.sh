#!/usr/bin/env bash
# usage: run.sh [SECONDS [BUILD]]   builds the fuzzers (unless BUILD is given) and runs each for SECONDS (default 30)
# on the tests' own files and whatever earlier runs found (build/fuzz/corpus). A finding stays in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-30}
build=${2:-build/fuzz}
if [ $# -lt 2 ]; then
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz --target fuzzers
fi

# First inputs of each target.
seeds() {
  case $1 in
    plan_text) ls -d tests/plans tests/plans/* tests/xml/trips 2>/dev/null ;;
    plan_xml) echo tests/xml tests/xml/bad ;;
    synth) echo tests/synth tests/synth/bad ;;
    lua) echo tests/programs algorithms ;;
    topology) echo tests/topology tests/topology/bad ;;
    command) echo tests/fuzz/commands ;;
    trace) echo tests/view/traces ;;
  esac
}

mkdir -p "$build/findings"
build=$(realpath "$build") # a target may work in a folder of its own
fuzz() { # PROGRAM
  local name log folders=()
  name=$(basename "$1")
  name=${name#fuzz_}
  mkdir -p "$build/corpus/$name"
  for folder in $(seeds "$name"); do
    [ -d "$folder" ] && folders+=("$(realpath "$folder")")
  done
  log=$build/findings/$name.log
  # -close_fd_mask=2: what programs print is not shown, what libFuzzer finds is.
  # -rss_limit_mb and -malloc_limit_mb: a reader's memory is bounded by its input.
  if ! POLYCCL_DEBUG=none "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
      -max_len=65536 -close_fd_mask=2 -artifact_prefix="$build/findings/$name-" -print_final_stats=1 \
      "$build/corpus/$name" "${folders[@]}" >"$log" 2>&1; then
    tail -40 "$log"
    echo "fuzz_$name: found something, see $build/findings" >&2
    return 1
  fi
  printf '%-12s %s executions\n' "$name" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
}

# As many at a time as there are cores.
failed=0
for program in "$build"/tests/fuzz/fuzz_*; do
  [ -x "$program" ] && [ -f "$program" ] || continue
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
    wait -n || failed=1
  done
  fuzz "$program" &
done
while [ -n "$(jobs -p)" ]; do
  wait -n || failed=1
done
exit $failed
