#!/usr/bin/env bash
# usage: accuracy.sh [-b BUILD] [-o FOLDER] [-r "2 3 4"] [-s MIN:MAX:FACTOR] [-P Simple] [-a private|shared] [ALGORITHM ...]
#
# How right is the simulator? Calibrates this machine (FOLDER/calibrated.json, kept if it is there already), then runs and
# simulates every shipped algorithm, and writes
#   FOLDER/accuracy.tsv   algorithm, ranks, bytes, measured us, simulated us, ratio
#   FOLDER/accuracy.md    the ratios as a table, and the median error for each number of ranks
# Nothing else should run meanwhile. About five minutes.
#
# A virtual machine's cores may move, and then messages between them take two or three times as long as when it was
# calibrated. So a short send is timed before and after each algorithm, which is measured again, a few times at most,
# when the send does not take what it took after the calibration; an algorithm that never met the machine as calibrated
# is marked "(unsteady)".
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/release out=build/accuracy ranks="2 3 4" sizes=4k:64m:4 protocol=Simple alloc=private
while getopts b:o:r:s:P:a: option; do
  case $option in
    b) build=$OPTARG ;;
    o) out=$OPTARG ;;
    r) ranks=$OPTARG ;;
    s) sizes=$OPTARG ;;
    P) protocol=$OPTARG ;;
    a) alloc=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
polyccl=$build/polyccl
[ -x "$polyccl" ] || { echo "accuracy.sh: no $polyccl; build first" >&2; exit 2; }
mkdir -p "$out"
trap 'rm -f "$out"/plan.$$ "$out"/run.$$ "$out"/sim.$$ "$out"/error.$$' EXIT

most=$(printf '%s\n' $ranks | sort -n | tail -1)
topology=$out/calibrated.json

# Is the machine as it was when it was calibrated? A short send takes about what the calibration says.
steady() {
  local now then
  now=$("$polyccl" run algorithms/sendrecv.lua --size 16k --apart --alloc "$alloc" --check 0 2>/dev/null |
    awk '!/^#/ && NF >= 7 {print $6}')
  then=$("$polyccl" simulate algorithms/sendrecv.lua --topology "$topology" --size 16k:32k |
    awk '!/^#/ && NF >= 2 {print $2; exit}')
  awk -v now="$now" -v then="$then" 'BEGIN {exit !(now < 1.3 * then && then < 1.3 * now)}'
}

if [ ! -s "$topology" ]; then
  for try in 1 2 3 4; do
    echo "calibrating ..." >&2
    "$polyccl" calibrate --ranks "$most" --alloc "$alloc" -o "$topology"
    ! steady || break
    [ "$try" -lt 4 ] || echo "accuracy.sh: the machine does not keep still; figures will be off" >&2
  done
fi

