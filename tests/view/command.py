#!/usr/bin/env python3
"""polyccl view as a user meets it: what it writes, and what it says to bad input.

command.py POLYCCL SOURCE-FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile
import xml.dom.minidom

TOOL, SOURCE = sys.argv[1:3]
RING = os.path.join(SOURCE, "algorithms", "allreduce_ring.lua")


def run(*args, status=0, **keywords):
    done = subprocess.run([TOOL, "view", *args], capture_output=True, timeout=60, **keywords)
    if done.returncode != status:
        sys.exit(f"view {' '.join(args)}: status {done.returncode}, not {status}: {done.stderr.decode()}")
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def check(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what}: {seen!r}, not {wanted!r}")


def svg(*args):
    text = run("--svg", *args)
    document = xml.dom.minidom.parseString(text)
    check("root", document.documentElement.tagName, "svg")
    check("the same again", run("--svg", *args), text)
    return document


def titles(document):
    return [node.firstChild.data for node in document.getElementsByTagName("title")]


def page_data(text):
    start = text.index('id="data">') + len('id="data">')
    return json.loads(text[start:text.index("</script>", start)])


def pictures():
    found = titles(svg(RING, "-p", "ranks=4"))
    check("title", found[0], "allreduce_ring: allreduce on 4 ranks")
    check("boxes", len(found) - 1, 28)
    found = titles(svg(RING, "-p", "ranks=4", "--rank", "2"))
    check("boxes of a rank", [t.startswith("rank 2, ") for t in found[1:]], [True] * 7)
    found = titles(svg(RING, "-p", "ranks=4", "--chunk=3"))
    check("the way of chunk 3", [t.split(",")[0].split(" holds")[0] for t in found[1:]],
          [f"rank {r}" for r in (0, 1, 2, 3, 0, 1, 2)])
    svg(RING, "-p", "ranks=4", "--topology", "fully:4", "--size", "64k")
    svg(RING, "-p", "ranks=4", "--topology", "fully:4", "--size", "64k", "--rank", "1")


def traces(folder):
    path = os.path.join(folder, "trace.json")
    simulate = [RING, "-p", "ranks=4", "--topology", "fully:4", "--size", "4m", "--micro-batches", "3"]
    check("--trace alone prints nothing", run(*simulate, "--trace", path), "")
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    busy = [e for e in events if e["ph"] == "X" and e["cat"] == "busy"]
    check("a busy event per step and micro-batch", sorted((e["pid"], e["args"]["step"], e["args"]["batch"]) for e in busy),
          [(r, s, m) for r in range(4) for s in range(7) for m in range(3)])
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    check("an arrow per message", (len(starts), starts.keys() == ends.keys()), (4 * 6 * 3, True))
    for key, start in starts.items():
        check("an arrow of the ring", ends[key]["pid"], (start["pid"] + 1) % 4)
        if ends[key]["ts"] < start["ts"]:
            sys.exit(f"arrow {key} goes back in time")
    if not [e for e in busy if e["args"].get("critical")] or not [e for e in events if e["ph"] == "C"]:
        sys.exit("no critical path or no links in the trace")
    last = max(e["ts"] + e["dur"] for e in busy)

    page = page_data(run(*simulate))
    check("one trace", [t["source"] for t in page["traces"]], ["simulated"])
    check("same duration", abs(page["traces"][0]["duration"] - last) < 1e-3, True)
    facts = dict(page["facts"])
    check("facts", (facts["ranks"], facts["size"], facts["micro-batches"], facts["topology"]), ("4", "4 MiB", "3", "fully:4"))

    measured = path + ".measured"
    trace["otherData"]["source"] = "measured"
    with open(measured, "w", encoding="utf-8") as file:
        json.dump(trace, file)
    page = page_data(run(*simulate, "--trace-in", measured))
    check("two traces", [t["source"] for t in page["traces"]], ["simulated", "measured"])
    check("same records", page["traces"][0]["record"]["step"], page["traces"][1]["record"]["step"])
    check("same blocks", page["traces"][0]["block"], page["traces"][1]["block"])
    check("same steps", page["traces"][0]["step"], page["traces"][1]["step"])


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def bad_input(folder):
    racy = write(os.path.join(folder, "bad.plan"),
                 'polyccl-plan 1\nname "x"\ncollective allreduce\nranks 2\nchunks 1\n'
                 "rank 0 scratch 0\n tb\n  recv o0 x1 from 1.0\nrank 1 scratch 0\n tb\n  send i0 x1 to 0.0\n")
    text = write(os.path.join(folder, "cut.json"), '{"traceEvents":[{"ph":"X"')
    good = os.path.join(folder, "good.plan")
    subprocess.run([TOOL, "compile", RING, "-p", "ranks=4", "-o", good], check=True)
    page = os.path.join(folder, "page.html")
    for args, words in (
            ([], "a plan, a program or --trace-in is missing"),
            ([RING], "a page shows times; it needs --topology"),
            ([RING, "--svg", "--rank", "99"], "ranks 0 to "),
            ([RING, "--svg", "--chunk", "99999"], "chunks 0 to "),
            ([RING, "--svg", "--chunk", "-1"], '--chunk expects a number from 0 to 2147483647, not "-1"'),
            ([RING, "--svg", "--rank", "0", "--chunk", "0"], "--chunk and --rank exclude each other"),
            ([RING, "--rank", "0"], "--rank needs --svg"),
            ([RING, "--svg", "--rank="], '--rank expects a number from 0 to 2147483647, not ""'),
            ([RING, "--topology", "ndv4:1", "--size", "12x"], '--size expects a number of bytes from 0 to 1073741824g, not "12x"'),
            ([RING, "--topology", "no-such-machine"], "no-such-machine"),
            ([RING, "--topology", "ndv4:1", "--protocol", "LL9"], '--protocol expects Simple, LL or LL128, not "LL9"'),
            ([RING, "--topology", "fully:2", "-p", "ranks=4"], ""),
            ([RING, "--trace", page], "--trace writes a simulation; it needs --topology"),
            ([RING, "--svg", "--fast"], 'unexpected argument "--fast"'),
            ([RING, RING, "--svg"], "unexpected argument"),
            ([RING, "--svg", "-p", "ranks"], "-p expects NAME=VALUE"),
            ([good, "--svg", "-p", "ranks=4"], "it has no parameters (-p ranks=...)"),
            ([racy, "--svg"], "bad.plan: "),
            (["/nonexistent/x.lua", "--svg"], "/nonexistent/x.lua"),
            (["--trace-in", "/nonexistent/x.json"], "/nonexistent/x.json: cannot read"),
            (["--trace-in", text], "cut.json:1: "),
            (["--trace-in", text, "--topology", "ndv4:1"], "--topology needs a plan or a program"),
            ([RING, "--svg", "-o", "/nonexistent/x.svg"], "/nonexistent/x.svg: cannot write: No such file or directory"),
    ):
        said = run(*args, *([] if "-o" in args else ["-o", page]), status=2)
        if words not in said or said.count("\n") != 1:
            sys.exit(f"view {' '.join(args)} says {said!r}, not {words!r}")
    check("what is left behind", sorted(os.listdir(folder)), ["bad.plan", "cut.json", "good.plan"])
    check("a plan is drawn as its program is", run(good, "--svg"), run(RING, "-p", "ranks=4", "--svg"))
    run(good, "--svg", "-o", "/dev/null")
    check("a device stays one", os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), True)
    with open("/dev/full", "wb") as full:
        done = subprocess.run([TOOL, "view", good, "--svg"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    check("a full disk", (done.returncode, b"cannot write" in done.stderr), (1, True))


def main():
    pictures()
    with tempfile.TemporaryDirectory() as folder:
        traces(folder)
    with tempfile.TemporaryDirectory() as folder:
        bad_input(folder)


main()
