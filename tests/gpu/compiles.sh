#!/usr/bin/env bash
# usage: tests/gpu/compiles.sh BUILD cuda|hip: checks that generated sources compile without a warning: every protocol,
# both orders, the interpreter kernel; CUDA for sm_80 and sm_90, HIP for gfx90a. Exit status 77: no compiler.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 target=$2
declare -A compiler=([cuda]=nvcc [hip]=hipcc)
export PATH=$PATH:/usr/local/cuda/bin:/opt/rocm/bin
command -v "${compiler[$target]}" >/dev/null || { echo "skipped: no ${compiler[$target]}"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() { # SOURCE
  case $target in
    cuda)
      nvcc -std=c++17 -O3 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror -gencode arch=compute_80,code=sm_80 \
        -gencode arch=compute_90,code=sm_90 -fatbin -o "$work/image" "$1"
      ;;
    hip) # device code only: the host's part needs a ROCm of the same release
      hipcc --offload-arch=gfx90a --cuda-device-only -std=c++17 -O1 -Wall -Wextra -Werror -x hip -c "$1" -o "$work/image"
      ;;
  esac 2>"$work/log" || {
    cat "$work/log"
    exit 1
  }
  # hipcc also writes that it found no device.
  if grep -n 'warning:' "$work/log"; then exit 1; fi
  [ -s "$work/image" ]
}
n=0
make_source() { # OPTIONS OF polyccl compile...
  "$build/polyccl" compile algorithms/allreduce_ring.lua -p ranks=2 "$@" -o "$work/plan"
  "$build/polyccl" build "$work/plan" --target "$target" -o "$work/$((++n)).cu"
}
make_source -p protocol=Simple
make_source -p protocol=LL --policy state --topology fully:4
[ "$target" = hip ] || make_source -p protocol=LL128
"$build/polyccl" build --interpreter --target "$target" -o "$work/$((++n)).cu"
for source in "$work"/*.cu; do
  compile "$source"
done
if [ "$target" = cuda ]; then
  cuda=$(dirname "$(command -v nvcc)")/..
  ${CC:-cc} -std=gnu17 -Wall -Wextra -Werror -Isrc -I"$cuda/include" -c tests/gpu/driver_types.c -o "$work/types.o"
fi
echo "$n sources compile without a warning"