algorithms=("$@")
[ $# -gt 0 ] || algorithms=(algorithms/*.lua)

# The parameters with which a program has $2 ranks, one line for each way; nothing: it has none.
ways() {
  local names
  names=$("$polyccl" check "$1" --params | awk '{print $1}')
  if grep -qx nodes <<<"$names"; then
    for nodes in 2 3 4; do
      [ $(($2 % nodes)) -ne 0 ] || echo "-p nodes=$nodes -p gpus=$(($2 / nodes))"
    done
  elif grep -qx ranks <<<"$names"; then
    echo "-p ranks=$2"
  fi
}

# Sizes and times of `polyccl run` and of `polyccl simulate`.
measured() { awk '!/^#/ && NF >= 7 {print $1, $6 == "N/A" ? $7 : $6}' "$1"; }
simulated() { awk '!/^#/ && NF >= 2 {print $1, $2}' "$1"; }

printf 'algorithm\tranks\tbytes\tmeasured\tsimulated\tratio\n' >"$out/accuracy.tsv"
for program in "${algorithms[@]}"; do
  name=$(basename "$program" .lua)
  for n in $ranks; do
    while read -r way; do
      [ -n "$way" ] || continue
      label=$name
      [[ $way != *nodes* ]] || label="$name $(sed 's/.*nodes=\([0-9]*\).*gpus=\([0-9]*\).*/\1x\2/' <<<"$way")"
      echo "$label, $n ranks" >&2
      # Out of place where the program allows it. $way is words.
      if ! "$polyccl" compile "$program" $way -p protocol="$protocol" --out-of-place -o "$out/plan.$$" 2>"$out/error.$$" &&
         ! "$polyccl" compile "$program" $way -p protocol="$protocol" -o "$out/plan.$$" 2>"$out/error.$$"; then
        echo "  skipped: $(head -1 "$out/error.$$")" >&2
        continue
      fi
      mark=" (unsteady)"
      for try in 1 2 3 4 5 6; do
        if ! steady; then
          sleep 2
          continue
        fi
        timeout 300 "$polyccl" run "$out/plan.$$" --size "$sizes" --apart --alloc "$alloc" >"$out/run.$$" 2>"$out/error.$$" ||
          break
        if steady; then
          mark=""
          break
        fi
      done
      label="$label$mark"
      if [ -z "$mark" ]; then
        :
      elif ! timeout 300 "$polyccl" run "$out/plan.$$" --size "$sizes" --apart --alloc "$alloc" >"$out/run.$$" 2>"$out/error.$$"; then
        echo "  failed: $(head -1 "$out/error.$$")" >&2
        continue
      fi
      if ! timeout 300 "$polyccl" simulate "$out/plan.$$" --topology "$topology" --size "$sizes" >"$out/sim.$$" 2>"$out/error.$$"; then
        echo "  failed: $(head -1 "$out/error.$$")" >&2
        continue
      fi
      paste -d' ' <(measured "$out/run.$$") <(simulated "$out/sim.$$") |
        awk -v l="$label" -v n="$n" -v OFS='\t' 'NF == 4 && $2 > 0 {print l, n, $3, $2, $4, $4 / $2}' >>"$out/accuracy.tsv"
    done < <(ways "$program" "$n")
  done
done

# The table: a row for each algorithm and number of ranks, a column for each size; then medians.
awk -F'\t' '
  function human(b) { return b >= 1048576 ? b / 1048576 " MiB" : b >= 1024 ? b / 1024 " KiB" : b " B" }
  function sort(a, n,   i, k, v) {
    for (i = 2; i <= n; i++) { v = a[i]; for (k = i - 1; k >= 1 && a[k] > v; k--) a[k + 1] = a[k]; a[k + 1] = v }
  }
  function median(a, n) { sort(a, n); return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
  NR == 1 { next }
  {
    row = $1 "\t" $2
    if (!(row in seen)) { seen[row] = 1; rows[++nrows] = row }
    if (!($3 in column)) { column[$3] = 1; columns[++ncolumns] = $3 + 0 }
    ratio[row, $3 + 0] = $6
    error = $6 > 1 ? $6 - 1 : 1 - $6
    errors[$2, ++count[$2]] = error
    by_size[$2, $3 + 0, ++size_count[$2, $3 + 0]] = error
  }
  END {
    if (nrows == 0) { print "Nothing was measured."; exit 1 }
    sort(columns, ncolumns)
    printf "Simulated / measured time.\n\n| algorithm | ranks |"
    for (c = 1; c <= ncolumns; c++) printf " %s |", human(columns[c])
    printf "\n|---|---|"
    for (c = 1; c <= ncolumns; c++) printf "---|"
    print ""
    for (r = 1; r <= nrows; r++) {
      split(rows[r], part, "\t")
      printf "| %s | %s |", part[1], part[2]
      for (c = 1; c <= ncolumns; c++) printf((rows[r], columns[c]) in ratio ? " %.2f |" : "  |", ratio[rows[r], columns[c]])
      print ""
    }
    print "\n| ranks | median error |"
    print "|---|---|"
    for (n = 1; n <= 1024; n++) if (n in count) {
      delete list
      for (i = 1; i <= count[n]; i++) list[i] = errors[n, i]
      printf "| %d | %.0f %% |\n", n, 100 * median(list, count[n])
    }
    print "\n| ranks | median error at each size |"
    print "|---|---|"
    for (n = 1; n <= 1024; n++) if (n in count) {
      printf "| %d |", n
      for (c = 1; c <= ncolumns; c++) if ((n, columns[c]) in size_count) {
        delete list
        for (i = 1; i <= size_count[n, columns[c]]; i++) list[i] = by_size[n, columns[c], i]
        printf " %s: %.0f %%", human(columns[c]), 100 * median(list, size_count[n, columns[c]])
      }
      print " |"
    }
  }' "$out/accuracy.tsv" >"$out/accuracy.md"
cat "$out/accuracy.md"
