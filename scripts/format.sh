#!/usr/bin/env bash
# C sources are formatted by clang-format 14 with the project's .clang-format (make format).
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format)
git ls-files '*.c' '*.h' | xargs "$tool" --dry-run -Werror
