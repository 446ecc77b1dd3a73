#!/usr/bin/env bash
# usage: kinds_cli.sh POLYCCL SOURCE   every kind of file is given to every command that takes a file: what it does not
# read it names, with what it is; a byte order mark changes nothing
set -euo pipefail
polyccl=$1
source=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# is TEXT FILE...: what these files are taken for
declare -A taken
is() {
  local text=$1 file
  shift
  for file in "$@"; do
    [ -s "$file" ]
    taken[$file]=$text
  done
}

"$polyccl" compile "$source/algorithms/allreduce_ring.lua" -p ranks=2 -o "$folder/ring.plan"
"$polyccl" compile "$folder/ring.plan" --format xml -o "$folder/ring.xml"
"$polyccl" topology fully:2 --json -o "$folder/fully.json"
"$polyccl" topology fully:2 --svg -o "$folder/fully.svg"
"$polyccl" view "$folder/ring.plan" --topology fully:2 --trace "$folder/trace.json" -o "$folder/page.html"
"$polyccl" export "$folder/ring.plan" --chakra "$folder/ring" --size 1k >/dev/null
"$polyccl" build "$folder/ring.plan" -o "$folder/ring.c"
printf '\xff\xfep\0l\0a\0n\0' >"$folder/utf16.plan"
gzip -c "$folder/ring.plan" >"$folder/ring.plan.gz"
printf 'from msccl.language import *\nprint("x")\n' >"$folder/script.py"
echo '{ "surprise": 1 }' >"$folder/other.json"

