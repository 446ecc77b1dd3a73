#!/usr/bin/env bash
# usage: tests/gpu/on_threads.sh BUILD: runs GPU kernels on threads (driver_on_threads.c) and checks every element. The
# interpreter kernel runs every algorithm under every protocol in both orders. Generated kernels run every algorithm in
# two of these six combinations, and three algorithms in all six; ALL=1 runs all in all. ALGORITHMS narrows the run, and
# SANITIZE compiles the kernels with a sanitizer.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
check=$build/tests/gpu_check
export POLYCCL_CUDA_DRIVER=$PWD/${build#"$PWD"/}/tests/driver_on_threads.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
threads=${THREADS:-4}
runs=0

image() { # SOURCE IMAGE
  ${CXX:-g++} -std=c++17 -O1 -Wall -Wextra -Werror ${SANITIZE:+-fsanitize=$SANITIZE -fno-sanitize-recover=all -g} -fno-strict-aliasing -ffp-contract=off \
    -include tests/gpu/on_threads.h -shared -fPIC -o "$2" -x c++ "$1"
}
one() { # what it is, then arguments of gpu_check
  timeout 120 "$check" --threads "$threads" "${@:2}" >"$work/out" 2>&1 || {
    echo "failed: $1: gpu_check --threads $threads ${*:2}"
    cat "$work/out"
    exit 1
  }
  runs=$((runs + 1))
}

"$build/polyccl" build --interpreter --target cuda -o "$work/interpreter.cu"
image "$work/interpreter.cu" "$work/interpreter.so"
combination=0
for file in ${ALGORITHMS:-algorithms/*.lua}; do
  name=$(basename "$file" .lua)
  if "$build/polyccl" check --params "$file" | grep -q '^nodes '; then
    size=(-p nodes=2 -p gpus=2)
  elif [ "$name" = sendrecv ]; then
    size=(-p ranks=2)
  else
    size=(-p ranks=3)
  fi
  for order in connection state; do
    for protocol in Simple LL LL128; do
      policy=()
      [ $order = connection ] || policy=(--policy state --topology fully:4)
      what="$name, $protocol, $order"
      "$build/polyccl" compile "$file" "${size[@]}" -p protocol=$protocol "${policy[@]}" -o "$work/plan"
      one "$what, interpreted" --counts 13,4001 --slot 4096 --calls 1 "$work/interpreter.so" "$work/plan"
      number=$((combination++ % 8))
      case $name in allreduce_ring | allreduce_hierarchical | alltoall_two_step) number=0 ;; esac
      if [ -n "${ALL:-}" ] || [ $number = 0 ] || [ $number = 5 ] ; then
        "$build/polyccl" build "$work/plan" --target cuda -o "$work/plan.cu"
        image "$work/plan.cu" "$work/plan.so"
        one "$what, generated" --counts 1,13,4001 --slot 4096 --calls 2 "$work/plan.so" "$work/plan"
      fi
    done
  done
done
echo "$runs plans on threads, every element right"
