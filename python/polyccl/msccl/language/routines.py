"""Rings, for scripts that build larger programs from them."""

from .ir import Buffer
from .program import chunk


def allgather_ring_inplace(gpus, gpu_offset=0, index_offset=0, ch=0):
    """Each of `gpus` ranks from `gpu_offset` on sends its input round the ring of them."""
    for position in range(gpus):
        at = chunk(gpu_offset + position, Buffer.input, 0)
        for hop in range(1, gpus):
            at = at.copy(gpu_offset + (position + hop) % gpus, Buffer.output, index_offset + position, ch=ch)


def allreduce_ring_inplace(gpus, gpu_offset=0, index_offset=0, ch=0):
    """Chunk i of `gpus` ranks is summed round the ring from rank i on, and the sum goes round again."""
    for position in range(gpus):
        index = index_offset + position
        ring = [gpu_offset + (position + hop) % gpus for hop in range(gpus)]
        at = chunk(ring[0], Buffer.input, index)
        for rank in ring[1:]:
            at = chunk(rank, Buffer.input, index).reduce(at, ch=ch)
        for rank in ring[:-1]:
            at = at.copy(rank, Buffer.input, index, ch=ch)
