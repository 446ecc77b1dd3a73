#!/usr/bin/env bash
# usage: tests/generated.sh BUILD [OPTIONS OF polyccl run...]: every algorithm as generated code, under every protocol,
# interpreted order and task-major, on counts that do and do not divide; polyccl run checks every element.
set -euo pipefail
cd "$(dirname "$0")/.."
polyccl=$1/polyccl
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=0
one() { # PLAN COUNT DTYPE OP
  "$polyccl" run "$1" --generated="$work/code.so" --count "$2" --dtype "$3" --op "$4" --iters 2 --warmup 1 "${@:5}" >"$work/out" 2>&1 || {
    echo "failed: polyccl run $*, generated"
    cat "$work/out"
    exit 1
  }
  runs=$((runs + 1))
}
types=(f32 i64 bf16 u8 f64 f16 i32 u32 f8e4m3 u64 i8 f8e5m2 bool)
for file in ${ALGORITHMS:-algorithms/*.lua}; do
  name=$(basename "$file" .lua)
  if "$polyccl" check --params "$file" | grep -q '^nodes '; then
    size=(-p nodes=2 -p gpus=2)
  elif [ "$name" = sendrecv ]; then
    size=(-p ranks=2)
  else
    size=(-p ranks=3)
  fi
  for protocol in Simple LL LL128; do
    "$polyccl" compile "$file" "${size[@]}" -p protocol=$protocol -o "$work/$name.plan"
    "$polyccl" compile "$file" "${size[@]}" -p protocol=$protocol --policy state --topology fully:4 -o "$work/$name.tasks.plan"
    for plan in "$work/$name.plan" "$work/$name.tasks.plan"; do
      "$polyccl" build "$plan" -o "$work/code.c"
      ${CC:-cc} -std=gnu17 -O1 -Wall -Wextra -Werror ${SANITIZE:+-fsanitize=$SANITIZE} -shared -fPIC -o "$work/code.so" "$work/code.c"
      # A custom collective takes whole chunks only.
      if grep -q '^collective custom' "$plan"; then counts=(8 40000) ops=(sum); else counts=(1 13 40001) ops=(sum max avg prod min); fi
      for count in "${counts[@]}"; do
        type=${types[runs % ${#types[@]}]} op=${ops[runs % ${#ops[@]}]}
        if [ "$type $op" = "bool avg" ]; then op=min; fi
        one "$plan" "$count" "$type" "$op" "$@"
      done
    done
  done
done
echo "$runs runs of generated code, every element right"
