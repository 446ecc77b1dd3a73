#!/usr/bin/env bash
# usage: before_after.sh OLD_BENCH NEW_BENCH [RANKS [ROUNDS]]: two builds of bench_polyccl in one interleaved run, private
# and shared buffers, then a table of the medians of the rounds' medians and of old / new (above 1: the new one is
# faster). RANKS may be a list ("2 4", the default). Every round goes through the operations one by one and runs both
# builds of each, in turns the old and the new one first.
#
# OLD_BENCH may come from before.sh, or be of a time when bench_polyccl knew but one way of timing; then only calls
# back to back have both. Broadcast is out of place, as it was then. BENCH_SIZES, BENCH_OPS, BENCH_WAYS, BENCH_SECONDS
# narrow it (bench/peers/harness.h).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
old=$1 new=$2 ranks=${3:-2 4} rounds=${4:-5}
ops=${BENCH_OPS:-allreduce allgather reduce_scatter broadcast alltoall}
export BENCH_SIZES=${BENCH_SIZES:-8 1024 32768 262144 1048576 16777216 134217728}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  if [ $((round % 2)) = 1 ]; then order=(old new); else order=(new old); fi
  for count in $ranks; do
    for op in ${ops//,/ }; do
      for memory in private shared; do
        for which in "${order[@]}"; do
          BENCH_OPS=$op "${!which}" "$count" "$memory" >"$work/out"
          awk -F'\t' -v OFS='\t' -v which="$which" '{ print which, $0, (NF < 7 ? "back" : "") }' "$work/out" >>"$work/lines"
        done
      done
    done
  done
done
awk -F'\t' -f "$here/../median.awk" -f "$here/before_after.awk" "$work/lines"
