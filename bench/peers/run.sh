#!/usr/bin/env bash
# usage: run.sh BUILD [RANKS [ROUNDS]]: PolyCCL (private and shared buffers) and Open MPI in turns, then a table of the
# median of the rounds' medians. BENCH_OPS, BENCH_SIZES, BENCH_SECONDS narrow it (harness.h).
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 ranks=${2:-2} rounds=${3:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mpicc -O3 -o "$work/bench_mpi" bench/peers/bench_mpi.c bench/peers/harness.c
# Open MPI yields only when it knows that ranks outnumber cores.
echo "localhost slots=$(nproc)" >"$work/hosts"
mpi() {
  truncate -s 0 "$work/board" && truncate -s 1M "$work/board"
  mpirun --allow-run-as-root --oversubscribe --hostfile "$work/hosts" -np "$ranks" "$work/bench_mpi" "$work/board"
}
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  mpi >>"$work/lines"
  "$build/bench/bench_polyccl" "$ranks" private >>"$work/lines"
  "$build/bench/bench_polyccl" "$ranks" shared >>"$work/lines"
done
awk -F'\t' -f bench/peers/table.awk "$work/lines"
