#!/usr/bin/env bash
# Draws the pictures of docs/ anew: docs/pictures/make.sh [path of polyccl [folder]]
set -euo pipefail
cd "$(dirname "$0")/../.."
polyccl=${1:-build/release/polyccl}
folder=${2:-docs/pictures}
draw() {
  local name=$1
  shift
  "$polyccl" view "$@" --svg -o "$folder/$name.svg"
}
draw ring_chunk algorithms/allreduce_ring.lua -p ranks=4 --chunk 0
draw ring_plan algorithms/allreduce_ring.lua -p ranks=4
draw ring_rank algorithms/allreduce_ring.lua -p ranks=4 --rank 1
draw hierarchical_chunk algorithms/allreduce_hierarchical.lua -p nodes=2 -p gpus=2 --chunk 0
draw hierarchical_plan algorithms/allreduce_hierarchical.lua -p nodes=2 -p gpus=2
draw hierarchical_time algorithms/allreduce_hierarchical.lua -p nodes=2 -p gpus=2 --topology fully:4 --size 2m
