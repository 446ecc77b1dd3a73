#!/usr/bin/env bash
# The evaluation of policy "state": run.sh [PLAN.xml ...]. Further arguments are plans of 16 ranks from elsewhere
# (MSCCL XML, such as TACCL writes), compiled anew and compared like the rest.
#
# Writes docs/results/resccl.tsv (every number), docs/results/resccl_tables.md and resccl_*.svg beside them.
# Times are simulated: other load on the machine changes nothing. offline.sh measures the compiler itself.
#   POLYCCL_BUILD  the build (default: build/release); SECONDS_BEST  for each search of schedule best (1.5)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=${POLYCCL_BUILD:-$root/build/release}
results=$root/docs/results
here=$root/bench/resccl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -x "$build/bench/resccl_evaluate" ] || { echo "$build/bench/resccl_evaluate: not built" >&2; exit 2; }
mkdir -p "$results"

cp "$here/cases.txt" "$work/cases.txt"
for plan in "$@"; do
  printf '%s | @plan %s\n' "$(basename "$plan" .xml)" "$(realpath "$plan")" >>"$work/cases.txt"
done
# machine, nodes, GPUs in a node, chunks of a synthesised plan
machines="a100-roce:2 2 8 2
a100-roce:4 4 8 1
v100-roce:2 2 8 2
a100-roce:8,gpus=4 8 4 1
a100-roce:4,gpus=4 4 4 2"
printf 'case\tmachine\tbytes\tpolicy\ttime us\tthread blocks\tbusy\thighest idle\tbound us\thow\n' >"$work/resccl.tsv"
while read -r machine nodes gpus chunks; do
  echo "$machine" >&2
  python3 "$here/synthesise.py" "$nodes" "$gpus" "$chunks" >"$work/synth_${nodes}x$gpus.json"
  "$build/bench/resccl_evaluate" "$root" "$work" "$work/cases.txt" "$machine" "$nodes" "$gpus" "${SECONDS_BEST:-1.5}" \
    >>"$work/resccl.tsv"
done <<<"$machines"
mv "$work/resccl.tsv" "$results/resccl.tsv"
python3 "$here/tables.py" "$results/resccl.tsv" "$results"
