"""Machines with NVLink."""

import subprocess

from .topology import Topology, from_function

# DGX-1 with V100: pairs of GPUs with two NVLinks between them, and with one.
_DGX1_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_DGX1_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))


def dgx1():
    lanes = {pair: 2 for pair in _DGX1_DOUBLE} | {pair: 1 for pair in _DGX1_SINGLE}
    return from_function("DGX-1", 8, lambda src, dst: lanes.get((min(src, dst), max(src, dst)), 0))


def dgx_a100():
    """12 NVLinks from each GPU into the switch."""
    return from_function("DGX A100", 8, lambda src, dst: 12)


def nvlink_only(nvidia_smi_topo=None):
    """The NVLinks that `nvidia-smi topo -m` lists. The caller may pass its output."""
    if nvidia_smi_topo is None:
        command = ["nvidia-smi", "topo", "-m"]
        nvidia_smi_topo = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [row.split() for row in nvidia_smi_topo.splitlines()[1:] if row.startswith("GPU")]
    cells = [row[1:1 + len(rows)] for row in rows]
    return Topology("NVLink only", [[int(cell[2:]) if cell.startswith("NV") else 0 for cell in row] for row in cells])
