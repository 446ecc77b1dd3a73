#!/usr/bin/env bash
# usage: bench/growth/run.sh [N] [FAMILY...]
# CPU time of verify, simulate and view on families of plans (plans.py) of size N (20000) and 4 N, and nanoseconds per
# byte of the larger. A line that ends in GROWS took more than twice the time per byte at 4 N, and more than 0.1 s.
# POLYCCL names the command (build/release/polyccl).
set -euo pipefail
cd "$(dirname "$0")/../.."
n=${1:-20000}
shift || true
polyccl=${POLYCCL:-build/release/polyccl}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TIMEFORMAT=%U

# cpu COMMAND...: seconds of CPU time, whatever the status
cpu() {
  { time "$@" >/dev/null 2>&1 || true; } 2>&1
}

line() { # FAMILY SUBCOMMAND ARGUMENTS...: one line of the table
  local small large
  small=$(cpu "$polyccl" "$2" "$work/small.plan" "${@:3}")
  large=$(cpu "$polyccl" "$2" "$work/large.plan" "${@:3}")
  awk -v name="$1" -v what="$2" -v a="$small" -v b="$large" -v x="$(stat -c %s "$work/small.plan")" \
    -v y="$(stat -c %s "$work/large.plan")" 'BEGIN {
      printf "%-28s %-9s %10d %8.3f %10d %8.3f %8.0f%s\n", name, what, x, a, y, b, 1e9 * b / y,
        (b > 0.1 && b / y > 2 * (a > 0.001 ? a : 0.001) / x ? "  GROWS" : "") }'
}

echo "family                       command        bytes    CPU s      bytes    CPU s  ns/byte"
for family in ${@:-$(python3 bench/growth/plans.py --list)}; do
  python3 bench/growth/plans.py "$family" "$n" >"$work/small.plan"
  python3 bench/growth/plans.py "$family" $((4 * n)) >"$work/large.plan"
  ranks=$(grep -m 1 ^ranks "$work/large.plan" | cut -d ' ' -f 2)
  line "$family" verify
  if [[ $family != wrong_* && $ranks -le 1000 ]]; then
    line "$family" simulate --topology "fully:$ranks" --size 1M
    line "$family" view --topology "fully:$ranks" -o "$work/page.html"
  fi
done
