#!/usr/bin/env bash
# What all subcommands share: help, a full disk, closed descriptors, a reader that leaves. usage: command_cli.sh POLYCCL
set -uo pipefail
cd "$(dirname "$0")/.."
polyccl=$1
failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export TMPDIR=$folder/tmp
mkdir "$TMPDIR"

wrong() {
  printf '%s\n  got %s: %s\n' "$1" "$2" "$(head -c 400 "$folder/err")" >&2
  failed=1
}

# expect STATUS TEXT COMMAND...: the status, and the text in what is printed.
expect() {
  local status=$1 text=$2 got
  shift 2
  timeout 60 "$@" >"$folder/err" 2>&1 </dev/null
  got=$?
  if [ "$got" != "$status" ] || ! grep -qF -- "$text" "$folder/err"; then
    wrong "$* : expected $status and \"$text\"" "$got"
  fi
}

# Whatever cannot be written is an error that says so.
cannot_write() {
  timeout 60 "$polyccl" "$@" >/dev/full 2>"$folder/err"
  local got=$?
  [ "$got" = 1 ] && grep -q 'No space left on device' "$folder/err" || wrong "$* >/dev/full" "$got"
  timeout 60 "$polyccl" "$@" >&- 2>"$folder/err"
  got=$?
  [ "$got" = 1 ] && grep -q 'Bad file descriptor' "$folder/err" || wrong "$* with standard output closed" "$got"
}

ring=algorithms/allreduce_ring.lua
plan=$folder/ring.plan
"$polyccl" compile $ring -p ranks=2 -o "$plan" || exit 1

commands="build calibrate check compare compile export info run simulate topology verify view"
for name in $commands; do
  expect 0 "usage: polyccl $name" "$polyccl" "$name" --help
  expect 0 "usage: polyccl $name" "$polyccl" "$name" -h
  expect 0 "usage: polyccl $name" "$polyccl" help "$name"
  expect 0 "polyccl $name " "$polyccl" help
  expect 2 "polyccl $name: " "$polyccl" "$name" --no-such-option
  cannot_write "$name" --help
done
expect 2 'unknown command "walk"' "$polyccl" walk
expect 2 'unknown command "walk"' "$polyccl" help walk
expect 2 'usage: polyccl COMMAND' "$polyccl"
expect 0 'polyccl ' "$polyccl" --version

cannot_write --version
cannot_write help
cannot_write info
cannot_write build "$plan"
cannot_write check $ring
cannot_write check $ring --params
cannot_write compile $ring
cannot_write compile $ring --format xml
cannot_write verify "$plan"
cannot_write run "$plan" --size 8 --iters 2
cannot_write run "$plan" --size 8 --iters 2 --threads
cannot_write simulate $ring --topology ring:8 --size 1m
cannot_write compare $ring --topology ring:8 --size 1m
cannot_write topology --list
cannot_write topology ring:4
cannot_write topology ring:4 --json
cannot_write topology ring:4 --svg
cannot_write view $ring --svg
cannot_write view $ring --topology ring:8
expect 1 'No space left on device' "$polyccl" compile $ring -o /dev/full
expect 1 'No space left on device' "$polyccl" view $ring --svg -o /dev/full

# No rank's file takes the place of a descriptor that the caller closed.
expect 0 'Out of bounds values : 0 OK' bash -c "'$polyccl' run '$plan' --size 8 --iters 2 <&- 2>&-"

# A log that cannot be had is said where there is something to log; nothing else changes.
POLYCCL_DEBUG=loud expect 0 'POLYCCL_DEBUG=loud is no level (none, version, warn, info, trace)' "$polyccl" run "$plan" --size 8 --iters 2
POLYCCL_DEBUG=info POLYCCL_DEBUG_FILE=/no/log expect 0 'cannot write /no/log: No such file' "$polyccl" run "$plan" --size 8 --iters 2

# A reader that leaves ends the run.
timeout 60 "$polyccl" run "$plan" --size 8:64m 2>"$folder/err" | head -1 >"$folder/out"
got=${PIPESTATUS[0]}
[ "$got" = 1 ] && grep -q 'standard output: cannot write: Broken pipe' "$folder/err" || wrong "run | head -1" "$got"

# Generated code leaves no file.
expect 0 'Out of bounds values : 0 OK' "$polyccl" run "$plan" --size 8 --iters 2 --generated
CC=false expect 1 'did not compile' "$polyccl" run "$plan" --size 8 --generated
CC=/no/compiler expect 2 'needs a C compiler' "$polyccl" run "$plan" --size 8 --generated
expect 2 '--collective chooses among the plans of a folder' "$polyccl" run "$plan" --collective allreduce
if [ -n "$(ls -A "$TMPDIR")" ]; then
  echo "left behind: $(ls -A "$TMPDIR")" >&2
  failed=1
fi
exit $failed
