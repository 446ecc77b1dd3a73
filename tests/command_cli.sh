#!/usr/bin/env bash
# What all subcommands share: help, a full disk, closed descriptors, a reader that closes its pipe. usage: command_cli.sh POLYCCL
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
  if [ "$got" != "$status" ] || { [ -n "$text" ] && ! grep -qF -- "$text" "$folder/err"; }; then
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

commands=$("$polyccl" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 10 ] || wrong "polyccl help lists the commands" "$commands"
for name in $commands; do
  expect 0 "usage: polyccl $name" "$polyccl" "$name" --help
  expect 0 "usage: polyccl $name" "$polyccl" "$name" -h
  expect 0 "usage: polyccl $name" "$polyccl" help "$name"
  grep -qx ".It Xr polyccl-$name 1" docs/man/polyccl.1 || wrong "docs/man/polyccl.1 has $name" nothing
  expect 2 "polyccl $name: " "$polyccl" "$name" --no-such-option
  cannot_write "$name" --help
done

# Every option is in the subcommand's help and in its manual page, and the manual page has no other.
while read -r name option kind; do
  expect 0 "  $option" "$polyccl" help "$name"
  case $option in
    --*) item=".It Fl Fl ${option#--}" ;;
    *) item=".It Fl ${option#-}" ;;
  esac
  grep -q "^$item\( \|\$\)" "docs/man/polyccl-$name.1" || wrong "docs/man/polyccl-$name.1 has $option" "no line $item"
done < <("$polyccl" help --options)
documented=$(cat docs/man/polyccl-*.1 | grep '^\.It Fl ' | grep -vc 'Fl h , Fl Fl help')
options=$("$polyccl" help --options | wc -l)
[ "$documented" = "$options" ] || wrong "the manual pages have the $options options of polyccl help --options" "$documented"
expect 2 'unknown command "walk"' "$polyccl" walk
expect 2 'unknown command "walk"' "$polyccl" help walk
expect 2 'unknown command "runn" (is it run?)' "$polyccl" runn
expect 2 'unknown command "verfiy" (is it verify?)' "$polyccl" help verfiy
expect 2 'unexpected argument "--sise" (is it --size?)' "$polyccl" simulate $ring --sise 3
expect 2 'unexpected argument "--itres=3" (is it --iters?)' "$polyccl" run "$plan" --itres=3
expect 2 'unexpected argument "--walk" (see polyccl run --help)' "$polyccl" run "$plan" --walk
expect 2 'help: unexpected argument "now"' "$polyccl" help run now
expect 2 'unexpected argument "now"' "$polyccl" --version now
expect 0 'run --iters number' "$polyccl" help --options
expect 0 'usage: polyccl run' "$polyccl" run "$plan" --size 8 --help

# Values: missing, forgotten, too many, given twice (the last counts); what follows -- is no option.
expect 2 '--size expects a size from 0 to 1073741824g' "$polyccl" run "$plan" --size
expect 2 '--trace expects a file, but nothing follows it' "$polyccl" run "$plan" --trace --iters 2
expect 2 '-o expects a file, but nothing follows it' "$polyccl" compile $ring -o
expect 2 '-o expects a file, not ""' "$polyccl" compile $ring -o ''
expect 2 '--threads takes no value, not "1"' "$polyccl" run "$plan" --threads=1
expect 2 '--iters expects a number of calls from 1 to 1073741824, not "0"' "$polyccl" run "$plan" --iters 2 --iters 0
expect 0 '#wrong' "$polyccl" run --iters 5 --iters=1 --size 64m --size 8 -- "$plan"
expect 2 '--size: cannot read: No such file or directory' "$polyccl" run -- --size
expect 2 'unexpected argument "two.plan"' "$polyccl" run -- "$plan" two.plan
expect 2 'usage: polyccl COMMAND' "$polyccl"

# Sizes: 0 everywhere, each count once, what is too much.
for size in 0 0B 0k; do
  [ $size = 0B ] && expected=2 || expected=0
  expect $expected '' "$polyccl" run "$plan" --size $size --iters 1
  expect $expected '' "$polyccl" simulate "$plan" --topology ring:2 --size $size
  expect $expected '' "$polyccl" compare "$plan" --topology ring:2 --size $size --svg "$folder/chart.svg"
  expect $expected '' "$polyccl" view "$plan" --topology ring:2 --size $size -o "$folder/page"
  expect $expected '' "$polyccl" export "$plan" --chakra "$folder/trace" --size $size
  expect $expected '' "$polyccl" run "$plan" --count $size --iters 1
done
for unit in k K kb KB kib KiB; do
  expect 0 '        2048          512' "$polyccl" run "$plan" --size 2$unit --iters 1
  expect 0 '        8192         2048' "$polyccl" run "$plan" --count 2$unit --iters 1
  expect 0 '          2048' "$polyccl" compare "$plan" --topology ring:2 --size 2$unit
done
rows=$("$polyccl" run "$plan" --size 1:64:2 --iters 1 --threads | grep -c ' f32 ')
[ "$rows" = 5 ] || wrong "--size 1:64:2 has counts 1, 2, 4, 8 and 16" "$rows rows"
expect 2 '--count: a call of 1152921504606846976 elements of f32 per block on 2 ranks needs more than 16 EiB of memory' "$polyccl" run "$plan" --count 1073741824g
expect 2 'needs 2 PiB of memory' "$polyccl" run "$plan" --size 1k:4194304g:1024
expect 2 'needs 4.002 MiB of memory, 1 MiB is the limit (ulimit -m)' bash -c "ulimit -m 1024; '$polyccl' run '$plan' --size 2m"

# The checker on custom collectives: counts that chunks do not divide, more addends than a type has integers.
custom() { printf 'polyccl-plan 1\nname "custom"\ncollective custom\n'; }
{
  custom
  printf 'ranks 2\nchunks 4\n'
  for k in 0 1 2 3; do echo "post 1 $k = 0.$k"; done
  printf 'rank 0 scratch 0\ntb\nsend i0 x4 to 1.0\nrank 1 scratch 0\ntb\nrecv o0 x4 from 0.0\n'
} >"$folder/uneven.plan"
{
  custom
  printf 'ranks 1\nchunks 300\ninplace yes\npost 0 0 ='
  printf ' 0.%s' {0..299}
  printf '\nrank 0 scratch 0\ntb\n'
  printf 'reduce i%s o0 x1\n' {1..299}
} >"$folder/many.plan"
for count in 0 1 2 3 5 4099; do
  for type in f32 f16 u8; do
    expect 0 'Out of bounds values : 0 OK' "$polyccl" run "$folder/uneven.plan" --count $count --dtype $type --iters 1 --threads
  done
done
for type in f32 f64 i32 i64 u8 f16 bf16 u32 u64 i8 bool f8e4m3 f8e5m2; do
  for op in sum prod min max; do
    expect 0 'Out of bounds values : 0 OK' "$polyccl" run "$folder/many.plan" --count 2100 --dtype $type --op $op --iters 1 --threads
  done
done
expect 2 'avg is not defined for bool' "$polyccl" run "$folder/uneven.plan" --count 3 --dtype bool --op avg --threads
expect 2 'avg is not defined for custom collectives' "$polyccl" run "$folder/many.plan" --count 300 --op avg --threads
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

# A log that cannot be written is reported when there is something to log; nothing else changes.
POLYCCL_DEBUG=loud expect 0 'POLYCCL_DEBUG=loud is not a level (none, version, warn, info, trace)' "$polyccl" run "$plan" --size 8 --iters 2
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
