#!/usr/bin/env bash
# usage: bench/builtin/crossover.sh BUILD [RANKS [ROUNDS]]: microseconds of the programs among which src/builtin/builtin.c
# chooses, by bytes of the larger buffer, with the quickest marked. Every round runs all candidates of a collective in
# turn, and a figure is the quickest round's median. With more ranks than cores the figures show the scheduler instead.
# SIZES: as `polyccl run --size`.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release} ranks=${2:-2} rounds=${3:-9}
polyccl=$build/polyccl
sizes=${SIZES:-256:256k:2}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

measure() { # PROGRAM PROTOCOL: lines "PROGRAM/PROTOCOL BYTES MICROSECONDS"
  "$polyccl" run "algorithms/$1.lua" -p "ranks=$ranks" --protocol "$2" --size "$sizes" --out-of-place --alloc shared \
    --check 0 --iters 1000 |
    awk -v name="$1/$2" '!/^#/ && NF > 5 { print name, $1, $6 }'
}
table() { # PROGRAM...: one row for each program and protocol
  : >"$work/lines"
  for ((round = 0; round < rounds; round++)); do
    for program in "$@"; do
      for protocol in LL128 Simple; do
        measure "$program" "$protocol" >>"$work/lines"
      done
    done
  done
  awk '{
    key = $1 SUBSEP $2
    if (!(key in best) || $3 < best[key]) best[key] = $3
    if (!($1 in row)) { row[$1] = ++rows; name[rows] = $1 }
    if (!($2 in column)) { column[$2] = ++columns; size[columns] = $2 }
  } END {
    printf "| %d ranks |", '"$ranks"'
    for (c = 1; c <= columns; c++) printf " %d |", size[c]
    printf "\n|---|"
    for (c = 1; c <= columns; c++) printf "---|"
    print ""
    for (r = 1; r <= rows; r++) {
      printf "| %s |", name[r]
      for (c = 1; c <= columns; c++) {
        quickest = 1
        for (o = 1; o <= rows; o++) if (best[name[o], size[c]] < best[name[r], size[c]]) quickest = 0
        printf quickest ? " **%.2f** |" : " %.2f |", best[name[r], size[c]]
      }
      print ""
    }
    print ""
  }' "$work/lines"
}
table allreduce_oneshot allreduce_allpairs allreduce_ring
table allgather_allpairs allgather_ring
table reduce_scatter_allpairs reduce_scatter_ring
table alltoall
table broadcast_tree broadcast_chain
table reduce_tree reduce_chain
table gather
table scatter
