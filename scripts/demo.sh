#!/usr/bin/env bash
# usage: demo.sh BUILD: one program, all the way to moved data.
set -euo pipefail
cd "$(dirname "$0")/.."
polyccl=$1/polyccl
program=algorithms/allreduce_hierarchical.lua
parameters=(-p nodes=2 -p gpus=2)
say() { printf '\n$ %s\n' "polyccl ${*}"; }
step() { say "$@"; "$polyccl" "$@"; }

echo "PolyCCL: a hierarchical AllReduce for 4 ranks in 2 groups, from its program to moved data."
step check "$program" "${parameters[@]}"
plan=$(mktemp --suffix=.plan)
trap 'rm -f "$plan"' EXIT
say compile "$program" "${parameters[@]}" -o hierarchical.plan
"$polyccl" compile "$program" "${parameters[@]}" -o "$plan"
say verify hierarchical.plan
"$polyccl" verify "$plan"
step run "$program" "${parameters[@]}" --size 1k:64m:4

cat <<'END'

Every element was checked. Where to look next:
  algorithms/allreduce_hierarchical.lua   the program that just ran
  docs/language.md                        write your own
  docs/plan.md                            what a plan is
  polyccl help                            what else the command does (build/release/polyccl)
  make check                              all tests
END
