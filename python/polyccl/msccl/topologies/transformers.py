"""Functions that make a topology from another."""

from .topology import Topology, from_function


def reverse_topology(topology):
    """Reverses every link and switch."""
    switches = [(dsts, srcs, bandwidth, f"{name}, reversed") for srcs, dsts, bandwidth, name in topology.switches]
    return Topology(f"{topology.name}, reversed", [list(row) for row in zip(*topology.links)], switches)


def binarize_topology(topology):
    """Keeps the links, with bandwidth 1, and drops the switches."""
    return from_function(f"{topology.name}, links only", topology.num_nodes(),
                         lambda src, dst: int(topology.link(src, dst) > 0))
