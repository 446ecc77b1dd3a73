#!/usr/bin/env python3
"""Every command has a manual page, every option of its source stands there, and nothing else; mandoc finds no fault.

manual.py POLYCCL SOURCE-FOLDER
"""
import os
import re
import shutil
import subprocess
import sys

TOOL, SOURCE = sys.argv[1:3]
MAN = os.path.join(SOURCE, "docs", "man")


def read(*parts):
    with open(os.path.join(SOURCE, *parts), encoding="utf-8") as file:
        return file.read()


def options_of(command):
    """What the command itself says that it takes."""
    lines = subprocess.run([TOOL, "help", "--options"], check=True, capture_output=True).stdout.decode().splitlines()
    return {words[1][2:] for words in map(str.split, lines) if words[0] == command and words[1].startswith("--")}


def main():
    listed = subprocess.run([TOOL, "help"], check=True, capture_output=True).stdout.decode()
    commands = re.findall(r"^  (\w+)  ", listed.split("Commands:")[1].split("\n\n")[0], re.M)
    pages = {name for name in os.listdir(MAN) if name.endswith(".1")}
    faults = []
    wanted = {"polyccl.1"} | {f"polyccl-{c}.1" for c in commands}
    faults += [f"{name}: no such page" for name in sorted(wanted - pages)]
    faults += [f"{name}: no such command" for name in sorted(pages - wanted)]
    overview = read("docs", "man", "polyccl.1")
    for command in commands:
        if f"polyccl-{command}.1" not in pages:
            continue
        page = read("docs", "man", f"polyccl-{command}.1")
        documented = set(re.findall(r"Fl Fl ([a-z][a-z-]*)", page))
        for name in sorted(options_of(command) - documented):
            faults.append(f"polyccl-{command}.1 does not know --{name}")
        for name in sorted(documented - options_of(command) - {"help"}):
            faults.append(f"polyccl-{command}.1: the command has no --{name}")
        if f".It Xr polyccl-{command} 1" not in overview:
            faults.append(f"polyccl.1 does not list {command}")
    if shutil.which("mandoc"):
        for name in sorted(pages):
            lint = subprocess.run(["mandoc", "-Tlint", "-W", "style", os.path.join(MAN, name)], capture_output=True)
            for line in lint.stdout.decode().splitlines():
                other = re.search(r"referenced manual not found: Xr (\S+) 1", line)
                if not other or other.group(1) + ".1" not in pages:  # ours are found once they are installed
                    faults.append(line)
    else:
        print("mandoc is not here: pages are not linted")
    if faults:
        sys.exit("\n".join(faults))


main()
