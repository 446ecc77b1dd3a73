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

# What a plan is not asked.
fails "is a plan, it has no parameters" "$polyccl" compile "$plan" -p ranks=3

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

# Schedules are programs everywhere.
for file in "$source"/tests/synth/*.json "$source"/tests/synth/*.xml; do
  "$polyccl" check "$file" >/dev/null
  "$polyccl" compile "$file" -o "$folder/one.plan"
  "$polyccl" verify "$folder/one.plan" >/dev/null
done
"$polyccl" run "$source/tests/synth/trees_two_nodes.xml" -p collective=allreduce --size 1k --threads >/dev/null
