#!/usr/bin/env python3
"""usage: docs_cli.py POLYCCL: the command lines of README.md, docs/ and the manual pages work as they are written, one
after another in a folder that has the programs which the pages name. Those with ..., | or capitals are synopses."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap

SOURCE = pathlib.Path(__file__).resolve().parent.parent
TOOL = str(pathlib.Path(sys.argv[1]).resolve())
PAGES = ["README.md", "docs/language.md", "docs/coming-from-msccl-tools.md", "docs/topology.md", "docs/view.md"]


def commands(page):
    text = page.read_text()
    text = re.sub(r" *\\e\n *", " ", text)  # a manual page's continued line
    for line in re.findall(r"^ *(?:\$ )?polyccl +([a-z]+ .*)", text, re.M):
        line = re.split(r" +#|   +[a-z]", line)[0] if not line.startswith(("check  ", "run  ", "verify  ")) else \
            re.split(r" +#", line)[0]
        words = line.split()
        if not re.search(r"\.\.\.|\||\b[A-Z]{4,}\b", line) and words[0] != "calibrate":
            yield words


def prepare(folder):
    for program in (SOURCE / "algorithms").glob("*.lua"):
        shutil.copy(program, folder)
    (folder / "algorithms").symlink_to(SOURCE / "algorithms")
    readme = (SOURCE / "README.md").read_text()
    ring = re.search(r"^## A program\n\n((?:    .*\n)+)", readme, re.M).group(1)
    (folder / "ring.lua").write_text(textwrap.dedent(ring))
    two = re.search(r"```lua\n(.*?)```", (SOURCE / "docs/language.md").read_text(), re.S).group(1)
    (folder / "two.lua").write_text(two)
    for name, program in (("hierarchical", "allreduce_hierarchical"), ("tree", "broadcast_tree")):
        shutil.copy(SOURCE / f"algorithms/{program}.lua", folder / f"{name}.lua")
    for name, machine in (("system", "nccl_a100"), ("vm", "nccl_vm")):
        shutil.copy(SOURCE / f"tests/topology/{machine}.xml", folder / f"{name}.xml")


def run(folder, words):
    """None: it works; else what it says."""
    done = subprocess.run([TOOL, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
    return None if done.returncode == 0 else f"polyccl {' '.join(words)}: {done.stderr.decode()[:300]}"


def main():
    wrong, tried = [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        before = [["compile", "ring.lua", "-p", "ranks=8", "--format", "xml", "-o", "plan.xml"],
                  ["compile", "ring.lua", "-p", "ranks=4", "--format", "xml", "-o", "ring.xml"]]
        wrong += filter(None, (run(folder, words) for words in before))
        for page in [SOURCE / page for page in PAGES] + sorted((SOURCE / "docs/man").glob("*.1")):
            for words in commands(page):
                # Short runs; what the page leaves to the reader is a run to look at.
                words = [re.sub(r"^(8|1k):(16|64)m(:4)?$", "1k:4k", word) for word in words]
                if words[0] == "run" and "--size" not in words:
                    words += ["--size", "1k"]
                if "--trace-in" in words:
                    ranks = "2" if "ranks=2" in words else "4"
                    wrong += filter(None, [run(folder, ["run", "ring.lua", "--ranks", ranks, "--size", "8k", "--iters",
                                                        "2", "--trace", "run.json"])])
                tried += 1
                problem = run(folder, words)
                if problem:
                    wrong.append(f"{page.relative_to(SOURCE)}: {problem}")
    if tried < 30:
        wrong.append(f"only {tried} command lines were found")
    sys.exit("\n".join(wrong) if wrong else 0)


main()
