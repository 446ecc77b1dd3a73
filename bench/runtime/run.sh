#!/usr/bin/env bash
# usage: run.sh BUILD [ROUNDS]: the runtime's own figures: what a call costs, two communicators at once, first calls.
# PARTS narrows it: overhead, first. FIRST_RANKS: of the first
# calls (default "8 64 256 1024"); BENCH_FIRST: another build of bench_first_call that takes turns with BUILD's.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 rounds=${2:-5} parts=${PARTS:-overhead first}
bench=$build/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table() { awk -F'\t' -v part="$1" -f "$here/../median.awk" -f "$here/table.awk" "$work/$1"; }

measure_first() { # NAME PROGRAM RANKS CACHE: a line, also if the ranks do not get there within two minutes
  local status=0
  POLYCCL_CACHE=$4 timeout -k 5 120 "$2" "$3" >"$work/out" 2>"$work/err" || status=$?
  if [ $status = 0 ]; then
    sed "s/^/$1\t/" "$work/out" >>"$work/first"
  else
    echo "$1, $3 ranks: exit status $status (124: over 120 s): $(tail -1 "$work/err")" >&2
    printf '%s\t%d\tfailed\n' "$1" "$3" >>"$work/first"
  fi
}
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  for part in $parts; do
    case $part in
      overhead) for ranks in 1 2; do "$bench/bench_overhead" "$ranks" >>"$work/overhead"; done ;;
      first)
        for ranks in ${FIRST_RANKS:-8 64 256 1024}; do
          rm -rf "$work/cache" && mkdir "$work/cache"
          [ -z "${BENCH_FIRST:-}" ] || measure_first before "$BENCH_FIRST" "$ranks" "$work/cache"
          measure_first "empty cache" "$bench/bench_first_call" "$ranks" "$work/cache"
          measure_first "cache on disk" "$bench/bench_first_call" "$ranks" "$work/cache"
        done
        ;;
    esac
  done
done
for part in $parts; do table "$part"; done
