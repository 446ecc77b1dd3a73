#!/usr/bin/env bash
# usage: tests/mutation/run.sh [MUTANTS] [FOLDER OF PLANS OR XML]
# Compiles every algorithm (small, in and out of place, with instances) and holds the verifier against the interpreter
# on MUTANTS (10000) changed copies of each plan; also of the right plans in the folder, where one is given. BUILD names the
# build folder (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
mutants=${1:-10000} folder=${2:-}
build=${BUILD:-build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

compile() { # NAME-OF-RESULT ALGORITHM OPTIONS...
  "$build/polyccl" compile "algorithms/$2.lua" "${@:3}" -o "$work/$1.plan"
}

for file in algorithms/*.lua; do
  name=$(basename "$file" .lua)
  ranks=4
  case $name in
    allreduce_halving_doubling) small=(-p ranks=4) odd=(-p ranks=8) ;;
    sendrecv) ranks=2 small=(-p ranks=2) odd=(-p ranks=3) ;;
    *) small=(-p ranks=4) odd=(-p ranks=5) ;;
  esac
  if grep -q 'param("nodes"' "$file"; then
    small=(-p nodes=2 -p gpus=2) odd=(-p nodes=2 -p gpus=3)
  fi
  compile "$name" "$name" "${small[@]}"
  compile "$name-larger" "$name" "${odd[@]}"
  compile "$name-instances" "$name" "${small[@]}" -p instances=2
  compile "$name-state" "$name" "${small[@]}" --policy state --topology "fully:$ranks"
  for place in in-place out-of-place either-place; do
    compile "$name-$place" "$name" "${small[@]}" "--$place" 2>/dev/null || rm -f "$work/$name-$place.plan"
  done
done
if [ -n "$folder" ]; then
  for file in "$folder"/*; do
    if [ -f "$file" ] && "$build/polyccl" verify "$file" >/dev/null; then
      cp "$file" "$work"
    fi
  done
fi
"$build/tests/mutation" -n "$mutants" "$work"/* tests/plans/right/*.plan
