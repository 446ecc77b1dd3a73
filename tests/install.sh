#!/usr/bin/env bash
# usage: install.sh BUILD: installs to a folder and uses what is there as a stranger would: docs/library.md's program
# by pkg-config and by find_package, the command, the library's own plans and plans of a folder.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null
sed -n '/^```c$/,/^```$/p' docs/library.md | sed '1d;$d' >"$folder/sum.c"

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name polyccl.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs polyccl)
libraries=$(pkg-config --variable=libdir polyccl)
cc -Wall -Werror -o "$folder/sum" "$folder/sum.c" $flags -Wl,-rpath,"$libraries"

mkdir "$folder/cmake"
cat >"$folder/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(sum C)
find_package(polyccl 0.1 REQUIRED)
add_executable(sum ../sum.c)
target_link_libraries(sum PRIVATE polyccl::polyccl)
END
cmake -S "$folder/cmake" -B "$folder/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$folder/cmake/build" >/dev/null

# Ranks are processes of their own, started one by one; all print the sum.
together() {
  local program=$1 rank
  rm -f "$folder/id" "$folder/printed"
  for rank in 0 1 2; do "$program" $rank 3 "$folder/id" >>"$folder/printed" & done
  wait
  diff <(sort "$folder/printed") <(for rank in 0 1 2; do echo "rank $rank: 3 ... 3000"; done)
}
together "$folder/sum"
together "$folder/cmake/build/sum"

"$prefix/bin/polyccl" run "$prefix/share/polyccl/algorithms/allreduce_ring.lua" --ranks 2 --size 1k --threads >/dev/null
[ -e "$prefix/share/man/man1/polyccl-run.1" ]
# The library exports exactly the functions that its public headers declare, each with the version of the symbol map.
if command -v nm >/dev/null; then
  exported=$(nm -D --defined-only "$libraries/libpolyccl.so" | awk '$2 == "T" {print $3}' | sort)
  declared=$(sed 's|//.*||' "$prefix"/include/polyccl/*.h | tr '\n' ' ' | sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/||g' | tr ';' '\n' |
    grep POLYCCL_API | grep -o 'polyccl_[a-z0-9_]*(' | tr -d '(' | sort)
  diff <(echo "$declared") <(sed 's/@@POLYCCL_0\.1$//' <<<"$exported")
fi
