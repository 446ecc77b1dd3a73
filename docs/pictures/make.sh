#!/usr/bin/env bash
# Draws the pictures of docs/language.md anew: docs/pictures/make.sh [path of polyccl]
set -euo pipefail
cd "$(dirname "$0")/../.."
polyccl=${1:-build/release/polyccl}
draw() {
  local name=$1
  shift
  "$polyccl" view "$@" --svg -o "docs/pictures/$name.svg"
}
draw ring_chunk algorithms/allreduce_ring.lua -p ranks=4 --chunk 0
draw ring_plan algorithms/allreduce_ring.lua -p ranks=4
draw hierarchical_chunk algorithms/allreduce_hierarchical.lua -p nodes=2 -p gpus=2 --chunk 0
