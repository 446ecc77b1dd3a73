"""Topologies from topologies."""

from .topology import Topology, from_function


def reverse_topology(topology):
    """Every link and switch the other way round."""
    switches = [(dsts, srcs, bandwidth, f"{name}, reversed") for srcs, dsts, bandwidth, name in topology.switches]
    return Topology(f"{topology.name}, reversed", [list(row) for row in zip(*topology.links)], switches)


def binarize_topology(topology):
    """Links of bandwidth 1, no switches."""
    return from_function(f"{topology.name}, links only", topology.num_nodes(),
                         lambda src, dst: int(topology.link(src, dst) > 0))
