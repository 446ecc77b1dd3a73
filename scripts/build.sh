#!/usr/bin/env bash
# usage: build.sh PRESET [TARGET...]: configures and builds; shows the output only when something fails.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
mkdir -p build
log=build/$preset.log
echo "building ($preset)"
fail() {
  cat "$log"
  missing=$(scripts/packages.sh --list cmake/packages.txt)
  [ -z "$missing" ] || echo "Debian packages that are not installed here (\`make packages\` installs them): $missing"
  exit 1
}
logged() { "$@" >"$log" 2>&1 || fail; }
logged cmake --preset "$preset"
logged cmake --build --preset "$preset" ${1:+--target "$@"}
