#!/usr/bin/env bash
# usage: tests/gpu/run.sh [BUILD]: all tests and benchmarks that need a GPU, in under 10 minutes:
#   1. generated kernels for every algorithm and protocol on 8 ranks of one device, and the interpreter kernel for the
#      same plans in both orders: every element checked
#   2. ranks in several processes, over CUDA IPC
#   3. tables: interpreter kernel against generated kernel; thread blocks against bandwidth
# It needs nvcc and a build, or what a build needs. It writes results to stdout, and the tables also to $OUT if that is
# set. Exit status 0: all is right; 1: something is wrong; 77: no device. LIMIT: seconds for parts 1 and 2 (default 300);
# ALGORITHMS, THREADS, WIDTHS, SIZES and LARGEST narrow the run.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
export PATH=$PATH:/usr/local/cuda/bin
polyccl=$build/polyccl check=$build/tests/gpu_check
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
begin=$SECONDS
limit=${LIMIT:-300} threads=${THREADS:-256}
jobs=$(nproc)
failed=0 right=0 left=0

if [ -z "${POLYCCL_CUDA_DRIVER:-}" ] && ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && [ ! -e /dev/nvidiactl ]; then
  echo "skipped: no device"
  exit 77
fi
works() {
  "$polyccl" info >/dev/null 2>&1 || return 1
  "$check" >/dev/null 2>&1
  [ $? = 2 ] # its usage
}
if ! works; then
  scripts/build.sh release || exit 1
  build=build/release polyccl=build/release/polyccl check=build/release/tests/gpu_check
fi
"$polyccl" compile algorithms/allreduce_ring.lua -p ranks=2 -o "$work/first.plan" || exit 1
"$check" "$work/none" "$work/first.plan" >"$work/out" 2>&1
if [ $? = 77 ]; then
  cat "$work/out"
  exit 77
fi
command -v nvcc >/dev/null || { echo "skipped: no nvcc (a device is here)"; exit 77; }

capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -1 | tr -d '. ')
case $capability in
  [0-9]*) architecture=(-gencode "arch=compute_$capability,code=sm_$capability") ;;
  *) architecture=(-gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[sm_90,compute_90]') ;;
esac
export architectures="${architecture[*]}" work
image() { # NAME: $work/NAME.cu to $work/NAME.image
  nvcc -std=c++17 -O3 $architectures -fatbin -o "$work/$1.image" "$work/$1.cu" >"$work/$1.log" 2>&1 || {
    echo "nvcc failed: $1"
    cat "$work/$1.log"
  }
}
export -f image
say() { printf '\n== %s (%d s)\n' "$1" $((SECONDS - begin)); }

size_of() { # FILE: sets size to parameters for 8 ranks
  case $(basename "$1" .lua) in
    sendrecv) size=(-p ranks=2) ;;
    *) if "$polyccl" check --params "$1" | grep -q '^nodes '; then size=(-p nodes=2 -p gpus=4); else size=(-p ranks=8); fi ;;
  esac
}
one() { # WHAT, ARGUMENTS OF gpu_check...
  if [ $((SECONDS - begin)) -gt "$limit" ] || [ ! -s "${*: -2:1}" ]; then # no time, or nvcc had none
    left=$((left + 1))
    return
  fi
  if timeout 60 "$check" --threads "$threads" --timeout 20 "${@:2}" >"$work/out" 2>&1; then
    right=$((right + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1: gpu_check ${*:2}"
    head -5 "$work/out"
  fi
}

say "compiling"
"$polyccl" build --interpreter --target cuda -o "$work/interpreter.cu"
names=() plans=()
for file in ${ALGORITHMS:-algorithms/*.lua}; do
  size_of "$file"
  for protocol in Simple LL LL128; do
    for order in connection state; do
      name=$(basename "$file" .lua).$protocol.$order
      policy=()
      [ $order = connection ] || policy=(--policy state --topology fully:8)
      "$polyccl" compile "$file" "${size[@]}" -p protocol=$protocol "${policy[@]}" -o "$work/$name.plan" || failed=$((failed + 1))
      plans+=("$name")
      # Both orders for Simple; the moves of lines are the same in both.
      if [ $order = connection ] || [ $protocol = Simple ]; then
        "$polyccl" build "$work/$name.plan" --target cuda -o "$work/$name.cu" && names+=("$name")
      fi
    done
  done
done
# For the tables.
bench=()
for protocol in Simple LL LL128; do
  for instances in 1 2 4 8; do
    [ $protocol = Simple ] || [ $instances = 1 ] || continue
    name=bench.ring.$protocol.$instances
    "$polyccl" compile algorithms/allreduce_ring.lua -p ranks=8 -p protocol=$protocol -p instances=$instances -o "$work/$name.plan" &&
      "$polyccl" build "$work/$name.plan" --target cuda -o "$work/$name.cu" && bench+=("$name")
  done
done
name=bench.tasks.Simple.1
"$polyccl" compile algorithms/allreduce_ring.lua -p ranks=8 --policy state --topology fully:8 -o "$work/$name.plan" &&
  "$polyccl" build "$work/$name.plan" --target cuda -o "$work/$name.cu" && bench+=("$name")
# The images of the tables come first, the others as long as time allows.
printf '%s\n' interpreter "${bench[@]}" "${names[@]}" |
  timeout "$((limit * 2 / 3))" xargs -P "$jobs" -I{} bash -c 'image {}'

say "generated kernels, then the interpreter kernel: every element"
for name in "${names[@]}"; do
  one "generated $name" --counts 1,13,100003 --slot 16384 "$work/$name.image" "$work/$name.plan"
done
for name in "${plans[@]}"; do
  one "interpreted $name" --counts 1,100003 --slot 16384 --calls 1 "$work/interpreter.image" "$work/$name.plan"
done

say "ranks in several processes"
for name in bench.ring.Simple.1 bench.ring.LL.1 bench.ring.LL128.1; do
  for processes in 2 8; do
    limit=$((SECONDS - begin + 60)) one "$name in $processes processes" --counts 1000 --calls 1 --processes $processes \
      "$work/$name.image" "$work/$name.plan"
  done
done

header() { printf '%-12s %-28s %-7s %-11s %4s %7s %12s %12s %10s\n' kernel plan protocol order tbs threads bytes microseconds GB/s; }
line() { # KERNEL NAME, ARGUMENTS...
  local image=$work/$2.image
  [ "$1" = generated ] || image=$work/interpreter.image
  if [ $((SECONDS - begin)) -gt 560 ] || [ ! -s "$image" ]; then
    left=$((left + 1))
    return
  fi
  if timeout 30 "$check" --threads "$threads" --timeout 10 "${@:3}" "$image" "$work/$2.plan" >"$work/out" 2>&1; then
    printf '%-12s %s\n' "$1" "$(tail -1 "$work/out")"
  else
    failed=$((failed + 1))
    printf '%-12s %s: %s\n' "$1" "$2" "$(tail -1 "$work/out")"
  fi
}
tables() {
  say "interpreter kernel against generated kernel (8 ranks on one device, best of 5)"
  header
  for bytes in ${SIZES:-64 65536 1048576 67108864}; do
    for name in bench.ring.Simple.1 bench.ring.LL.1 bench.ring.LL128.1 bench.tasks.Simple.1; do
      for kernel in interpreter generated; do
        line $kernel $name --bench $bytes
      done
    done
  done
  say "thread blocks against bandwidth"
  header
  for threads in ${WIDTHS:-128 256 512}; do
    for instances in 1 2 4 8; do
      line generated bench.ring.Simple.$instances --bench ${LARGEST:-268435456} --iters 5
    done
  done
}
tables >"$work/tables"
cat "$work/tables"
[ -z "${OUT:-}" ] || cp "$work/tables" "$OUT/tables.txt"

say "result"
echo "$right checks right, $failed wrong or failed, $left not run for lack of time"
[ "$failed" = 0 ]
