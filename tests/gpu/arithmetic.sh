#!/usr/bin/env bash
# usage: tests/gpu/arithmetic.sh BUILD: checks that the arithmetic of generated GPU code gives the bits of the CPU's kernels.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
${CXX:-g++} -std=c++17 -O1 -Wall -Wextra -Werror -fno-strict-aliasing -ffp-contract=off -Isrc \
  -include tests/gpu/on_threads.h -shared -fPIC -o "$work/arithmetic.so" tests/gpu/arithmetic.cpp
"$1/tests/gpu_arithmetic" "$work/arithmetic.so"
