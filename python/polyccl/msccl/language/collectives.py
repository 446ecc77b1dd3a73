"""The collectives that programs implement. A script's own collective derives from Collective: init_buffers() says what
each rank holds before, check() says whether the buffers are right afterwards."""

from . import *
from .chunk import Chunk, ReduceChunk
from .ir import Buffer


class Collective:
    name = "custom"

    def __init__(self, num_ranks, chunk_factor, inplace):
        self.num_ranks = num_ranks
        self.chunk_factor = chunk_factor
        self.inplace = inplace

    def init_buffers(self):
        """Returns for each rank a dict from Buffer.input and Buffer.output to lists of Chunk, or None for nothing."""
        raise NotImplementedError(f"{type(self).__name__} has no init_buffers()")

    def check(self, prog):
        """Returns whether prog.buffers[rank][buffer][index] is right everywhere."""

    def get_buffer_index(self, rank, buffer, index):
        """Returns the buffer and index where `index` of `buffer` really lies, because a buffer may lie in another."""
        return buffer, index

    def _agree(self, prog, buffer, first, expected):
        """Compares the contents of `buffer` from first(rank) on with the list expected(rank), on each rank."""
        right = True
        for rank in range(self.num_ranks):
            held, start = prog.buffers[rank][buffer], first(rank)
            for index, chunk in enumerate(expected(rank)):
                if held[start + index] != chunk:
                    print(f"rank {rank} {buffer.name}[{start + index}] should hold {chunk}, not {held[start + index]}")
                    right = False
        return right

    def _sum(self, index):
        return ReduceChunk(-1, [Chunk(rank, index) for rank in range(self.num_ranks)])


class AllReduce(Collective):
    name = "allreduce"

    def init_buffers(self):
        buffers = []
        for rank in range(self.num_ranks):
            held = [Chunk(rank, index, -1, index) for index in range(self.chunk_factor)]
            buffers.append({Buffer.input: held, Buffer.output: held if self.inplace else [None] * self.chunk_factor})
        return buffers

    def check(self, prog):
        sums = [self._sum(index) for index in range(self.chunk_factor)]
        return self._agree(prog, Buffer.output, lambda rank: 0, lambda rank: sums)

    def get_buffer_index(self, rank, buffer, index):
        return (Buffer.input if self.inplace and buffer is Buffer.output else buffer), index


class AllGather(Collective):
    name = "allgather"

    def init_buffers(self):
        buffers = []
        for rank in range(self.num_ranks):
            first = rank * self.chunk_factor
            held = [Chunk(rank, index, -1, first + index) for index in range(self.chunk_factor)]
            output = [None] * (self.num_ranks * self.chunk_factor)
            if self.inplace:
                output[first:first + self.chunk_factor] = held
            buffers.append({Buffer.input: held, Buffer.output: output})
        return buffers

    def check(self, prog):
        gathered = [Chunk(rank, index) for rank in range(self.num_ranks) for index in range(self.chunk_factor)]
        return self._agree(prog, Buffer.output, lambda rank: 0, lambda rank: gathered)

    def get_buffer_index(self, rank, buffer, index):
        if self.inplace and buffer is Buffer.input:
            return Buffer.output, rank * self.chunk_factor + index
        return buffer, index


class ReduceScatter(Collective):
    name = "reduce_scatter"

    def init_buffers(self):
        buffers, blocks, size = [], range(self.num_ranks), self.chunk_factor
        for rank in range(self.num_ranks):
            held = [Chunk(rank, block * size + index, block, index) for block in blocks for index in range(size)]
            first = rank * size
            buffers.append({Buffer.input: held,
                            Buffer.output: held[first:first + size] if self.inplace else [None] * size})
        return buffers

    def check(self, prog):
        size = self.chunk_factor
        return self._agree(prog, Buffer.input if self.inplace else Buffer.output,
                           lambda rank: rank * size if self.inplace else 0,
                           lambda rank: [self._sum(rank * size + index) for index in range(size)])

    def get_buffer_index(self, rank, buffer, index):
        if self.inplace and buffer is Buffer.output:
            return Buffer.input, rank * self.chunk_factor + index
        return buffer, index


class AllToAll(Collective):
    name = "alltoall"

    def init_buffers(self):
        buffers, size = [], self.chunk_factor
        for rank in range(self.num_ranks):
            held = [Chunk(rank, block * size + index, block, rank * size + index)
                    for block in range(self.num_ranks) for index in range(size)]
            buffers.append({Buffer.input: held, Buffer.output: held if self.inplace else [None] * len(held)})
        return buffers

    def check(self, prog):
        size = self.chunk_factor
        return self._agree(prog, Buffer.output, lambda rank: 0,
                           lambda rank: [Chunk(block, rank * size + index)
                                         for block in range(self.num_ranks) for index in range(size)])


_STANDARD = {AllReduce: "allreduce", AllGather: "allgather", ReduceScatter: "reduce_scatter", AllToAll: "alltoall"}


def standard_name(collective):
    """Returns the builder's name of a standard collective, or None for a collective that a script defines."""
    for kind, name in _STANDARD.items():
        own = type(collective)
        if isinstance(collective, kind) and all(getattr(own, part) is getattr(kind, part)
                                                for part in ("init_buffers", "check", "get_buffer_index")):
            return name
    return None
