#!/usr/bin/env bash
# usage: bounds_cli.sh POLYCCL
# A bound that the arguments or the program's declaration pass is an error before any work is done: the body of these
# programs fails when it is run, so an error that names the bound shows that it was not. What the operations pass is an
# error at the line that does.
set -euo pipefail
polyccl=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# refused NAME WANTED COMMAND...: exit status 2 and WANTED in the one line on standard error.
refused() {
  local name=$1 wanted=$2 status=0 output
  shift 2
  output=$("$polyccl" "$@" 2>&1 >"$folder/stdout") || status=$?
  if [ $status != 2 ] || [[ $output != *"$wanted"* ]] || [ "$(wc -l <<<"$output")" != 1 ]; then
    printf 'FAILED %s: status %s\n  said   %s\n  wanted %s\n' "$name" $status "$output" "$wanted"
    failed=1
  fi
}

body='error("the body was run")'
cat >"$folder/sum.lua" <<END
allreduce { ranks = param("ranks", 4), chunks = param("chunks", 1), instances = param("instances", 1), inplace = true }
$body
END
cat >"$folder/gather.lua" <<END
gather { ranks = 4 }
$body
END
sum=$folder/sum.lua

refused run-ranks "sum.lua:1: 2000 ranks are more than one machine runs (1024)" run "$sum" -p ranks=2000
refused xml-ranks "takes at most 1024" compile "$sum" -p ranks=1025 --format xml
refused xml-collective "has no gather" compile "$folder/gather.lua" --format xml
refused xml-chunks "40000 chunks in a buffer" compile "$sum" -p chunks=40000 --format xml
refused xml-instances "40000 chunks in a buffer" compile "$sum" -p chunks=100 --instances 400 --format azure
refused xml-order "task-major" compile "$sum" --policy state --topology switch:4 --format xml
refused state-ranks "5 ranks are wanted, but the topology" compile "$sum" -p ranks=5 --policy state --topology switch:4
refused set-ranks "5 ranks are wanted, but the topology" \
  compile "$sum" -p ranks=5 --policy set --topology switch:4 -o "$folder/set"
refused simulate-ranks "5 ranks are wanted, but the topology" simulate "$sum" -p ranks=5 --topology switch:4 --size 1m
refused compare-ranks "5 ranks are wanted, but the topology" compare "$sum" -p ranks=5 --topology switch:4 --size 1m
refused view-ranks "5 ranks are wanted, but the topology" view "$sum" -p ranks=5 --topology switch:4
refused view-rank "ranks 0 to 3, not 4" view "$sum" --svg --rank 4
refused cells "sum.lua:1: " check "$sum" -p ranks=65536 -p chunks=1048576
refused cells-told "the buffers of 64 ranks have 67108864 chunks in all" check "$sum" -p ranks=64 -p chunks=1048576

# The same of a plan, before it is verified: this one is no AllReduce, and the bound is named all the same.
cat >"$folder/two.lua" <<END
allreduce { ranks = 2, inplace = true }
chunk(0, input, 0):reduce(chunk(1, input, 0)):copy(1)
END
"$polyccl" compile "$folder/two.lua" | sed 's/^ *rrc .*//; s/^ *recv .*//' >"$folder/two.plan"
refused plan-ranks "2 ranks are wanted, but the topology" simulate "$folder/two.plan" --topology switch:1 --size 1m

# What operations pass.
operations() { # NAME TEXT
  printf '%s\n' "$2" >"$folder/$1.lua"
}
any='post = function() return nil end'
operations moves "custom { ranks = 2, chunks = 1, inplace = true, instances = 1024, $any }
for i = 0, 9999 do chunk(i % 2, input, 0):copy(1 - i % 2) end"
refused moves "moves.lua:2: 8193 operations become 8389632 with their 1024 instances" check "$folder/moves.lua"
operations moved "custom { ranks = 2, chunks = 1 << 20, inplace = true, $any }
for i = 0, 99 do chunk(i % 2, input, 0, 1 << 20):copy(1 - i % 2) end"
refused moved "moved.lua:2: 65 operations move 68157440 chunks" check "$folder/moved.lua"
operations scratch "custom { ranks = 40, chunks = 1, inplace = true, $any }
for i = 0, 39 do chunk(0, input, 0):copy(i, scratch('far'), (1 << 20) - 1) end"
refused scratch "scratch.lua:2: rank 32 far[1048575]: scratch would have 34603008 chunks" check "$folder/scratch.lua"
operations names "custom { ranks = 65536, chunks = 1, inplace = true, $any }
for i = 0, 999 do scratch('s' .. i) chunk(0, input, 0):copy(1, scratch('s' .. i)) end"
refused names '257 buffers on 65536 ranks are too many' check "$folder/names.lua"

# A lack of memory says for what, how much, and what in the program made it so.
operations large "custom { ranks = 32, chunks = 1 << 20, inplace = true, $any }
chunk(0, input, 0):copy(1)"
if [ -z "${POLYCCL_TEST_SANITIZED:-}" ]; then
  status=0
  output=$(ulimit -v 300000 && "$polyccl" compile "$folder/large.lua" 2>&1 >/dev/null) || status=$?
  if [ $status = 0 ] || [[ $output != *"out of memory for "*" MiB ("*" times "*" bytes)"* ]]; then
    printf 'FAILED memory: status %s\n  said   %s\n' "$status" "$output"
    failed=1
  fi
fi

# Steps times micro-batches.
refused executions "more than can be simulated" \
  simulate "$folder/two.lua" --topology switch:2 --size 1m --micro-batches 2000000000
exit $failed
