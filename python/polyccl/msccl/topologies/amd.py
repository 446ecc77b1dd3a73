"""Machines with xGMI."""

from .topology import from_function

_AMD8_STRONG = {(0, 2), (0, 3), (0, 5), (1, 4), (1, 6), (1, 7), (2, 3), (2, 5), (3, 5), (4, 6), (4, 7), (6, 7)}


def amd4():
    """A square, in which each GPU is linked to two others."""
    return from_function("4 AMD GPUs", 4, lambda src, dst: int(src + dst != 3))


def amd8():
    return from_function("8 AMD GPUs", 8, lambda src, dst: 6 if (min(src, dst), max(src, dst)) in _AMD8_STRONG else 5)
