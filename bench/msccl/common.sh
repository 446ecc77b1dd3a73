# shellcheck shell=bash
# What size.sh and compile_speed.sh share: where the command, the programs and the public tools are.
#   POLYCCL            the polyccl command (default: the release build of this checkout)
#   POLYCCL_MSCCL_TOOLS  a checkout of the public msccl-tools; PUBLIC_PYTHON an interpreter that can run it
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
polyccl=${POLYCCL:-$root/build/release/polyccl}
# shellcheck disable=SC2034 # for those who source this
public=${POLYCCL_MSCCL_TOOLS:-}
public_python=${PUBLIC_PYTHON:-python3}
[ -x "$polyccl" ] || { echo "$polyccl: no such command (build it, or name it in POLYCCL)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ours ALGORITHM [-p name=value ...]: compiles and verifies one of algorithms/ into $work/plan and $work/xml.
ours() {
  local program=$root/algorithms/$1.lua
  shift
  "$polyccl" compile "$program" "$@" -o "$work/plan" >"$work/log" 2>&1 &&
    "$polyccl" verify "$work/plan" >>"$work/log" 2>&1
}

# plan_size FILE: "steps / thread blocks / channels" of a plan text.
plan_size() {
  awk '/^  tb/ { tbs++ }
       /^    / { steps++; for (i = 1; i < NF; i++) if ($i == "to" || $i == "from") { split($(i + 1), at, "."); if (at[2] + 1 > channels) channels = at[2] + 1 } }
       END { printf "%d / %d / %d", steps, tbs, channels }' "$1"
}

# xml_size FILE: the same of MSCCL XML, where a step with several waits needs nops.
xml_size() {
  awk '/<step / { steps++ } /<tb / { tbs++; match($0, /chan="-?[0-9]+"/); c = substr($0, RSTART + 6, RLENGTH - 7) + 1; if (c > channels) channels = c }
       END { printf "%d / %d / %d", steps, tbs, channels }' "$1"
}
