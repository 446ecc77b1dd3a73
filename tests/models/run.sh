#!/usr/bin/env bash
# usage: run.sh MODEL   checks a model of tests/models with SPIN, every state of it: each line "right: DEFINES" in the
# model's first comment must have no error, and each line "wrong: DEFINES KIND OF ERROR", a twin that lacks one order or
# one check, must have this one. Exits with 77 when there is no SPIN.
set -euo pipefail
model=$(realpath "$1")
if ! command -v spin >/dev/null; then
  echo "spin is not installed (Debian package spin): $(basename "$model") was not checked"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# explore DEFINE...: leaves what SPIN says in the file `said`.
explore() {
  spin -a "${@/#/-D}" "$model" >generated || { cat generated; exit 1; }
  # Safety and end states; hash tables grow, and memory is bounded.
  "${CC:-cc}" "$optimize" -w -DSAFETY -DMEMLIM=1000 -o pan pan.c
  ./pan -m100000 -w20 >said || true
}

name=$(basename "$model" .pml)
right=0 wrong=0
while read -r kind words; do
  defines=() error=
  for word in $words; do
    if [ -z "$error" ] && [[ $word =~ ^[A-Z_]+(=[0-9]+)?$ ]]; then
      defines+=("$word")
    else
      error+=${error:+ }$word
    fi
  done
  optimize=-O1
  [ "$kind" = right: ] || optimize=-O0 # most of a twin's time goes to its compilation
  explore ${defines[@]+"${defines[@]}"}
  states=$(sed -n 's/ states, stored.*//p' said | tr -d ' ')
  case $kind in
    right:)
      right=$((right + 1))
      if ! grep -q 'errors: 0$' said || grep -qE 'depth too small|not completed|MEMLIM bound|out of memory' said ||
        [ -n "$error" ]; then
        echo "$name $words: SPIN finds an error in the right model, or does not see every state of it:"
        cat said
        [ ! -e "$name.pml.trail" ] || spin -k "$name.pml.trail" -p "${defines[@]/#/-D}" "$model" | tail -60
        exit 1
      fi
      echo "$name ${words:-as it is}: right, $states states"
      ;;
    wrong:)
      wrong=$((wrong + 1))
      if [ -z "$error" ] || ! grep -q "^pan:1: $error" said; then
        echo "$name $words: SPIN does not refuse the wrong twin:"
        cat said
        exit 1
      fi
      echo "$name $words"
      ;;
  esac
done < <(sed -n '/\*\//q; s/^ \* \(right\|wrong\):/\1: /p' "$model")
if [ $right = 0 ] || [ $wrong = 0 ]; then
  echo "$name: a model needs a line \"right:\" and a line \"wrong:\""
  exit 1
fi
