#!/usr/bin/env bash
# usage: run.sh BUILD [RANKS [ROUNDS]]: PolyCCL (private and shared buffers) and the peers in turns, both ways of timing,
# then tables: the median of the rounds' medians, and the fastest peer's time divided by PolyCCL's. A round goes through
# the operations one by one, and each operation through the programs, a round's first being the next one's last.
# PEERS: openmpi, mpich (default: both; only openmpi if ranks outnumber cores, since MPICH never yields a core then and
# takes milliseconds a call). BENCH_OPS, BENCH_SIZES, BENCH_WAYS, BENCH_SECONDS narrow it (harness.h). LINES_FILE: a file
# that keeps the lines of all rounds, from which `awk -F'\t' -f ../median.awk -f table.awk FILE` makes the tables again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 ranks=${2:-2} rounds=${3:-5}
if [ "$ranks" -gt "$(nproc)" ]; then peers=${PEERS-openmpi}; else peers=${PEERS-openmpi mpich}; fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lines=${LINES_FILE:-$work/lines}
: >"$lines"
for peer in $peers; do
  "mpicc.$peer" -std=gnu17 -O3 -o "$work/$peer" "$here"/bench_mpi.c "$here"/harness.c "$here"/board.c
done
# Open MPI yields only when it knows that ranks outnumber cores.
echo "localhost slots=$(nproc)" >"$work/hosts"
bind=(-bind-to core)
[ "$ranks" -le "$(nproc)" ] || bind=()
measure() { # PROGRAM: its lines
  rm -f "$work/board"
  truncate -s 1M "$work/board"
  case $1 in
    openmpi)
      mpirun.openmpi --allow-run-as-root --oversubscribe --hostfile "$work/hosts" -np "$ranks" "$work/openmpi" \
        "$work/board" openmpi
      ;;
    mpich) mpiexec.mpich "${bind[@]}" -n "$ranks" "$work/mpich" "$work/board" mpich ;;
    *) "$build/bench/bench_polyccl" "$ranks" "$1" ;;
  esac
}
ops=${BENCH_OPS:-allreduce allgather reduce_scatter alltoall broadcast_in_place sendrecv pingpong}
read -ra programs <<<"$peers private shared"
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  for op in ${ops//,/ }; do
    for program in "${programs[@]}"; do
      BENCH_OPS=$op measure "$program" >>"$lines"
    done
  done
  programs=("${programs[@]:1}" "${programs[0]}")
done
awk -F'\t' -f "$here/../median.awk" -f "$here/table.awk" "$lines"
