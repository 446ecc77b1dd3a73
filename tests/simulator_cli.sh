#!/usr/bin/env bash
# polyccl simulate by hand: what it says to good and to bad input. usage: simulator_cli.sh POLYCCL SOURCE_DIR
set -u
polyccl=$1
ring=$2/algorithms/allreduce_ring.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# expect STATUS TEXT ARGUMENTS...: the exit status, and a text on standard output or error
expect() {
  local status=$1 text=$2
  shift 2
  "$polyccl" "$@" >"$work/out" 2>&1
  local got=$?
  if [ $got -ne "$status" ] || { [ -n "$text" ] && ! grep -qF -- "$text" "$work/out"; }; then
    echo "FAILED: polyccl $* -> status $got, wanted $status and \"$text\"; it said:"
    head -5 "$work/out"
    failed=1
  fi
  if [ "$status" -eq 2 ] && [ "$(wc -l <"$work/out")" -ne 1 ]; then
    echo "FAILED: polyccl $*: an error is one line"
    failed=1
  fi
}

machine=(--topology dgx-a100:1)
expect 0 "bus bandwidth" simulate "$ring" -p ranks=8 "${machine[@]}" --size 1m
expect 0 "allreduce_ring.lua:" simulate "$ring" "${machine[@]}" --size 1m
expect 0 "task-major" simulate "$2/algorithms/alltoall.lua" "${machine[@]}" --size 1m --order task-major
expect 2 "deadlock in task-major order" simulate "$ring" "${machine[@]}" --size 1m --order task-major
expect 0 "LL, batch-major, 7 micro-batches, FIFO depth 3" simulate "$ring" "${machine[@]}" --size 1m --protocol LL --micro-batches 7 --depth 3
expect 0 "       4194304" simulate "$ring" "${machine[@]}" --size 1m:4m:2
expect 2 "a program or a plan is missing" simulate
expect 2 "--topology is missing" simulate "$ring" --size 1
expect 2 "--size is missing" simulate "$ring" "${machine[@]}"
expect 2 "--size expects" simulate "$ring" "${machine[@]}" --size 5:1
expect 2 "--size expects" simulate "$ring" "${machine[@]}" --size 1x
expect 2 "--micro-batches expects" simulate "$ring" "${machine[@]}" --size 1 --micro-batches 0
expect 2 "the topology \"dgx-a100:1\" has 8" simulate "$ring" -p ranks=9 "${machine[@]}" --size 1
expect 2 "unexpected argument" simulate "$ring" "${machine[@]}" --size 1 --fast
expect 2 "waits for a free slot" simulate "$ring" "${machine[@]}" --size 1m --depth 1
expect 2 "cannot write" simulate "$ring" "${machine[@]}" --size 1 --timeline "$work/none/x"

expect 0 "time" simulate "$ring" "${machine[@]}" --size 1m --timeline "$work/a"
expect 0 "time" simulate "$ring" "${machine[@]}" --size 1m --timeline "$work/b"
cmp -s "$work/a" "$work/b" || { echo "FAILED: two timelines of one plan differ"; failed=1; }
grep -q "wait data" "$work/a" || { echo "FAILED: nobody in the timeline waits for data"; failed=1; }

ring_traces=(export "$ring" -p ranks=2 --size 1k)
if "$polyccl" "${ring_traces[@]}" --chakra "$work/t" 2>&1 | grep -q "built without libprotobuf-c"; then
  expect 2 "built without libprotobuf-c" "${ring_traces[@]}" --chakra "$work/t"
else
  expect 0 "" "${ring_traces[@]}" --chakra "$work/t"
  [ -s "$work/t.0.et" ] && [ -s "$work/t.1.et" ] || { echo "FAILED: no traces"; failed=1; }
  expect 2 "cannot write" "${ring_traces[@]}" --chakra "$work/none/t"
fi
expect 2 "--chakra is missing" "${ring_traces[@]}"
expect 2 "--size is missing" export "$ring" --chakra "$work/t"

compared=("$ring" "$2/algorithms/allreduce_allpairs.lua" -p instances=2 --size 64k:1m:4 "${machine[@]}")
expect 0 "allreduce_allpairs instances=2 LL128" compare -p ranks=8 "${compared[@]}" --protocol Simple,LL128 --svg "$work/a.svg"
[ "$(grep -c '^ ' "$work/out")" -eq 3 ] || { echo "FAILED: three sizes are three lines"; failed=1; }
expect 0 "time, us" compare "${compared[@]}" --protocol Simple,LL128 --time --svg "$work/b.svg"
cp "$work/out" "$work/once"
expect 0 "" compare "${compared[@]}" --protocol Simple,LL128 --time --svg "$work/b.svg"
cmp -s "$work/out" "$work/once" || { echo "FAILED: two comparisons differ"; failed=1; }
grep -q "allreduce_ring LL128, 1 MiB: [0-9.]* GB/s" "$work/a.svg" || { echo "FAILED: no tooltip in the chart"; failed=1; }
expect 0 "state" compare "$ring" "${machine[@]}" --size 1m --policy connection,state
expect 2 "a program or a plan is missing" compare
expect 2 "none.lua: cannot read" compare "$ring" none.lua "${machine[@]}" --size 1m
expect 2 "--protocol expects" compare "$ring" "${machine[@]}" --size 1m --protocol LL,XX
expect 2 "more than 64 curves" compare "$ring" "$ring" "$ring" "${machine[@]}" --size 1 --protocol Simple,LL,LL128 --instances 1,2,3,4,5,6,7,8
expect 2 "deadlock" compare "$ring" "${machine[@]}" --size 1m --order task-major
exit $failed
