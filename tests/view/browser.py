#!/usr/bin/env python3
"""Opens pages of `polyccl view` in headless Chromium and uses them.

browser.py POLYCCL OUTPUT-FOLDER. Exit status 77 (skipped) where there is no Chromium.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTILE = "</script><img src=x onerror=attacked=true><b>"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1400,860"]


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    print("skipped: no Chromium here (Debian: apt-get install chromium)")
    sys.exit(77)


def check(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what}: {seen!r}, not {wanted!r}")


def check_in(what, part, whole):
    if part not in whole:
        sys.exit(f"{what}: no {part!r} in {whole!r}")


def check_between(what, value, low, high):
    if not low <= value <= high:
        sys.exit(f"{what}: {value} is not in [{low}, {high}]")


class Case:
    """A page of a synthetic trace of which everything is known."""

    def __init__(self, browser, tool, folder, ranks, blocks, batches, name="synthetic ring"):
        self.browser, self.tool, self.folder = browser, tool, folder
        self.ranks, self.blocks, self.batches, self.name = ranks, blocks, batches, name
        self.steps = 2 * (ranks - 1) + 1 if ranks < 5 else 9

    def op(self, step):
        return "send" if step == 0 else "recv" if step == self.steps - 1 else ["send", "rrcs", "rrc", "rcs"][1 + step % 3]

    def make(self, path):
        make = [sys.executable, os.path.join(HERE, "make_trace.py")]
        trace = subprocess.run(make + [str(self.ranks), str(self.blocks), str(self.batches), self.name],
                               check=True, capture_output=True).stdout
        with open(path + ".json", "wb") as file:
            file.write(trace)
        subprocess.run([self.tool, "view", "--trace-in", path + ".json", "-o", path + ".html"], check=True)

    def run(self, label, box, searches, show=None):
        with tempfile.TemporaryDirectory() as temporary:
            path = os.path.join(temporary, "page")
            self.make(path)
            with open(path + ".html", encoding="utf-8") as file:
                page = file.read()
            wanted = {"box": box, "op": self.op(box[2]), "searches": searches, "show": show, "dark": label == "hostile",
                      "linkTime": 1.5 * self.steps}
            with open(os.path.join(HERE, "selftest.js"), encoding="utf-8") as file:
                script = file.read()
            page = page.replace("</body>", '<script type="application/json" id="wanted">' + json.dumps(wanted)
                                + "</script><script>" + script + "</script></body>")
            with open(path + ".html", "w", encoding="utf-8") as file:
                file.write(page)
            profile = [f"--user-data-dir={temporary}/profile"]
            dom = subprocess.run([self.browser, *FLAGS, *profile, "--dump-dom", f"file://{path}.html"], check=True,
                                 capture_output=True, timeout=100).stdout.decode()
            picture = os.path.join(self.folder, f"page-{label}.png")
            subprocess.run([self.browser, *FLAGS, *profile, f"--screenshot={picture}", f"file://{path}.html"], check=True,
                           capture_output=True, timeout=100)
            check_between("size of the screenshot", os.path.getsize(picture), 10000, 10000000)
        found = re.search(r'<script type="application/json" id="results">(.*?)</script>', dom, re.S)
        if not found:
            sys.exit(f"{label}: the page gave no results")
        results = json.loads(found.group(1))
        if "error" in results:
            sys.exit(f"{label}: {results['error']}")
        return results

    def count(self, test):
        """Boxes for which test(rank, block, batch, step, state) holds."""
        total = 0
        for r in range(self.ranks):
            for b in range(self.blocks):
                for m in range(self.batches):
                    for s in range(self.steps):
                        for state in ["busy"] + ([self.reason(m, s)] if s > 0 else []):
                            total += test(r, b, m, s, state)
        return total

    def reason(self, batch, step):
        sends = self.op(step) not in ("recv", "rrc")
        n = batch + step
        return "credit" if n % 5 == 0 and sends else "block" if n % 7 == 0 else "data"


def check_page(case, label, rows, show=None):
    rank, block, step, batch = 2, 1, 4, 1
    searches = ["rrcs", "rank:2 rrcs", "rank 1 tb 0 data", f"{case.name}.lua:12".split()[-1], "critical", "batch:1 step:3 busy",
                "nothing-of-this-name"]
    results = case.run(label, [rank, block, step, batch], searches, show)
    check("title", results["title"], case.name)
    check("injected elements", results["images"], 0)
    check("script in a name ran", results["attacked"], False)
    check("rows at first", results["rows"], rows)
    check("rows", results["rowsExpanded"], case.ranks * case.blocks)

    op = case.op(step)
    check("tip shown", results["tipShown"], True)
    for words in (op, f"where rank {rank}, thread block {block}, step {step}", f"source {case.name}.lua:{10 + step}",
                  f"micro-batch {batch}", f"from rank {rank - 1}, channel {block}",
                  f"sent by rank {rank - 1}, thread block {block}"):
        check_in("hover", words, results["hover"])
    if op != "rrc":
        check_in("hover", f"to rank {(rank + 1) % case.ranks}, channel {block}", results["hover"])
    reason = {"data": f"waits for data from rank {rank - 1}", "credit": f"waits for credit: rank {(rank + 1) % case.ranks}",
              "block": f"waits for thread block {(block + 1) % case.blocks}, step {step}"}
    check_in("hover on waiting", reason[case.reason(batch, step)], results["waitHover"])
    check("pixel of the box", "#" + "".join(f"{x:02x}" for x in results["pixel"]), results["paint"])

    check_between("zoom", results["zoom"], 0.4, 0.8)
    check_between("zoom keeps its place", results["zoomDrift"], 0, 1e-3)
    check_between("drag", results["dragDrift"], 0, 1e-3)
    check("selected by dragging", results["selectedByDrag"], False)
    check("selected by a click", results["selected"], [rank, block, step, batch, 0])
    check_in("details", f"{case.name}.lua:{10 + step}", results["details"])
    check_in("said", f"rank {rank}, thread block {block}, step {step}", results["said"])
    check("next box", results["right"][:4], [rank, block, step + 1, batch])
    check_between("its state", results["right"][4], 1, 3)
    check("who sent it", [results["sender"][0], results["sender"][1], results["sender"][3]], [rank - 1, block, batch])
    check_between("zoom to the box", results["entered"], 0.05, 0.5)
    low, high, duration = results["fit"]
    check_between("fit", low, -0.05 * duration, 0)
    check_between("fit", high, duration, 1.05 * duration)
    check("escape", results["afterEscape"], [True, True])

    by_line = {f"{case.name}.lua:12".split()[-1]: 2}
    counts = [case.count(lambda r, b, m, s, state: case.op(s) == "rrcs"),
              case.count(lambda r, b, m, s, state: r == 2 and case.op(s) == "rrcs"),
              case.count(lambda r, b, m, s, state: r == 1 and b == 0 and state == "data"),
              case.count(lambda r, b, m, s, state: s == by_line[searches[3]]),
              case.count(lambda r, b, m, s, state: r == 0 and b == 0 and state == "busy"),
              case.count(lambda r, b, m, s, state: m == 1 and s == 3 and state == "busy"), 0]
    check("matches", results["searches"], counts)
    check("matches said", results["found"], "0 found")
    check("cleared", results["cleared"], True)
    check("one rank collapsed", results["collapsedOne"], [1, (case.ranks - 1) * case.blocks + 1])
    check("all collapsed", results["collapsedAll"], case.ranks)
    check("theme", results["theme"], ["light", "dark", True])
    check("links", len(results["links"]), case.ranks if case.batches > 4 else len(results["links"]))
    first = int(results["links"][0][0][3:].split(" ")[0])  # the busiest: gpuN > ...
    check_in("hover on a link", f"gpu{first} > gpu{(first + 1) % case.ranks} (NVLink)", results["linkHover"])
    check_in("its rate in micro-batch 1", f"{(first + 1) % 5 * 25}", results["linkHover"].split(")")[1])
    boxes = case.count(lambda *_: True)
    for line in results["redraw"]:
        print(f"{label}: {boxes} boxes, {line['zoom']:g} of the time in view: {line['ms']:.1f} ms a redraw "
              f"({line['examined']} boxes examined, {line['drawn']} drawn singly, {line['rows']} rows)")
    check_between("boxes examined when zoomed in", results["redraw"][-1]["examined"], 1, 40 * results["redraw"][-1]["rows"])


BOTH = """
(function () {
  const {view, page} = window.polyccl, buttons = [...document.querySelectorAll("#sources button")], seen = [];
  const canvas = document.querySelector("#blocks canvas");
  const look = () => {
    const stats = window.polyccl.redraw(), boxes = view.shown.map(t => window.polyccl.boxRect(t, 0));
    const pixels = boxes.map(b => [...canvas.getContext("2d").getImageData(Math.round(b.x + b.width * 0.9), Math.round(b.y + 2), 1, 1).data].slice(0, 3));
    seen.push({shown: view.shown.map(t => t.source), examined: stats.examined, boxes, pixels, spends: document.querySelectorAll(".spend").length});
  };
  window.polyccl.setSpan(page.traces[0].record.begin[0] - 1, page.traces[0].record.end[0] + 1);
  look();
  for (const button of buttons) {
    button.click();
    window.polyccl.setSpan(page.traces[0].record.begin[0] - 1, page.traces[0].record.end[0] + 1);
    look();
  }
  const out = document.createElement("script");
  out.type = "application/json";
  out.id = "results";
  out.textContent = JSON.stringify({buttons: buttons.map(b => b.innerText), pressed: buttons.map(b => b.getAttribute("aria-pressed")), seen, counts: page.traces.map(t => t.kind.length),
                                    paint: page.ops[page.traces[0].kind[0]].light});
  document.body.append(out);
})();
"""


def check_both(browser, tool, folder):
    """A simulation beside a trace of itself that runs half as fast."""
    ring = os.path.join(HERE, "..", "..", "algorithms", "allreduce_ring.lua")
    simulate = [ring, "-p", "ranks=4", "--topology", "fully:4", "--size", "256k"]
    with tempfile.TemporaryDirectory() as temporary:
        path = os.path.join(temporary, "both")
        subprocess.run([tool, "view", *simulate, "--trace", path + ".json"], check=True)
        with open(path + ".json", encoding="utf-8") as file:
            trace = json.load(file)
        trace["otherData"]["source"] = "measured"
        for event in trace["traceEvents"]:
            if "ts" in event:
                event["ts"] *= 2
                event["dur"] = event.get("dur", 0) * 2
        with open(path + ".json", "w", encoding="utf-8") as file:
            json.dump(trace, file)
        subprocess.run([tool, "view", *simulate, "--trace-in", path + ".json", "-o", path + ".html"], check=True)
        with open(path + ".html", encoding="utf-8") as file:
            page = file.read().replace("</body>", "<script>" + BOTH + "</script></body>")
        with open(path + ".html", "w", encoding="utf-8") as file:
            file.write(page)
        flags = [*FLAGS, f"--user-data-dir={temporary}/profile"]
        dom = subprocess.run([browser, *flags, "--dump-dom", f"file://{path}.html"], check=True, capture_output=True,
                             timeout=100).stdout.decode()
        subprocess.run([browser, *flags, f"--screenshot={os.path.join(folder, 'page-both.png')}", f"file://{path}.html"],
                       check=True, capture_output=True, timeout=100)
    results = json.loads(re.search(r'id="results">(.*?)</script>', dom, re.S).group(1))
    check("buttons", results["buttons"], ["simulated", "measured", "both"])
    check("pressed at the end", results["pressed"], ["false", "false", "true"])
    check("shown", [s["shown"] for s in results["seen"]],
          [["simulated", "measured"], ["simulated"], ["measured"], ["simulated", "measured"]])
    check("bars", [s["spends"] for s in results["seen"]], [2, 1, 1, 2])
    check("records", results["counts"][0], results["counts"][1])
    simulated, measured = results["seen"][0]["boxes"]
    check("the measured half is below", measured["y"] >= simulated["y"] + simulated["height"], True)
    check_between("twice as long", measured["width"] / simulated["width"], 1.99, 2.01)
    check("colour of the simulated half", "#" + "".join(f"{x:02x}" for x in results["seen"][0]["pixels"][0]), results["paint"])


def main():
    browser, tool, folder = chromium(), sys.argv[1], sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    check_page(Case(browser, tool, folder, 4, 2, 3), "small", 8, [6, 16])
    check_page(Case(browser, tool, folder, 4, 2, 2, HOSTILE), "hostile", 8, [5, 14])
    check_page(Case(browser, tool, folder, 16, 8, 46), "large", 16, [0, 30])
    check_both(browser, tool, folder)


main()
