#!/usr/bin/env bash
# usage: bench/codegen/overhead.sh BUILD [ROUNDS]: what interpreting a plan costs against generated code, on the CPU. Each
# round runs both in turns; a figure is the median of the rounds' medians. `steps` are those of a rank; the last column
# is the difference spread over them. Small calls: at large ones moving bytes is all there is.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release} rounds=${2:-5}
polyccl=$build/polyccl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

make_case() { # NAME, OPTIONS OF polyccl compile...
  "$polyccl" compile "${@:2}" --in-place -o "$work/$1.plan"
  "$polyccl" build "$work/$1.plan" -o "$work/$1.c"
  ${CC:-cc} -std=gnu17 -O3 -march=native -shared -fPIC -o "$work/$1.so" "$work/$1.c"
}
times() { # NAME KIND OPTIONS...: lines "NAME BYTES KIND MICROSECONDS"
  "$polyccl" run "$work/$1.plan" "${@:3}" --check 0 |
    awk -v name="$1" -v kind="$2" '!/^#/ && NF > 5 { for (i = 6; i <= NF; i++) if ($i != "N/A") { print name, $1, kind, $i; next } }'
}
both() { # NAME OPTIONS...
  times "$1" interpreted "${@:2}" >>"$work/lines"
  times "$1" generated --generated="$work/$1.so" "${@:2}" >>"$work/lines"
}
names=()
for protocol in LL LL128 Simple; do
  make_case "ring-8-threads-$protocol" algorithms/allreduce_ring.lua -p ranks=8 -p protocol=$protocol
  make_case "allpairs-8-threads-$protocol" algorithms/allreduce_allpairs.lua -p ranks=8 -p protocol=$protocol
  make_case "ring-2-processes-$protocol" algorithms/allreduce_ring.lua -p ranks=2 -p protocol=$protocol
  make_case "ring-2-processes-8-instances-$protocol" algorithms/allreduce_ring.lua -p ranks=2 -p instances=8 -p protocol=$protocol
done
for ((round = 1; round <= rounds; round++)); do
  echo "round $round of $rounds" >&2
  for protocol in LL LL128 Simple; do
    both "ring-8-threads-$protocol" --threads --size 8
    both "allpairs-8-threads-$protocol" --threads --size 64
    both "ring-2-processes-$protocol" --size 8:64k:8
    both "ring-2-processes-8-instances-$protocol" --size 64:64k:8
  done
done
for plan in "$work"/*.plan; do
  awk -v name="$(basename "$plan" .plan)" '
    $1 == "rank" { rank = $2 } /^ +(nop|send|recv|rcs|rrc|rrcs|rrs|copy|reduce) / && rank == 0 { n++ }
    END { print name, n }' "$plan"
done >"$work/steps"
sort -k1,1 -k2,2n -k3,3 -k4,4g "$work/lines" | awk -v steps="$work/steps" '
  BEGIN {
    while ((getline line < steps) > 0) { split(line, f, " "); of[f[1]] = f[2] }
    printf "%-36s %8s %6s %14s %12s %7s %10s\n", "case", "bytes", "steps", "interpreted us", "generated us", "ratio", "ns a step"
  }
  function median(   m) { m = value[int((n + 1) / 2)]; return m }
  function flush() {
    if (n == 0) return
    result[kind] = median()
    if (kind == "interpreted")
      printf "%-36s %8d %6d %14.3f %12.3f %7.2f %10.1f\n", name, bytes, of[name], result["interpreted"], result["generated"],
        result["interpreted"] / result["generated"], (result["interpreted"] - result["generated"]) * 1000 / of[name]
  }
  { key = $1 " " $2 " " $3
    if (key != last) { flush(); n = 0; last = key; name = $1; bytes = $2; kind = $3 }
    value[++n] = $4 }
  END { flush() }'
