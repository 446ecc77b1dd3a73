#!/usr/bin/env bash
# usage: tests/gpu/host.sh BUILD: tests the GPU executor's host part with the driver on threads: ranks in several
# processes, plans that do not fit the device, missing files and devices, and a rank that does not call.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
check=$build/tests/gpu_check
export POLYCCL_CUDA_DRIVER=$PWD/${build#"$PWD"/}/tests/driver_on_threads.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$build/polyccl" compile algorithms/allreduce_ring.lua -p ranks=3 -p protocol=LL -o "$work/plan"
"$build/polyccl" compile algorithms/allreduce_ring.lua -p ranks=4 -o "$work/other"
"$build/polyccl" build "$work/plan" --target cuda -o "$work/plan.cu"
${CXX:-g++} -std=c++17 -O1 -fno-strict-aliasing -ffp-contract=off -include tests/gpu/on_threads.h -shared -fPIC \
  -o "$work/plan.so" -x c++ "$work/plan.cu"

expect() { # STATUS TEXT COMMAND...
  local status=0
  timeout 60 "${@:3}" >"$work/out" 2>&1 || status=$?
  if [ "$status" != "$1" ] || ! grep -q -- "$2" "$work/out"; then
    echo "expected status $1 and \"$2\" of: ${*:3}; status $status:"
    cat "$work/out"
    exit 1
  fi
}
run=("$check" --threads 4 --counts 1,1000)
expect 0 "every element right" "${run[@]}" "$work/plan.so" "$work/plan"
expect 0 "every element right" "${run[@]}" --processes 3 "$work/plan.so" "$work/plan"
expect 0 "every element right" "${run[@]}" --processes 2 "$work/plan.so" "$work/plan"
expect 1 "cannot hold ranks" "${run[@]}" --processes 4 "$work/plan.so" "$work/plan"
expect 1 "rank 0, thread block 0 waits at step 1 (rrs)" "${run[@]}" --processes 3 --absent --timeout 0.3 "$work/plan.so" "$work/plan"
expect 1 "made from another plan" "${run[@]}" "$work/plan.so" "$work/other"
expect 1 "must be resident at once" env ON_THREADS_MULTIPROCESSORS=2 "${run[@]}" "$work/plan.so" "$work/plan"
expect 1 "must be resident at once" "${run[@]}" --threads 2048 "$work/plan.so" "$work/plan"
expect 1 "plan.nothing" "${run[@]}" "$work/plan.nothing" "$work/plan"
expect 77 "skipped: no device" env ON_THREADS_DEVICES=0 "${run[@]}" "$work/plan.so" "$work/plan"
expect 77 "skipped: no device" "${run[@]}" --device 1 "$work/plan.so" "$work/plan"
expect 77 "skipped: no device" env POLYCCL_CUDA_DRIVER=libno-such-driver.so "${run[@]}" "$work/plan.so" "$work/plan"
expect 2 "--interpreter excludes a plan" "$build/polyccl" build --interpreter "$work/plan"
expect 2 "targets cuda and hip only" "$build/polyccl" build --interpreter --target c
echo "the host part passes"
