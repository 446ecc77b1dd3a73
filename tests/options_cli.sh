#!/usr/bin/env bash
# Every option of every subcommand (polyccl help --options) with numbers at the edges and with what is no number: no
# crash, no hang, exit status 0 or 2 (1: it ran and failed), and a refusal in one line that names the option or the value.
# usage: options_cli.sh POLYCCL [short]; short tries fewer values, for builds that run slowly
set -uo pipefail
cd "$(dirname "$0")/.."
polyccl=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seconds=60 # a command line needs milliseconds, but the machine may be busy
ring=$PWD/algorithms/allreduce_ring.lua
failed=0
tried=0
cd "$folder" || exit 1
export TMPDIR=$folder
plan=$folder/ring.plan
"$polyccl" compile "$ring" -p ranks=2 -o "$plan" || exit 1
# Buffers of a run stay below this; more is refused (docs/man/polyccl-run.1).
ulimit -m 65536

digits=$(printf '9%.0s' {1..400})
values=(0 -1 1 2147483647 2147483648 4294967296 9223372036854775807 9223372036854775808 18446744073709551615
  18446744073709551616 "$digits" 1e30 "" " 5" "5 " +5 5x 0x10 1k 1kk 5KB 2KiB 2GB 1g 99999999999g 1.5 nan inf
  1: :1 1:2:0 1:2:1 1:2:x 2:1 0:1m 0:64:+16 1:18446744073709551615 1:64:18446744073709551615 8:1g:+1 1:64:+0 ::: 1,2 ,
  1,, "$(printf '1,%.0s' {1..100})")
min_tried=1000
if [ "${2:-}" = short ]; then
  values=(0 2147483648 18446744073709551616 "" 5x 1:2:0 1,,)
  min_tried=300
fi

# A command line that is right but for the option that is tried.
base() {
  case $1 in
    build | verify) words=("$plan") ;;
    calibrate) words=(--quick --max 1k --ranks 2 -o /dev/null) ;;
    check) words=("$ring") ;;
    compare) words=("$ring" -p ranks=2 --topology ring:2 --size 1k) ;;
    compile) words=("$ring" -p ranks=2 -o /dev/null) ;;
    export) words=("$plan" --chakra "$folder/trace" --size 1k) ;;
    info) words=() ;;
    run) words=("$plan" --threads --iters 1 --warmup 0 --size 8) ;;
    simulate) words=("$plan" --topology ring:2 --size 1k) ;;
    topology) words=(ring:2) ;;
    view) words=("$plan" --topology ring:2 -o /dev/null) ;;
    *)
      echo "options_cli.sh knows no right command line of polyccl $1: add one" >&2
      exit 1
      ;;
  esac
}

# What the subcommand needs instead so that the option does something.
serve() {
  case "$1 $2" in
    "compile --seconds" | "compile --max-tb") words+=(--policy state --topology ring:2) ;;
    "compile --size") words+=(--policy state --topology ring:2) ;;
    "run --count") words=("$plan" --threads --iters 1 --warmup 0) ;;
    "view --chunk" | "view --rank") words+=(--svg) ;;
  esac
}

# attempt NAME VALUE COMMAND...: NAME or VALUE must stand in the line that says no.
attempt() {
  local name=$1 value=$2 got lines
  shift 2
  tried=$((tried + 1))
  timeout "$seconds" "$@" >out 2>err </dev/null
  got=$?
  lines=$(wc -l <err)
  if [ "$got" -gt 2 ]; then
    printf '%s\n  exit status %s: %s\n' "${*:0:400}" "$got" "$(head -c 300 err)" >&2
    failed=1
  elif [ "$got" -eq 2 ] && { [ "$lines" -ne 1 ] || ! grep -qF -e "$name" -e "${value:-$name}" err; }; then
    printf '%s\n  refused, but not in one line that names %s: %s\n' "${*:0:400}" "$name" "$(head -c 300 err)" >&2
    failed=1
  elif [ "$got" -eq 1 ] && [ "$lines" -eq 0 ]; then
    printf '%s\n  failed without a word\n' "${*:0:400}" >&2
    failed=1
  fi
}

while read -r command option kind; do
  base "$command"
  serve "$command" "$option"
  case $kind in
    flag) attempt "$option" "" "$polyccl" "$command" "$option=1" "${words[@]}" ;;
    number | size | sizes | share | list | word)
      attempt "$option" "" "$polyccl" "$command" "${words[@]}" "$option"
      for value in "${values[@]}"; do
        attempt "$option" "$value" "$polyccl" "$command" "${words[@]}" "$option=$value"
      done
      ;;
    parameter)
      [ "$command" = export ] || [ "$command" = run ] || [ "$command" = view ] || [ "$command" = simulate ] ||
        for name in ranks channels instances; do
          for value in "${values[@]}"; do
            attempt "$name" "$value" "$polyccl" "$command" "${words[@]/ranks=2/protocol=LL}" "-p$name=$value"
          done
        done
      ;;
    text) attempt "$option" "" "$polyccl" "$command" "${words[@]}" "$option" ;;
    *)
      echo "options_cli.sh does not know how to try a $kind ($command $option)" >&2
      failed=1
      ;;
  esac
done < <("$polyccl" help --options)

# Numbers in the names of machines, and in the environment.
for machine in dgx-a100: ring: ndv4:2,nic= ndv4:2,nvlink= ndv4:1,pcie= ndv4:1,gpus= ndv4:1,nics= ndv4:2,latency= \
  ndv4:1,nvlink-latency= ndv4:4,leaf= ndv4:4,leaf=2,spine= "$plan:"; do
  for value in "${values[@]}"; do
    attempt "${machine%:}" "$value" "$polyccl" topology "$machine$value"
  done
done
options=$("$polyccl" info | sed -n 's/^  \(POLYCCL_[A-Z_]*\).*/\1/p')
for name in $options; do
  for value in "${values[@]}"; do
    attempt "$name" "$value" env "$name=$value" "$polyccl" run "$ring" --ranks 2 --iters 1 --warmup 0 --size 8 --out-of-place
  done
done
echo "$tried command lines"
[ $tried -gt $min_tried ] || { echo "too few: what has become of polyccl help --options?" >&2; failed=1; }
exit $failed
