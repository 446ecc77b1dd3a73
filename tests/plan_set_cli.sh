#!/usr/bin/env bash
# polyccl compile --policy set and --timings by hand, and the folder in use. usage: plan_set_cli.sh POLYCCL SOURCE_DIR
set -u
polyccl=$1
ring=$2/algorithms/allreduce_ring.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
  echo "FAILED: $*"
  head -20 "$work/out"
  failed=1
}

# expect STATUS TEXT ARGUMENTS...: the exit status, and a text on standard output or error
expect() {
  local status=$1 text=$2
  shift 2
  "$polyccl" "$@" >"$work/out" 2>&1
  local got=$?
  [ $got -eq "$status" ] || fail "polyccl $* -> status $got, wanted $status"
  [ -z "$text" ] || grep -qF -- "$text" "$work/out" || fail "polyccl $* did not say \"$text\""
  [ "$status" -ne 2 ] || [ "$(wc -l <"$work/out")" -eq 1 ] || fail "polyccl $*: an error is one line"
}

set=(compile "$ring" -p ranks=4 --policy set --topology fully:4 --seconds 1 --size 1k:16m)
expect 0 "to any size" "${set[@]}" -o "$work/set"
plans=$(find "$work/set" -name 'allreduce_ring-in-place-*.plan' | wc -l)
[ "$plans" -ge 2 ] || fail "a set of $plans plans for 1 KiB to 16 MiB"
for plan in "$work"/set/*.plan; do
  expect 0 "" verify "$plan"
done

# The ranks of this machine run it: the small call and the large one by different plans, each said and right.
POLYCCL_DEBUG=info "$polyccl" run "$work/set" --size 1k:16m:16384 --iters 1 >"$work/table" 2>"$work/out" ||
  fail "polyccl run on the set"
grep -q 'not for this size' "$work/out" || fail "no word on why a plan was not taken"
[ "$(sed -n 's/.*: plan \([0-9]*\) "allreduce_ring".*/\1/p' "$work/out" | sort -u | wc -l)" -eq 2 ] ||
  fail "1 KiB and 16 MiB by one plan"

# A schedule of fused chains, task after task, moves real data right, with more micro-batches than FIFO slots.
expect 0 "" compile "$ring" -p ranks=8 --policy state --schedule best --max-tb 6 --topology dgx-a100:1 --size 256m \
  --seconds 1 -o "$work/chains"
if ! grep -q '^order task-major' "$work/chains" || ! grep -q ' rrcs ' "$work/chains"; then
  fail "no fused chains in task-major order"
fi
expect 0 "Out of bounds values : 0 OK" run "$work/chains" --size 64k:64m:1024 --iters 1

# A smaller set takes the place of a larger one; other files stay.
cp "$work/set/allreduce_ring-in-place-0.plan" "$work/set/allreduce_ring-in-place-17.plan"
cp "$work/set/allreduce_ring-in-place-0.plan" "$work/set/other-in-place-17.plan"
expect 0 "" "${set[@]}" -o "$work/set"
[ ! -e "$work/set/allreduce_ring-in-place-17.plan" ] || fail "an old plan of the set was left"
[ -e "$work/set/other-in-place-17.plan" ] || fail "a file of another name is gone"
expect 0 "allreduce_ring-out-of-place-0.plan" "${set[@]}" --out-of-place -o "$work/set"

expect 2 "policy set needs a folder" "${set[@]}"
expect 2 "policy state needs a topology" compile "$ring" --policy set -o "$work/none"
[ ! -e "$work/none" ] || fail "a folder without plans was left"
expect 2 "a range of sizes (--size MIN:MAX) needs --policy set" compile "$ring" --policy state --topology fully:8 --size 1k:2k
expect 2 "cannot make the folder" "${set[@]}" -o "$work/no/where"
expect 2 "--instances expects" compile "$ring" --instances -1
expect 0 "chunks 24" compile "$ring" --instances 3
expect 0 "peak" compile "$ring" --timings -o "$work/plan"

[ $failed -eq 0 ] && echo "all right"
exit $failed
