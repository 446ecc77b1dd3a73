#!/usr/bin/env bash
# Compile times, verification included: wall time and peak memory of `polyccl compile`, beside the public MSCCLang
# compiler on the same machine in the same run where POLYCCL_MSCCL_TOOLS names a checkout of it.
#   LIMIT  seconds after which a compiler is stopped (default 300)
set -u
. "$(dirname "$0")/common.sh"
limit=${LIMIT:-300}

row() { printf '%-30s %10s %24s %24s\n' "$@"; }

# compare NAME "ALGORITHM ARGS" "PUBLIC SCRIPT ARGS"
compare() {
  local program rest script args theirs=- steps=-
  read -r program rest <<<"$2"
  local mine
  # shellcheck disable=SC2086
  mine=$(python3 "$root/bench/msccl/measure.py" "$limit" "$polyccl" compile "$root/algorithms/$program.lua" $rest -o "$work/plan")
  [ ! -s "$work/plan" ] || steps=$(plan_size "$work/plan" | cut -d' ' -f1)
  rm -f "$work/plan"
  if [ -n "$public" ]; then
    read -r script args <<<"$3"
    # shellcheck disable=SC2086
    theirs=$(PYTHONPATH=$public python3 "$root/bench/msccl/measure.py" "$limit" "$public_python" "$public/examples/mscclang/$script" $args)
  fi
  row "$1" "$steps" "$mine" "$theirs"
}

row "program" "steps" "PolyCCL" "public"
for n in 64 128; do
  compare "ring AllReduce, $n ranks" "allreduce_ring -p ranks=$n" "allreduce_a100_ring.py $n 1 1"
done
compare "hierarchical AllReduce 8x8" "allreduce_hierarchical -p nodes=8 -p gpus=8" "hierarchical_allreduce.py 8 8 1"
compare "hierarchical AllReduce 8x128" "allreduce_hierarchical -p nodes=128 -p gpus=8" "hierarchical_allreduce.py 8 128 1"
for n in 8 16 32; do
  compare "two-step AllToAll ${n}x8" "alltoall_two_step -p nodes=$n -p gpus=8" "alltoall_a100_two_step.py $n 8"
done
for n in 256 512 1024; do
  compare "ring AllGather, $n ranks" "allgather_ring -p ranks=$n" "allgather_ring.py $n 1 1"
done
