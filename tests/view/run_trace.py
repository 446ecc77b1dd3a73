#!/usr/bin/env python3
"""Traces of real runs: every step of every micro-batch once, on one clock, for every protocol.

run_trace.py POLYCCL SOURCE-FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile

TOOL, SOURCE = sys.argv[1:3]


def run(folder, algorithm, *args):
    path = os.path.join(folder, "run.json")
    program = os.path.join(SOURCE, "algorithms", algorithm + ".lua")
    done = subprocess.run([TOOL, "run", program, "--iters", "1", "--warmup", "0", "--trace", path, *args],
                          capture_output=True, timeout=100)
    if done.returncode != 0:
        sys.exit(f"run {algorithm} {args}: {done.stderr.decode()}")
    with open(path, encoding="utf-8") as file:
        return json.load(file), path


def check(what, condition):
    if not condition:
        sys.exit(what)


def check_trace(label, trace, ranks):
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    busy = {}
    blocks = {}
    for e in events:
        key = (e["pid"], e["tid"], e["args"]["step"], e["args"]["batch"])
        blocks.setdefault(key[:2], []).append(e)
        if e["cat"] == "busy":
            check(f"{label}: {key} ran twice", key not in busy)
            busy[key] = e
    check(f"{label}: source", trace["otherData"]["source"] == "measured")
    check(f"{label}: ranks", {k[0] for k in busy} == set(range(ranks)))
    batches = {k[3] for k in busy}
    check(f"{label}: micro-batches", batches == set(range(len(batches))))
    steps = {k[:3] for k in busy}
    check(f"{label}: {len(busy)} events of {len(steps)} steps x {len(batches)}", len(busy) == len(steps) * len(batches))
    for block, own in blocks.items():
        own.sort(key=lambda e: (e["ts"], e["ts"] + e["dur"]))
        numbers = sorted({e["args"]["step"] for e in own})
        check(f"{label}: steps of {block}: {numbers}", numbers == list(range(len(numbers))))
        for a, b in zip(own, own[1:]):
            check(f"{label}: {block} does two things at {b['ts']}", a["ts"] + a["dur"] <= b["ts"] + 0.002)
    starts = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "s"}
    ends = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "f"}
    receives = sum("from" in e["args"] for e in busy.values())
    check(f"{label}: {len(starts)} messages, {receives} receives", len(starts) == len(ends) == receives > 0)
    return len(batches)


def check_order(label, trace):
    """A receive ends after its send began; a step begins after the steps it waits for have ended."""
    busy = {(e["pid"], e["tid"], e["args"]["step"], e["args"]["batch"]): e
            for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "busy"}
    for (rank, tb, step, batch), e in busy.items():
        for wait in e["args"].get("wait", "").split():
            other = tuple(int(x) for x in wait.split("."))
            before = busy[(rank, *other, batch)]
            check(f"{label}: rank {rank} step {tb}.{step} began before {wait} ended",
                  before["ts"] + before["dur"] <= e["ts"] + 0.002)
    ends = {e["id"]: e for e in trace["traceEvents"] if e["ph"] == "f"}
    for e in trace["traceEvents"]:
        if e["ph"] == "s":
            check(f"{label}: a message arrived before it was sent", e["ts"] <= ends[e["id"]]["ts"] + 0.002)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for label, algorithm, args in (
                ("processes", "allreduce_ring", ("--ranks", "3", "--size", "4k")),
                ("threads", "allreduce_ring", ("--ranks", "2", "--size", "4k", "--threads")),
                ("LL", "allreduce_ring", ("--ranks", "2", "--size", "4k", "--protocol", "LL")),
                ("LL128", "allreduce_ring", ("--ranks", "2", "--size", "4k", "--protocol", "LL128")),
                ("shared", "allreduce_hierarchical", ("-p", "nodes=2", "-p", "gpus=2", "--size", "64k", "--alloc", "shared")),
                ("waits", "allreduce_hierarchical", ("-p", "nodes=2", "-p", "gpus=2", "--size", "64k")),
                ("task-major", "broadcast_chain", ("--ranks", "2", "--size", "4m", "--order", "task-major")),
                ("large", "allreduce_ring", ("--ranks", "2", "--size", "4m")),
        ):
            trace, path = run(folder, algorithm, *args)
            batches = check_trace(label, trace, 3 if label == "processes" else 4 if "nodes=2" in args else 2)
            check_order(label, trace)
            check(f"{label}: {batches} micro-batches", batches > 1 or label not in ("task-major", "large"))
        page = subprocess.run([TOOL, "view", os.path.join(SOURCE, "algorithms", "allreduce_ring.lua"), "-p", "ranks=2",
                               "--topology", "fully:2", "--size", "4m", "--trace-in", path], check=True,
                              capture_output=True, timeout=100).stdout.decode()
        start = page.index('id="data">') + len('id="data">')
        traces = json.loads(page[start:page.index("</script>", start)])["traces"]
        check("both on one page", [t["source"] for t in traces] == ["simulated", "measured"])
        os.remove(path)
        missing = subprocess.run([TOOL, "run", os.path.join(SOURCE, "algorithms", "allreduce_ring.lua"), "--ranks", "2",
                                  "--trace", os.path.join(folder, "no", "x.json")], capture_output=True, timeout=100)
        check("a folder that is not there", missing.returncode == 2 and b"cannot write" in missing.stderr)
        check("what is left behind", os.listdir(folder) == [])


main()
