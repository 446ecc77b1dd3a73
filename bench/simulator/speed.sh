#!/usr/bin/env bash
# The simulator's speed from 8 to 1024 ranks on one core, 16 micro-batches, as a table.
# usage: speed.sh BUILD_DIR (where bench_simulator_speed was built)
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
speed=$(find "${1:-$here/build/release}" -name bench_simulator_speed -type f -perm -u+x | head -1)
[ -n "$speed" ] || { echo "bench_simulator_speed is not built" >&2; exit 2; }

run() { # MACHINE PROGRAM PARAMETERS...
  local machine=$1 program=$here/algorithms/$2.lua
  shift 2
  taskset -c 0 "$speed" "$machine" 16 "$program" "$@"
}

echo "| plan | ranks | steps | step executions | s | M/s | events | exact | simulated us | MiB before | MiB peak |"
echo "|---|---|---|---|---|---|---|---|---|---|---|"
for nodes in 1 2 4 8 16; do
  run ndv4:$nodes allreduce_ring ranks=$((8 * nodes))
done
for nodes in 2 4 8 16 32 64 128; do
  run ndv4:$nodes allreduce_hierarchical nodes=$nodes gpus=8
done
run ndv4:8,gpus=128,nics=128 allreduce_hierarchical nodes=8 gpus=128
run ndv4:8 allreduce_hierarchical nodes=8 gpus=8 instances=4
run ndv4:32 alltoall_two_step nodes=32 gpus=8
run ndv4:8 alltoall ranks=64
