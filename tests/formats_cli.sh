#!/usr/bin/env bash
# usage: formats_cli.sh POLYCCL SOURCE   plans and synthesisers' files through the command, as a user gives them
set -euo pipefail
polyccl=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# fails MESSAGE COMMAND...: exit status 2, one line with MESSAGE in it, nothing on standard output
fails() {
  local message=$1 status=0
  shift
  "$@" >"$folder/out" 2>"$folder/err" || status=$?
  if [ "$status" != 2 ] || [ "$(wc -l <"$folder/err")" != 1 ] || ! grep -qF -- "$message" "$folder/err" ||
      [ -s "$folder/out" ]; then
    echo "expected status 2 and \"$message\", got status $status:"
    cat "$folder/err" "$folder/out"
    exit 1
  fi
}

# A plan keeps its text on the way through both dialects and back, places aside.
plan=$folder/ring.plan
"$polyccl" compile "$source/algorithms/allreduce_ring.lua" -p ranks=3 -o "$plan"
for format in xml azure; do
  "$polyccl" compile "$plan" --format $format -o "$folder/ring.$format"
  "$polyccl" compile "$folder/ring.$format" -o "$folder/back.plan"
  diff <(sed 's/ at [0-9:]*$//; s/ put\b//; s/ get\b//; /^file/d' "$plan") \
       <(sed 's/ at [0-9:]*$//; /^file/d' "$folder/back.plan")
done
"$polyccl" run "$folder/ring.xml" --size 3k --threads >/dev/null

# A plan that needs three slots and cannot say so: every subcommand knows it.
deep=$source/tests/xml/depth_3.xml
"$polyccl" verify "$deep" >"$folder/report"
grep -q 'no deadlock from FIFO depth 3 on' "$folder/report"
grep -q 'slots of the targets with Simple: xml 2 (too few), azure 2 (too few)' "$folder/report"
"$polyccl" simulate "$deep" --topology fully:2 --size 1M >"$folder/report"
grep -q 'FIFO depth 3' "$folder/report"
"$polyccl" compare "$deep" --topology fully:2 --size 1M:2M >/dev/null
"$polyccl" view "$deep" --topology fully:2 --size 1M -o "$folder/deep.html"
"$polyccl" run "$deep" --size 1k --threads >/dev/null
for target in xml azure; do
  fails "is right, but not for the target $target: the plan needs a FIFO depth of 3" \
    "$polyccl" verify --target $target "$deep"
  fails "the plan needs a FIFO depth of 3" "$polyccl" compile --format $target "$deep"
  "$polyccl" verify "$folder/ring.xml" --target $target >"$folder/report"
  grep -q "fits the target $target: yes" "$folder/report"
done
fails "--target expects xml, azure or rccl, not \"nccl\"" "$polyccl" verify --target nccl "$deep"
fails "--target expects xml, azure or rccl, not \"plan\"" "$polyccl" verify --target plan "$deep"

# Sums in XML: each reduction waits for what it adds, though all add into one chunk.
"$polyccl" compile "$source/algorithms/allreduce_oneshot.lua" -p ranks=4 --format xml -o "$folder/oneshot.xml"
[ "$(grep 'type="re"' "$folder/oneshot.xml" | grep -o 'depid="[0-9]*"' | sort -u | wc -l)" -gt 1 ]
"$polyccl" run "$folder/oneshot.xml" --count 1031 --iters 20 >/dev/null

# Hierarchical AllReduce of 8 nodes of 16 fits what takes XML, written by the library's routines and by hand.
"$polyccl" compile "$source/algorithms/allreduce_hierarchical.lua" -p nodes=8 -p gpus=16 --format xml -o "$folder/8x16.xml"
cat >"$folder/flat.lua" <<'END'
local nodes, gpus = 8, 16
allreduce { ranks = nodes * gpus, chunks = gpus, inplace = true }
for g = 0, gpus - 1 do
  for n = 0, nodes - 1 do -- in each node every GPU brings its chunk g to GPU g
    local sum = chunk(n * gpus + g, input, g)
    for k = 1, gpus - 1 do sum = sum:reduce(chunk(n * gpus + (g + k) % gpus, input, g)) end
  end
  local sum = chunk(g, input, g)
  for n = 1, nodes - 1 do sum = chunk(n * gpus + g, input, g):reduce(sum) end
  for n = 0, nodes - 2 do sum = sum:copy(n * gpus + g) end
  for n = 0, nodes - 1 do
    for k = 1, gpus - 1 do chunk(n * gpus + g, input, g):copy(n * gpus + (g + k) % gpus) end
  end