plans=("$folder/ring.plan" "$folder/ring.xml" "$source/tests/plans/custom_3r.plan")
programs=("$source/algorithms/allreduce_ring.lua" "$source"/tests/synth/*.json "$source"/tests/synth/*.xml)
topologies=("$folder/fully.json" "$source"/tests/topology/*.json "$source"/tests/topology/*.xml)
traces=("$folder/trace.json" "$source"/tests/view/traces/*.json)
is "a plan (text)" "$folder/ring.plan" "$source/tests/plans/custom_3r.plan"
is "a plan (MSCCL XML)" "$folder/ring.xml"
is "a program (Lua)" "$source/algorithms/allreduce_ring.lua" "$source/tests/programs/basics.lua"
is "a schedule of TE-CCL (JSON)" "$source"/tests/synth/flows_*.json
is "an algorithm of SCCL (JSON)" "$source"/tests/synth/sccl_*.json
is "a forest of trees of ForestColl (XML)" "$source"/tests/synth/tree*.xml
is "a topology (JSON)" "$folder/fully.json" "$source/tests/topology/two_vendors.json"
is "a topology (hwloc's XML)" "$source"/tests/topology/hwloc_*.xml
is "a topology of TACCL (JSON)" "$source"/tests/topology/taccl_*.json
is "a topology (NCCL's XML)" "$source"/tests/topology/nccl_*.xml
is "a trace (Chrome trace events)" "${traces[@]}"
is "an execution plan of MSCCL++ (JSON)" "$source/tests/kinds/mscclpp.json"
is "another part of SCCL (JSON)" "$source/tests/kinds/sccl_topology.json"
is "a communication sketch of TACCL (JSON)" "$source/tests/kinds/taccl_sketch.json"
is "the rings and trees that NCCL chose (XML)" "$source/tests/kinds/nccl_graphs.xml"
is "an execution trace (Chakra)" "$folder"/ring.*.et
is "a page (HTML)" "$folder/page.html"
is "a picture (SVG)" "$folder/fully.svg"
is "text in UTF-16" "$folder/utf16.plan"
is "a compressed file" "$folder/ring.plan.gz"
is "a Python script" "$folder/script.py"

# A pipe is read once, and as a plan.
for file in "${programs[@]}"; do
  for command in compile run; do
    if cat "$file" | "$polyccl" "$command" /dev/stdin >/dev/null 2>"$folder/err"; then
      echo "$command takes $file from a pipe"
      exit 1
    fi
    grep -q 'this is a program, but only plans are read from a pipe; save the program as a file' "$folder/err"
    [ "$(wc -l <"$folder/err")" = 1 ]
  done
done

# refused FILE WANTED COMMAND...: exit status 2 and one line
refused() {
  local file=$1 wanted=$2 status=0
  shift 2
  "$@" >"$folder/out" 2>"$folder/err" || status=$?
  if [ "$status" != 2 ] || [ "$(wc -l <"$folder/err")" != 1 ] || [ -s "$folder/out" ] ||
      ! grep -qF "$file: this is " "$folder/err" || ! grep -qF "${taken[$file]}" "$folder/err" ||
      ! grep -qF ", not $wanted; " "$folder/err"; then
    echo "$* -> status $status, wanted 2 and \"this is ... ${taken[$file]} ..., not $wanted\":"
    cat "$folder/err" "$folder/out"
    exit 1
  fi
}

# among FILE LIST...
among() {
  local file=$1 one
  shift
  for one in "$@"; do
    [ "$one" != "$file" ] || return 0
  done
  return 1
}

for file in "${!taken[@]}"; do
  if ! among "$file" "${plans[@]}"; then
    refused "$file" "a plan" "$polyccl" verify "$file"
    refused "$file" "a plan" "$polyccl" build "$file"
  fi
  case ${taken[$file]} in
    "a program"* | "a schedule"* | "a forest"* | "an algorithm"*) ;;
    *) refused "$file" "a program" "$polyccl" check "$file"
       refused "$file" "a program" "$polyccl" check "$file" --params ;;
  esac
  case ${taken[$file]} in
    "a p"[lr][ao]* | "a schedule"* | "a forest"* | "an algorithm"*) ;;
    *) for command in compile "run --size 1k" "simulate --topology fully:2 --size 1k" "view --svg" \
           "compare --topology fully:2 --size 1k:2k" "export --chakra $folder/none --size 1k"; do
         # shellcheck disable=SC2086
         refused "$file" "a plan or a program" "$polyccl" $command "$file"
       done ;;
  esac
  case ${taken[$file]} in
    "a topology"*) ;;
    *) refused "$file" "a topology" "$polyccl" topology "$file"
       refused "$file" "a topology" "$polyccl" simulate "$folder/ring.plan" --topology "$file" --size 1k ;;
  esac
  if ! among "$file" "${traces[@]}"; then
    refused "$file" "a trace" "$polyccl" view "$folder/ring.plan" --trace-in "$file"
  fi
done

# What none knows: the reader of the command says so.
taken[$folder/other.json]="JSON of no kind that polyccl knows"
refused "$folder/other.json" "a plan" "$polyccl" verify "$folder/other.json"
refused "$folder/other.json" "a program" "$polyccl" check "$folder/other.json"
refused "$folder/other.json" "a topology" "$polyccl" topology "$folder/other.json"

# A byte order mark in front changes nothing.
marked() { # COMMAND... FILE
  local copy
  copy=$folder/copy/$(basename "${*: -1}")
  mkdir -p "$folder/copy"
  cat "${*: -1}" >"$copy"
  "${@:1:$#-1}" "$copy" >"$folder/plain.out"
  printf '\xef\xbb\xbf' | cat - "${*: -1}" >"$copy"
  "${@:1:$#-1}" "$copy" >"$folder/marked.out"
  cmp "$folder/plain.out" "$folder/marked.out"
}
for file in "${plans[@]}"; do marked "$polyccl" compile "$file"; done
for file in "${programs[@]}"; do marked "$polyccl" check "$file"; done
for file in "${topologies[@]}"; do marked "$polyccl" topology "$file"; done
for file in "${traces[@]}"; do marked "$polyccl" view --svg "$folder/ring.plan" --trace-in "$file"; done

# So too in a module that a program requires.
printf '\xef\xbb\xbfreturn { ranks = 2 }\n' >"$folder/marked_module.lua"
echo 'local m = require "marked_module"; allreduce { ranks = m.ranks, inplace = true }
chunk(0, input, 0):reduce(chunk(1, input, 0)):copy(1)' >"$folder/requires.lua"
"$polyccl" check "$folder/requires.lua" >/dev/null
