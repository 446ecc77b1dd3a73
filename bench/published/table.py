#!/usr/bin/env python3
"""table.py POLYCCL [PART ...] > table.md: published figures of MSCCLang and ResCCL beside simulated ones.

Parts: ring hierarchical twostep next resccl; all of them when none is named (some two minutes on two cores).

Both sides of every ratio are simulated on the same machine model. The baseline is NCCL: its ring and tree as PolyCCL
programs (beside this script), with as many channels as NCCL takes for a size, in the quicker of its two algorithms and
three protocols (NCCL chooses by a cost model of its own; taking the quicker favours NCCL). Ours is the quickest of the
listed programs over protocols and instances, as their authors tuned them. Nothing is fitted: machine figures are those
that `polyccl topology` names the sources of.
"""

import concurrent.futures
import functools
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ALGORITHMS = os.path.join(HERE, "..", "..", "algorithms")
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
PROTOCOLS = ("LL", "LL128", "Simple")

# NCCL takes a channel for every so many bytes: threads of a block x bytes a thread (x ranks for the ring).
NCCL_CHANNEL_BYTES = {"LL": 512 * 8, "LL128": 640 * 8, "Simple": 512 * 64}

polyccl = sys.argv[1] if len(sys.argv) > 1 else "polyccl"


@functools.lru_cache(maxsize=None)
def simulate(program, topology, size, protocol=None, params=(), batches=None):
    """Microseconds."""
    path = program if os.path.isabs(program) else os.path.join(HERE, program)
    command = [polyccl, "simulate", path, "--topology", topology, "--size", str(size)]
    command += ["--protocol", protocol] if protocol else []
    command += ["--micro-batches", str(batches)] if batches else []
    for name, value in params:
        command += ["-p", f"{name}={value}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {run.stderr.strip()}")
    for line in run.stdout.splitlines():
        if line.startswith("time "):
            return float(line.split()[1])
    raise SystemExit(f"{' '.join(command)}: no time in the output")


def shipped(name):
    return os.path.join(ALGORITHMS, name + ".lua")


def best(runs):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return min(pool.map(lambda run: simulate(*run), runs))


