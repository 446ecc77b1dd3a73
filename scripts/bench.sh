#!/usr/bin/env bash
# usage: bench.sh BUILD: the measurements of docs/results.md that need this machine for themselves, one after another.
# Open MPI and MPICH stand beside PolyCCL in one interleaved run; they come from Debian (cmake/packages-bench.txt).
# About an hour; each part can be run by itself, with the command that is printed before it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
scripts/packages.sh --require cmake/packages-bench.txt
part() {
  printf '\n## %s\n\n    %s\n\n' "$1" "${*:2}"
  "${@:2}"
}
part "Beside Open MPI and MPICH, 2 ranks" bench/peers/run.sh "$build" 2
part "Beside Open MPI, 4 ranks" bench/peers/run.sh "$build" 4
part "Calls, streams, groups, first calls" bench/runtime/run.sh "$build"
part "Compile times" bench/msccl/compile_speed.sh
part "Sizes of plans" bench/msccl/size.sh
part "Speed of the simulator" bench/simulator/speed.sh "$build"
part "Simulated and measured" bench/simulator/accuracy.sh -b "$build"
for script in bench/codegen/overhead.sh bench/resccl/offline.sh; do
  [ ! -x "$script" ] || part "$(basename "$script" .sh)" "$script" "$build"
done
