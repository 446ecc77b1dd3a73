#!/usr/bin/env bash
# Offline time by phase and peak memory of policy state with HPDS, 16 to 1024 ranks (8 to a node), as a markdown table on
# standard output. A measurement: run it on a quiet machine. RANKS="16 64" limits it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
polyccl=${POLYCCL:-$root/build/release/polyccl}
[ -x "$polyccl" ] || { echo "$polyccl: no such command (build it, or name it in POLYCCL)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "| program | ranks | steps | load | check | lower | schedule | allocate | wait | emit | verify | total s | peak MiB |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
row() { # LABEL RANKS PROGRAM [-p name=value ...]
  local label=$1 ranks=$2
  shift 2
  "$polyccl" compile "$@" --policy state --schedule hpds --topology "a100-roce:$((ranks / 8))" --timings \
    -o "$work/plan" 2>"$work/times"
  local steps
  steps=$(grep -c '^    ' "$work/plan")
  sed -E 's/[a-z]+ ([0-9.]+)( s| MiB)?/\1/g; s/, / | /g; s/peak //; s/^/| '"$label | $ranks | $steps"' | /; s/$/ |/' "$work/times"
}
for ranks in ${RANKS:-16 64 256 1024}; do
  row "ring AllReduce" "$ranks" "$root/algorithms/allreduce_ring.lua" -p "ranks=$ranks"
  row "ring AllGather" "$ranks" "$root/algorithms/allgather_ring.lua" -p "ranks=$ranks"
  row "hierarchical AllReduce" "$ranks" "$root/algorithms/allreduce_hierarchical.lua" -p "nodes=$((ranks / 8))" -p gpus=8
  if [ "$ranks" -le 256 ]; then
    row "all-pairs AllReduce" "$ranks" "$root/algorithms/allreduce_allpairs.lua" -p "ranks=$ranks"
  fi
done
