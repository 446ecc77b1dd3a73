#!/usr/bin/env bash
# C sources are formatted by clang-format 14 with the project's .clang-format (make format).
# usage: format.sh [-i]: without -i, only checks.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format)
mode=(--dry-run -Werror)
[ "${1:-}" != -i ] || mode=(-i)
find src include tools tests bench -name '*.[ch]' -print0 | xargs -0 "$tool" "${mode[@]}"
