#!/usr/bin/env bash
# polyccl topology and polyccl calibrate by hand. usage: topology_cli.sh POLYCCL SOURCE_DIR
set -u
polyccl=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}

# expect STATUS TEXT ARGUMENTS...: the exit status, and a text on standard output or error; an error is one line
expect() {
  local status=$1 text=$2
  shift 2
  "$polyccl" "$@" >"$work/out" 2>&1
  local got=$?
  if [ $got -ne "$status" ] || ! grep -qF -- "$text" "$work/out"; then
    fail "polyccl $* -> status $got, wanted $status and \"$text\"; it said:"
    head -5 "$work/out"
  fi
  [ "$status" -ne 2 ] || [ "$(wc -l <"$work/out")" -eq 1 ] || fail "polyccl $*: an error is one line"
}

expect 0 "dgx-a100" topology --list
expect 0 "0 -> 9: m0.gpu0" topology ndv4:2
expect 0 '"polyccl_topology": 1' topology ndv4:2 --json
expect 0 "<svg" topology ndv4:2 --svg
expect 0 "16 ranks" topology "$source/tests/topology/nccl_a100.xml:2"
expect 0 "72 ranks, 1 machines" topology "$source/tests/topology/nccl_gb200.xml:18"
expect 0 "80 ranks, 2 machines" topology "$source/tests/topology/nccl_gb200.xml:20"

# What was assumed stands in the text, and on standard error of every other command.
odd=$source/tests/topology/nccl_odd_values.xml
expect 0 'assumed: a pci element has link_width="255"; 16 lanes are taken (line 4)' topology "$odd"
"$polyccl" topology "$odd" >"$work/text" 2>"$work/said"
[ ! -s "$work/said" ] || fail "the text and standard error say the same twice"
ring=$source/algorithms/allreduce_ring.lua
for command in "topology $odd --json" "topology $odd -o $work/odd.txt" "compile $ring -p ranks=2 --topology $odd" \
  "simulate $ring -p ranks=2 --topology $odd --size 1m" "simulate $ring -p ranks=2 --topology $odd --size 1m:4m" \
  "view $ring -p ranks=2 --topology $odd" "compare $ring -p ranks=2 --topology $odd --size 1m"; do
  # shellcheck disable=SC2086
  "$polyccl" $command >"$work/out" 2>"$work/said" || fail "polyccl $command: $(cat "$work/said")"
  grep -qF 'assumed: a pci element has link_width="255"' "$work/said" || fail "polyccl $command does not say what it assumes"
done
POLYCCL_DEBUG=warn "$polyccl" topology "$odd" 2>&1 >"$work/out" | grep -qF 'link_width="255"' ||
  fail "the log does not say what is assumed"
[ "$("$polyccl" topology "$source/tests/topology/nccl_a100.xml" 2>&1 | grep -c assumed)" -eq 0 ] ||
  fail "a whole file needs no assumption"

# A product without a model of its own has the figures of another, and the topology says so.
b300=$work/b300.xml
sed 's/NVIDIA A100-SXM4-40GB/NVIDIA B300 SXM6 AC/' "$source/tests/topology/hwloc_a100.xml" >"$b300"
expect 0 'assumed: no device model ships for B300; the figures of B200 are taken' topology "$b300"
renamed=$work/renamed.xml
for other in A100-SXM4-80GB "A100 80GB PCIe:A100" "H100 PCIe" "V100-PCIE-16GB:V100" "H200 NVL"; do # the product's name, and what is said of it
  sed "s/NVIDIA A100-SXM4-40GB/NVIDIA ${other%:*}/" "$source/tests/topology/hwloc_a100.xml" >"$renamed"
  expect 0 "assumed: no device model ships for ${other#*:}; the figures of" topology "$renamed"
done
for own in A100-SXM4-40GB "Corporation GA100 [A100 SXM4 40GB]" "H100 80GB HBM3" H200 B200 V100-SXM2-16GB; do
  sed "s/NVIDIA A100-SXM4-40GB/NVIDIA $own/" "$source/tests/topology/hwloc_a100.xml" >"$renamed"
  "$polyccl" topology "$renamed" | grep "no device model ships" && { echo "FAILED: $own has a model"; failed=1; }