end
END
"$polyccl" compile "$folder/flat.lua" --format xml -o "$folder/flat.xml"
for file in 8x16 flat; do
  channels=$(grep -o 'nchannels="[0-9]*"' "$folder/$file.xml" | grep -o '[0-9]*')
  [ "$channels" -le 32 ]
done

# For RCCL without fused steps; it takes 64 thread blocks.
"$polyccl" compile "$plan" --format rccl -o "$folder/ring.rccl"
[ -z "$(grep -E 'type="(rcs|rrc|rrs|rrcs|nop)"' "$folder/ring.rccl")" ]
"$polyccl" run "$folder/ring.rccl" --size 3k --threads >/dev/null
fails "66 thread blocks; RCCL takes at most 64: compile with fewer instances" \
  "$polyccl" compile "$source/algorithms/alltoall.lua" -p ranks=34 --format rccl

# What an executor does not ask is said, on standard error, when the plan has been written.
says() {
  local message=$1
  shift
  "$@" >/dev/null 2>"$folder/said"
  grep -qF -- "polyccl compile: warning: $message" "$folder/said" || { echo "\"$message\" is not said"; exit 1; }
}
says "RCCL uses a plan for calls with any root, and this one is right for root 2 alone" \
  "$polyccl" compile "$source/algorithms/broadcast_tree.lua" -p ranks=4 -p root=2 --format rccl
says "the plan has 1 rank" "$polyccl" compile "$source/algorithms/allreduce_ring.lua" -p ranks=1 --format xml
says "maxBytes is 6291456" "$polyccl" compile "$source/algorithms/allreduce_hierarchical.lua" -p nodes=2 -p gpus=3 --format xml
[ -z "$("$polyccl" compile "$plan" --format azure 2>&1 >/dev/null)" ]

# Plans come through pipes.
"$polyccl" compile "$plan" --format xml | "$polyccl" run /dev/stdin --size 3k --threads >/dev/null
"$polyccl" compile "$plan" | "$polyccl" compile /dev/stdin --format xml | cmp - "$folder/ring.xml"

# What a plan is not asked.
fails "is a plan; it has no parameters" "$polyccl" compile "$plan" -p ranks=3

# Compiled anew, a plan goes through the policies.
"$polyccl" compile "$folder/ring.xml" --policy state --topology ring:3 -o "$folder/state.plan"
grep -q "order task-major" "$folder/state.plan"
"$polyccl" run "$folder/state.plan" --size 3k --threads >/dev/null
fails "expected" "$polyccl" compile "$source/tests/xml/bad/type.xml" --policy connection
fails "but message 0 on its connection has 2" "$polyccl" verify "$source/tests/plans/bad/counts_differ.plan"
fails "cannot read" "$polyccl" compile "$folder/nothing.plan"
: >"$folder/empty"
fails "declares no collective" "$polyccl" compile "$folder/empty"
fails "expected \"polyccl-plan 1\"" "$polyccl" verify "$folder/empty"
fails "this is a plan" "$polyccl" check "$source/tests/xml/copies.xml"
fails "this is a plan" "$polyccl" check "$source/tests/plans/bad-text/op.plan"
fails "it is a device" "$polyccl" verify /dev/zero
fails "it is a directory" "$polyccl" check "$source/tests"
fails "not a plan" "$polyccl" verify "$source/tests/synth/trees_two_nodes.xml"
fails "polyccl compile makes a plan of it" "$polyccl" verify "$source/tests/synth/sccl_allgather_ring.json"

# Schedules are programs everywhere.
for file in "$source"/tests/synth/*.json "$source"/tests/synth/*.xml; do
  "$polyccl" check "$file" >/dev/null
  "$polyccl" compile "$file" -o "$folder/one.plan"
  "$polyccl" verify "$folder/one.plan" >/dev/null
done
"$polyccl" run "$source/tests/synth/trees_two_nodes.xml" -p collective=allreduce --size 1k --threads >/dev/null
for file in "$source"/tests/synth/sccl_*.json; do
  "$polyccl" run "$file" --size 3k --threads >/dev/null 2>&1
done
