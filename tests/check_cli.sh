#!/usr/bin/env bash
# polyccl check as a user meets it: what it prints, and the exit status (0 right, 2 bad input). usage: check_cli.sh POLYCCL
set -uo pipefail
cd "$(dirname "$0")/.."
polyccl=$1
failed=0

# expect STATUS TEXT ARGUMENTS...: the status, and the text somewhere in what is printed.
expect() {
  local status=$1 text=$2 out
  shift 2
  out=$(timeout 20 "$polyccl" check "$@" 2>&1 </dev/null)
  local got=$?
  if [ "$got" -ne "$status" ] || [[ "$out" != *"$text"* ]]; then
    printf 'check %s\n  expected %s: %s\n  got %s: %s\n' "$*" "$status" "$text" "$got" "${out:0:400}" >&2
    failed=1
  fi
}

ring=algorithms/allreduce_ring.lua
expect 0 'steps       24 (24 between ranks)' $ring -p ranks=4
expect 0 'hops        6' $ring -pranks=4
expect 0 'identical   yes' $ring
expect 0 'channels       0            spread the chunks' $ring --params
expect 0 'ranks          3            number of ranks (default 8)' --params $ring -p ranks=3
expect 0 'usage: polyccl check PROGRAM [-p NAME=VALUE ...] [--params]' --help
expect 2 'a program is missing (see polyccl check --help)'
expect 2 'nope.lua: cannot read: No such file or directory' nope.lua
expect 2 'algorithms: cannot read: it is a directory' algorithms
expect 2 '-p expects NAME=VALUE' $ring -p
expect 2 '-p expects NAME=VALUE' $ring -p ranks
expect 2 '-p expects NAME=VALUE' $ring -p =4
expect 2 'no parameter "rank" (known: ranks, channels, instances, protocol)' $ring -p rank=4
expect 2 'parameter ranks is given twice' $ring -p ranks=4 -p ranks=5
expect 2 'allreduce_ring.lua:10: ranks = -1 is out of range (1 to 65536)' $ring -p ranks=-1
expect 2 'allreduce_ring.lua:10: unknown protocol "fast" (known: Simple, LL, LL128)' $ring -p protocol=fast
expect 2 'unexpected argument "--fast"' $ring --fast
expect 2 'unexpected argument "two.lua"' $ring two.lua
expect 2 'it is a device' /dev/null
expect 2 'it is a device' /dev/zero
expect 2 'this is compiled code (ELF), not a program' "$polyccl"
POLYCCL_LUA_INSTRUCTIONS=10k expect 2 'ran more than 10240 instructions' $ring -p ranks=64
exit $failed
