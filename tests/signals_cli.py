#!/usr/bin/env python3
"""What is interrupted leaves nothing behind: no process, no half-written file, nothing in /dev/shm.
usage: signals_cli.py POLYCCL"""
import os, signal, subprocess, sys, tempfile, time

polyccl = os.path.realpath(sys.argv[1])
root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
ring = os.path.join(root, "algorithms/allreduce_ring.lua")
failed = False
WAIT = 60  # seconds after which a process counts as left over; the machine may be busy


def wrong(what):
    global failed
    failed = True
    print(what, file=sys.stderr)


def members(group):
    """Processes of a process group that have not ended."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(pid))
    return found


def interrupt(arguments, number, whom, folder):
    before = set(os.listdir("/dev/shm"))
    child = subprocess.Popen([polyccl, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             stdin=subprocess.DEVNULL, start_new_session=True)
    forks = arguments[0] == "run" and "--threads" not in arguments
    deadline = time.monotonic() + (WAIT if forks else 0.6)
    while time.monotonic() < deadline and child.poll() is None and not (forks and len(members(child.pid)) >= 3):
        time.sleep(0.01)  # until there are ranks, or until it has had time to begin
    time.sleep(0.1)
    if child.poll() is not None:
        wrong(f"{arguments} ended before it could be interrupted: {child.stderr.read()}")
        return
    (os.killpg if whom == "all" else os.kill)(child.pid, number)
    try:
        child.wait(WAIT)
    except subprocess.TimeoutExpired:
        wrong(f"{arguments} goes on after {number.name}")
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    deadline = time.monotonic() + WAIT
    while members(child.pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = members(child.pid)
    if left:
        wrong(f"{arguments} after {number.name}: processes {left} are left")
        os.killpg(child.pid, signal.SIGKILL)
    if child.returncode == 0:
        wrong(f"{arguments} after {number.name}: exit status 0")
    shm = set(os.listdir("/dev/shm")) - before
    files = [name for name in os.listdir(folder) if name != "ring.plan"]
    if number != signal.SIGKILL and files:
        wrong(f"{arguments} after {number.name}: {files} are left")
    if [name for name in shm if "polyccl" in name]:
        wrong(f"{arguments} after {number.name}: /dev/shm has {shm}")
    for name in files:
        os.unlink(os.path.join(folder, name))


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([polyccl, "compile", ring, "-p", "ranks=2", "-o", os.path.join(folder, "ring.plan")], check=True)
    large = ["--size", "1m", "--iters", "100000000"]
    commands = [
        ["run", "ring.plan", *large, "--trace", "trace.json"],
        ["run", "ring.plan", *large, "--threads", "--trace", "trace.json"],
        ["run", "ring.plan", *large, "--alloc", "shared"],
        ["compile", ring, "-p", "ranks=8", "--policy", "state", "--schedule", "best", "--topology", "fully:8", "--seconds",
         "60", "-o", "out.plan"],
        ["simulate", "ring.plan", "--topology", "ring:2", "--size", "1k", "--micro-batches", "300000000"],
        ["calibrate", "-o", "here.json"],
    ]
    for arguments in commands:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            for whom in ("all", "one") if arguments[0] == "run" else ("one",):
                interrupt(arguments, number, whom, folder)
sys.exit(failed)
