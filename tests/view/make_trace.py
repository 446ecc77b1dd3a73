#!/usr/bin/env python3
"""Writes a trace of a ring AllReduce with any number of boxes, in the format of docs/view.md.

make_trace.py RANKS BLOCKS BATCHES [HOSTILE-NAME] > trace.json

Every box is known beforehand: rank r, thread block b, micro-batch m and step s start at a time that is computed from
them, so that a test can say what must stand in the page. A step waits 0.25 us (for data; every 5th for credit, every
7th for a block) and then works 0.75 us.
"""
import json
import sys

OPS = ["send", "rrcs", "rrc", "rcs", "recv"]


def main():
    ranks, blocks, batches = (int(x) for x in sys.argv[1:4])
    name = sys.argv[4] if len(sys.argv) > 4 else "synthetic ring"
    steps = 2 * (ranks - 1) + 1 if ranks < 5 else 9
    links = [{"name": f"gpu{r} > gpu{(r + 1) % ranks} (NVLink)", "GB/s": 100} for r in range(ranks)]
    out = sys.stdout
    header = {"format": "polyccl-trace 1", "name": name, "source": "measured", "links": links}
    out.write('{"otherData":' + json.dumps(header).replace("</", "<\\/") + ',\n"traceEvents":[')
    first = True

    def emit(event):
        nonlocal first
        out.write(("\n" if first else ",\n") + json.dumps(event))
        first = False

    for r in range(ranks):
        for b in range(blocks):
            for m in range(batches):
                for s in range(steps):
                    at = (m * steps + s) * 1.0 + 0.01 * r + 0.001 * b
                    op = OPS[0] if s == 0 else OPS[4] if s == steps - 1 else OPS[1 + s % 3]
                    args = {"step": s, "batch": m, "op": op, "count": 1 + s % 2, "at": f"{name}.lua:{10 + s}"}
                    if op != "recv":
                        args["src" if op in ("send", "rrc", "rrcs") else "dst"] = f"i{s}"
                        if op != "rrc":
                            args["to"] = f"{(r + 1) % ranks}.{b}"
                    if op != "send":
                        args["from"] = f"{(r - 1) % ranks}.{b}"
                    if op in ("rrc", "rrcs", "recv", "rcs"):
                        args["dst"] = f"o{s}"
                    n = s + m
                    wait = "wait credit" if n % 5 == 0 and "to" in args else "wait block" if n % 7 == 0 else "wait data"
                    if wait == "wait block":
                        args["wait"] = f"{(b + 1) % blocks}.{s}"
                    if s > 0:
                        emit({"ph": "X", "name": wait, "cat": wait, "pid": r, "tid": b, "ts": round(at, 6), "dur": 0.25,
                              "args": args})
                    emit({"ph": "X", "name": op, "cat": "busy", "pid": r, "tid": b, "ts": round(at + 0.25, 6),
                          "dur": 0.75, "args": {**args, "critical": r == 0 and b == 0}})
        for m in range(batches):
            emit({"ph": "C", "pid": ranks, "id": r, "name": links[r]["name"], "ts": m * steps,
                  "args": {"GB/s": (r + m) % 5 * 25}})
    out.write("\n]}\n")


main()
