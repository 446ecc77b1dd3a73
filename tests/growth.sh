#!/usr/bin/env bash
# usage: growth.sh POLYCCL SOURCE [SANITIZED]   large plans of each family of bench/growth: what is said of them, and
# that no command needs work or memory out of proportion. The bounds (60 s of CPU time, 1 GB) are far from what plans of
# this size need, and farther from what work that grows with their square would take.
set -euo pipefail
polyccl=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ulimit -t 60
if [ -z "${3:-}" ]; then
  ulimit -v 1000000 # sanitizers reserve far more
fi

# says STATUS TEXT COMMAND...
says() {
  local status=0
  "${@:3}" >"$folder/said" 2>&1 || status=$?
  if [ "$status" != "$1" ] || ! grep -qF -- "$2" "$folder/said"; then
    echo "$family: expected status $1 and \"$2\", got status $status:"
    head -c 1000 "$folder/said"
    exit 1
  fi
}

for family in $(python3 "$source/bench/growth/plans.py" --list); do
  python3 "$source/bench/growth/plans.py" "$family" 60000 >"$folder/plan"
  ranks=$(grep -m 1 ^ranks "$folder/plan" | cut -d ' ' -f 2)
  case $family in
    wrong_ring_of_waits) says 2 'deadlock (with any FIFO depth)' "$polyccl" verify "$folder/plan" ;;
    wrong_ring_of_credits) says 2 'deadlock with FIFO depth 1 (it needs at least 2)' "$polyccl" verify "$folder/plan" ;;
    *) says 0 "plan: right" "$polyccl" verify "$folder/plan" ;;
  esac
  if [[ $family != wrong_* && $ranks -le 1000 ]]; then
    says 0 "topology             fully:$ranks" "$polyccl" simulate "$folder/plan" --topology "fully:$ranks" --size 1M
  fi
done

# What a small file can ask for has a limit that is said at once.
family=limits
python3 "$source/bench/growth/plans.py" messages_of_a_connection 100 >"$folder/plan"
says 2 'more than can be simulated' "$polyccl" simulate "$folder/plan" --topology fully:2 --size 1M \
  --micro-batches 1000000000
sed 's/^chunks .*/chunks 1000000/; s/x1 /x1000000 /; s/recv s0/recv i0/; /^copy/d' "$folder/plan" >"$folder/touches"
says 2 "the steps touch more than 134217728 chunks in all, the verifier's limit" "$polyccl" verify "$folder/touches"
{
  printf 'polyccl-plan 1\nname "x"\ncollective broadcast\nranks 500\nchunks 1000000\n'
  for rank in $(seq 0 499); do echo "rank $rank scratch 1048576"; done
} >"$folder/cells"
says 2 '500 ranks with 2000000 chunks of input and output each' "$polyccl" verify "$folder/cells"
sed 's/^inplace yes/inplace yes\ndepth 1000000/; s/x1 to 1.0 get/x1 to 1.0/' "$folder/plan" >"$folder/deep"
says 0 'FIFO depth 1000000' "$polyccl" simulate "$folder/deep" --topology fully:2 --size 1M
