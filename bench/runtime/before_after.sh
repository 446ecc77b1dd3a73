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
# which, name, operation, ranks, bytes, median, min, way
awk -F'\t' '
  function median(list, n, values, i, j, t) {
    n = split(list, values, " ")
    for (i = 2; i <= n; i++) {
      t = values[i] + 0
      for (j = i - 1; j >= 1 && values[j] + 0 > t; j--) values[j + 1] = values[j]
      values[j + 1] = t
    }
    return (values[int((n + 1) / 2)] + values[int(n / 2) + 1]) / 2
  }
  {
    row = $4 SUBSEP $8 SUBSEP $3 SUBSEP substr($2, 9) SUBSEP $5
    if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
    times[row, $1] = times[row, $1] " " $6
  }
  END {
    print "| ranks | way | operation | memory | bytes | before us | after us | before / after |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= count; i++) {
      if (!((rows[i], "old") in times) || !((rows[i], "new") in times)) continue
      split(rows[i], key, SUBSEP)
      b = median(times[rows[i], "old"]); a = median(times[rows[i], "new"])
      printf "| %d | %s | %s | %s | %d | %.2f | %.2f | %.2f |\n", key[1], key[2], key[3], key[4], key[5], b, a, b / a
      group = key[1] " ranks, " key[2] ", " key[4]
      if (!(group in cells)) groups[++named] = group
      cells[group]++; logs[group] += log(b / a); slower[group] += a > b * 1.05
    }
    print ""
    for (g = 1; g <= named; g++)
      printf "%s: geometric mean of before / after %.2f; more than 5 %% slower in %d of %d\n", groups[g],
        exp(logs[groups[g]] / cells[groups[g]]), slower[groups[g]], cells[groups[g]]
  }' "$work/lines"
