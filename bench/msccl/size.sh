#!/usr/bin/env bash
# Sizes of what the compiler makes: steps / thread blocks / channels of the programs of `algorithms/`, beside the
# public MSCCLang compiler's figures (msccl-tools 030a750). Plans state several waits on one step; in XML each beyond
# the first costs a nop, which is what the public figures count, so both forms are shown.
# With POLYCCL_MSCCL_TOOLS the public scripts themselves are compiled too, by both, in the same run.
set -u
. "$(dirname "$0")/common.sh"

row() { printf '%-34s %22s %22s %22s\n' "$@"; }

# compare NAME PUBLIC ALGORITHM [-p ...]
compare() {
  local name=$1 figures=$2 program=$3
  shift 3
  if ! ours "$program" "$@"; then
    row "$name" "$figures" "failed" "$(tail -1 "$work/log")"
    return
  fi
  local xml=-
  if "$polyccl" compile "$root/algorithms/$program.lua" "$@" --format xml -o "$work/xml" 2>"$work/log"; then
    xml=$(xml_size "$work/xml")
  fi
  row "$name" "$figures" "$(plan_size "$work/plan")" "$xml"
}

row "program" "public" "plan" "XML"
for figures in "1:120 / 64 / 8" "4:480 / 256 / 32" "8:960 / 512 / 64"; do
  instances=${figures%%:*}
  compare "ring, 8 ranks, 8 channels x $instances" "${figures#*:}" allreduce_ring -p ranks=8 -p channels=8 -p instances="$instances"
done
compare "hierarchical 8x2" "544 / 416 / 24" allreduce_hierarchical -p nodes=2 -p gpus=8
compare "hierarchical 8x8" "9088 / 2432 / 29" allreduce_hierarchical -p nodes=8 -p gpus=8
compare "hierarchical 8x16" "more than 32 channels" allreduce_hierarchical -p nodes=16 -p gpus=8
compare "two-step AllToAll 2x8" "624 / 256 / 6" alltoall_two_step -p nodes=2 -p gpus=8
compare "two-step AllToAll 8x8" "11712 / 1792 / 18" alltoall_two_step -p nodes=8 -p gpus=8
compare "two-step AllToAll 16x8" "48000 / 5632 / 18" alltoall_two_step -p nodes=16 -p gpus=8
compare "three-step AllToAll 9x8" "11448 / 2160 / 2" alltoall_three_step -p nodes=9 -p gpus=8
compare "allpairs AllReduce, 16 ranks" "11504 / 256 / 1" allreduce_allpairs -p ranks=16 -p paired=true
compare "halving-doubling, 64 ranks" "2176 / 384 / 1" allreduce_halving_doubling -p ranks=64 -p paired=true

[ -n "$public" ] || exit 0
echo
row "public script" "public" "plan" "XML"
while read -r script args; do
  path=$public/examples/mscclang/$script
  theirs=failed
  # shellcheck disable=SC2086
  if (cd "$public" && PYTHONPATH=$public timeout 300 "$public_python" "$path" $args) >"$work/public" 2>/dev/null; then
    theirs=$(xml_size "$work/public")
  fi
  mine=()
  for format in plan xml; do
    # shellcheck disable=SC2086
    if PYTHONPATH=$root/python python3 -m polyccl.msccl --format $format "$path" $args >"$work/$format" 2>"$work/log"; then
      mine+=("$(${format}_size "$work/$format")")
    else
      mine+=(failed)
    fi
  done
  row "${script%.py} $args" "$theirs" "${mine[@]}"
done <<'SCRIPTS'
allreduce_a100_ring.py 8 8 1
allreduce_a100_ring.py 8 8 4
allreduce_a100_ring.py 8 8 8
hierarchical_allreduce.py 8 2 1
hierarchical_allreduce.py 8 8 1
alltoall_a100_two_step.py 2 8
alltoall_a100_two_step.py 8 8
alltoall_a100_two_step.py 16 8
alltoall_a100_three_step.py 9 8 1
allreduce_a100_allpairs.py 16 1
allreduce_recursive_doubling_halving.py 64 1
allgather_ring.py 8 1 1
alltonext_forward.py 3 1
SCRIPTS
