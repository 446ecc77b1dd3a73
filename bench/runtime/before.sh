#!/usr/bin/env bash
# usage: before.sh COMMIT FOLDER: builds bench_polyccl and bench_first_call of this tree against the library of COMMIT,
# for before_after.sh and run.sh. So one harness gives the figures of both, and both ways of timing exist for both.
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=$1 folder=$(realpath -m "$2")
work=$(mktemp -d)
trap 'git worktree remove --force "$work/tree"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/tree" "$commit"
mkdir -p "$work/tree/bench/runtime" "$folder"
cp bench/peers/*.[ch] "$work/tree/bench/peers/"
cp bench/runtime/*.c "$work/tree/bench/runtime/"
cat >"$work/tree/bench/CMakeLists.txt" <<'END'
include_directories(peers)
add_executable(bench_polyccl peers/bench_polyccl.c peers/harness.c peers/board.c peers/fork.c)
add_executable(bench_first_call runtime/first_call.c peers/board.c peers/fork.c)
target_link_libraries(bench_polyccl PRIVATE polyccl_static)
target_link_libraries(bench_first_call PRIVATE polyccl_static)
END
if [ ! -e "$work/tree/include/polyccl/stream.h" ]; then
  echo 'add_compile_definitions(BENCH_NO_STREAMS)' | cat - "$work/tree/bench/CMakeLists.txt" >"$work/lists"
  cp "$work/lists" "$work/tree/bench/CMakeLists.txt"
fi
"$work/tree/scripts/build.sh" release bench_polyccl bench_first_call
cp "$work/tree/build/release/bench/bench_polyccl" "$work/tree/build/release/bench/bench_first_call" "$folder"
