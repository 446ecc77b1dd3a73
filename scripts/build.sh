#!/usr/bin/env bash
# usage: build.sh PRESET [TARGET...]: configures and builds; shows the output only when something fails.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
mkdir -p build
log=build/$preset.log
echo "building ($preset)"
run() { "$@" >"$log" 2>&1 || { cat "$log"; exit 1; }; }
run cmake --preset "$preset"
run cmake --build --preset "$preset" ${1:+--target "$@"}