done
expect 0 'm0.gpu3 in m0, B200' topology "$b300"

# A virtual machine's file, alone and with hints.
vm=$source/tests/topology/nccl_vm.xml
expect 0 "the file has no NVLinks; each A100-SXM4-40GB is taken to have 12" topology "$vm"
expect 0 "m0.gpu1 <-> m0.nvswitch: NVLink 370.8 GB/s" topology "$vm" --gpu H100-SXM5 --nic=400
expect 0 "m0.gpu0 <-> m0.gpu1: xGMI 48 GB/s" topology --nic ConnectX-7 --gpu mi300x "$vm"
plain=$work/plain.xml
printf '<system><cpu>%s%s</cpu></system>' '<pci busid="1"><gpu dev="0" sm="90"/></pci>' \
  '<pci busid="2"><gpu dev="1" sm="90" gcn="0"/></pci>' >"$plain"
expect 0 "0 -> 1: m0.gpu0 m0.cpu0 m0.gpu1" topology "$plain"
expect 0 "m0.gpu1 in m0, H100-SXM5" topology "$plain"
expect 0 "0 -> 1: m0.gpu0 m0.nvswitch m0.gpu1 (370.8 GB/s" topology "$plain" --gpu H100-SXM5
expect 2 "nccl_vm.xml: no shipped model has the name of the gpu, \"H1000\"" topology "$vm" --gpu H1000
expect 2 '--gpu expects a model of GPU' topology "$vm" --gpu
expect 2 'nic "fast" is neither a model that is known' topology "$vm" --nic fast
expect 2 "the hints gpu and nic are for NCCL's XML, not for a shipped machine" topology ndv4:2 --gpu H100-SXM5
expect 2 "the hints gpu and nic are for NCCL's XML, and this is another file" topology "$source/tests/topology/rates.json" --nic 100

expect 2 "a machine or a file is missing" topology
expect 2 'unexpected argument "--yaml"' topology ndv4:2 --yaml
expect 2 'unexpected argument "dgx1"' topology ndv4:2 dgx1
expect 2 "is not a shipped machine" topology ndv5:2
expect 2 "cannot read" topology "$work/none.json"
expect 2 "it is a directory" topology "$work/"
expect 2 "cannot write" topology ndv4:2 -o "$work/none/x"
expect 2 "this is text of no kind that polyccl knows, not a topology" topology "$source/tests/topology/bad/specs"
head -c 1000000 /dev/urandom >"$work/noise.json"
expect 2 "noise.json" topology "$work/noise.json"

# What is written is read back equal, as a file.
"$polyccl" topology h100:2,nic=12.5 --json -o "$work/a.json" || fail "--json -o"
"$polyccl" topology "$work/a.json" --json -o "$work/b.json" || fail "reading what --json wrote"
cmp -s "$work/a.json" "$work/b.json" || fail "JSON does not come back equal"

# A quick calibration gives a topology that programs can be simulated on.
expect 2 "--ranks expects a number from 1 to 1024, not \"0\"" calibrate --ranks 0
expect 2 "--alloc expects private or shared, not \"mine\"" calibrate --alloc mine
expect 2 "--max expects a number of bytes from 1k to 2048g, not \"12\"" calibrate --max 12
expect 2 'unexpected argument "fast"' calibrate fast
expect 2 'unexpected argument "--fast"' calibrate --fast 1
expect 2 "cannot write" calibrate --quick -o "$work/none/x"
for alloc in private shared; do
  "$polyccl" calibrate --quick --max 64k --ranks 3 --alloc $alloc -o "$work/$alloc.json" 2>"$work/out" ||
    fail "calibrate --alloc $alloc: $(cat "$work/out")"
  expect 0 "calls of 65536 B" topology "$work/$alloc.json"
  expect 0 "bus bandwidth" simulate "$source/algorithms/allreduce_ring.lua" -p ranks=3 --topology "$work/$alloc.json" --size 64k
done
grep -q '"by_reference": true' "$work/shared.json" || fail "shared buffers do not go by reference"
exit $failed
