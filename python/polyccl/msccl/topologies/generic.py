"""Shapes of any size."""

from .topology import from_function


def fully_connected(num_nodes):
    return from_function(f"fully connected, {num_nodes} ranks", num_nodes, lambda src, dst: 1)


def hub_and_spoke(num_nodes):
    """Every rank behind one port of a switch."""
    switches = []
    for rank in range(num_nodes):
        rest = [other for other in range(num_nodes) if other != rank]
        switches += [([rank], rest, 1, f"out of {rank}"), (rest, [rank], 1, f"into {rank}")]
    return from_function(f"hub and spoke, {num_nodes} ranks", num_nodes, lambda src, dst: 1, switches)


def ring(num_nodes):
    return from_function(f"ring, {num_nodes} ranks", num_nodes,
                         lambda src, dst: int((src - dst) % num_nodes in (1, num_nodes - 1)))


def line(num_nodes):
    return from_function(f"line, {num_nodes} ranks", num_nodes, lambda src, dst: int(abs(src - dst) == 1))


def star(num_nodes, non_blocking=True):
    """Rank 0 in the middle."""
    points = list(range(1, num_nodes))
    switches = [] if non_blocking else [([0], points, 1, "out of the middle"), (points, [0], 1, "into the middle")]
    return from_function(f"star, {num_nodes} ranks", num_nodes, lambda src, dst: int(0 in (src, dst)), switches)