def nccl_channels(algorithm, protocol, ranks, size, most):
    per_channel = NCCL_CHANNEL_BYTES[protocol] * (ranks if algorithm == "ring" else 1)
    return max(1, min(most, size // per_channel))


def nccl_allreduce(topology, nodes, gpus, size, most):
    runs = []
    for algorithm in ("ring", "tree"):
        for protocol in PROTOCOLS:
            channels = nccl_channels(algorithm, protocol, nodes * gpus, size, most)
            params = (("nodes", nodes), ("gpus", gpus), ("channels", channels))
            runs.append((f"nccl_{algorithm}.lua", topology, size, protocol, params))
    return best(runs)


def ours(topology, size, programs, instances, protocols=PROTOCOLS):
    return best([
        (shipped(name), topology, size, protocol, params + (("instances", count),))
        for name, params in programs for protocol in protocols for count in instances
    ])


def nccl_alltoall_plan(ranks, channels, folder):
    """Sends and receives for every pair, dealt out to a fixed number of thread blocks; as a plan, because one of these
    blocks serves many peers in turn."""
    path = os.path.join(folder, f"nccl_alltoall_{ranks}.plan")
    with open(path, "w") as out:
        out.write(f'polyccl-plan 1\nname "nccl_alltoall"\ncollective alltoall\nranks {ranks}\nchunks 1\n')
        for r in range(ranks):
            out.write(f"rank {r} scratch 0\n")
            for c in range(channels):
                out.write("tb\n")
                for o in range(1 + c, ranks, channels):
                    out.write(f"send i{(r + o) % ranks} x1 to {(r + o) % ranks}.0\n")
            for c in range(channels):
                out.write("tb\n")
                for o in range(1 + c, ranks, channels):
                    out.write(f"recv o{(r - o) % ranks} x1 from {(r - o) % ranks}.0\n")
            out.write(f"tb\ncopy i{r} o{r} x1\n")
    return path


def size_text(size):
    for unit, name in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def row(what, size, published, baseline, mine):
    print(f"| {what} | {size_text(size)} | {published} | {baseline:.1f} | {mine:.1f} | {baseline / mine:.2f}x |", flush=True)


def ring():
    """One node, ring against NCCL; and the public measurements of one 8xA100 node."""
    topology = "ndv4:1"
    instances = (1, 2, 4, 8, 16, 24)
    ring_only = [("allreduce_ring", (("ranks", 8),))]
    for size, published in ((4 * KIB, ""), (32 * KIB, "up to 1.9x"), (256 * KIB, "up to 1.9x"), (1 * MIB, "up to 1.9x"),
                            (3 * MIB, "up to 1.9x"), (32 * MIB, "1.0x (24 instances)"), (256 * MIB, "1.0x (24 instances)")):
        size -= size % 768
        row("ring AllReduce, 1x8 A100, against NCCL", size, published, nccl_allreduce(topology, 1, 8, size, 24),
            ours(topology, size, ring_only, instances))
    any_program = ring_only + [("allreduce_allpairs", (("ranks", 8),)), ("allreduce_halving_doubling", (("ranks", 8),))]
    for size, nccl, msccl in ((4 * KIB, 20.6, 17.4), (64 * KIB, 36.0, 19.9), (1 * MIB, 71.8, 38.1), (4 * MIB, 106, 82),
                              (32 * MIB, 379, 378)):
        row("best AllReduce, 1x8 A100, against NCCL", size, f"{nccl / msccl:.2f}x ({nccl:g} / {msccl:g} us)",
            nccl_allreduce(topology, 1, 8, size, 24), ours(topology, size, any_program, instances))


def hierarchical():
    topology = "ndv4:2"
    programs = [("allreduce_hierarchical", (("nodes", 2), ("gpus", 8)))]
    for size, published in ((64 * KIB, "up to 1.4x"), (512 * KIB, "up to 1.4x"), (4 * MIB, ""), (64 * MIB, "")):
        row("hierarchical AllReduce, 2x8 A100, against NCCL", size, published,
            nccl_allreduce(topology, 2, 8, size, 24), ours(topology, size, programs, (1, 2, 4, 8)))


def two_step():
    topology, nodes, gpus = "ndv4:32", 32, 8
    params = (("nodes", nodes), ("gpus", gpus))
    for size, published in ((8 * MIB, "1.3x"), (128 * MIB, "1.3x"), (1 * GIB, "1.3x")):
        by_hand = sum(simulate(f"cuda_alltoall_{half}.lua", topology, size, "Simple", params) for half in ("inside", "across"))
        row("two-step AllToAll, 32x8 A100, against the same in two kernels", size, published, by_hand,
            ours(topology, size, [("alltoall_two_step", params)], (1, 2), ("LL128", "Simple")))
    topology, nodes = "ndv4:64", 64
    params = (("nodes", nodes), ("gpus", gpus))
    with tempfile.TemporaryDirectory() as folder:
        plan = nccl_alltoall_plan(nodes * gpus, 16, folder)
        for size, published in ((8 * MIB, "5.12x (5973 / 1166 us)"), (1 * GIB, "1.24x (70.7 / 57.0 ms)")):
            batches = 8 if size == GIB else None  # larger messages than fit into slots, for the sake of time
            row("two-step AllToAll, 64x8 A100, against NCCL's", size, published, simulate(plan, topology, size),
                best([(shipped("alltoall_two_step"), topology, size, protocol, params, batches)
                      for protocol in ("LL128", "Simple")]))


def next_rank():
    topology = "ndv4:3"
    for size, published in ((1 * MIB, ""), (16 * MIB, ""), (128 * MIB, "14.5x"), (512 * MIB, "14.5x")):
        plain = best([("nccl_next.lua", topology, size, protocol, (("channels", channels),))
                      for protocol in PROTOCOLS for channels in (1, 2, 4)])
        row("AllToNext, 3x8 A100, against plain sends", size, published, plain,
            ours(topology, size, [("alltonext", (("nodes", 3), ("gpus", 8)))], (1, 4, 8), ("LL128", "Simple")))


def by_policy(program, topology, size, params, policy):
    """The quickest over instances, microseconds."""
    command = [polyccl, "compare", shipped(program), "--time", "--topology", topology, "--size", str(size)]
    command += ["--policy", policy, "--instances", "1,2,4,8,16"]
    for name, value in params:
        command += ["-p", f"{name}={value}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {run.stderr.strip()}")
    return min(float(time) for time in run.stdout.splitlines()[-1].split()[1:])


def resccl():
    for machines in (2, 4):
        topology = f"a100-roce:{machines}"
        params = (("nodes", machines), ("gpus", 8))
        for size in (16 * MIB, 256 * MIB):
            mine = by_policy("allreduce_hierarchical", topology, size, params, "state")
            row(f"ResCCL, hierarchical AllReduce, {machines}x8 A100 RoCE, against NCCL", size, "up to 2.5x",
                nccl_allreduce(topology, machines, 8, size, 16), mine)
            row(f"the same, against policy connection (MSCCL)", size, "up to 1.6x",
                by_policy("allreduce_hierarchical", topology, size, params, "connection"), mine)


def main():
    parts = {"ring": ring, "hierarchical": hierarchical, "twostep": two_step, "next": next_rank, "resccl": resccl}
    wanted = sys.argv[2:] or list(parts)
    for name in wanted:
        if name not in parts:
            raise SystemExit(f"table.py: no part {name} (known: {' '.join(parts)})")
    print("| what | size | published | baseline, us | ours, us | simulated |")
    print("|---|---|---|---|---|---|", flush=True)
    for name in wanted:
        parts[name]()


main()
