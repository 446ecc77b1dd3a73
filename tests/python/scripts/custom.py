# Collectives of a script's own: each rank's chunks to the next rank, and a sum on rank 0 alone.
import sys

from msccl.language import *
from msccl.topologies import *
from msccl.language.collectives import Collective


class ToNext(Collective):
    def __init__(self, num_ranks, chunk_factor, inplace=False):
        Collective.__init__(self, num_ranks, chunk_factor, inplace)
        self.name = "to<next>"

    def init_buffers(self):
        size, last = self.chunk_factor, self.num_ranks - 1
        return [{Buffer.input: [Chunk(rank, i, rank + 1, i) if rank < last else None for i in range(size)],
                 Buffer.output: [None] * size} for rank in range(self.num_ranks)]

    def check(self, prog):
        right = True
        for rank in range(1, self.num_ranks):
            for i in range(self.chunk_factor):
                held = prog.buffers[rank][Buffer.output][i]
                if held is None or held.origin_rank != rank - 1 or held.origin_index != i:
                    print(f"rank {rank} chunk {i} is wrong: {held}")
                    right = False
        return right


class Sum(Collective):
    def init_buffers(self):
        inputs = [[Chunk(rank, i) for i in range(self.chunk_factor)] for rank in range(self.num_ranks)]
        return [{Buffer.input: held, Buffer.output: held} for held in inputs]

    def check(self, prog):
        for i in range(self.chunk_factor):
            want = ReduceChunk(-1, [])
            for rank in range(self.num_ranks):
                want = want.reduce(-1, Chunk(rank, i))
            if prog.buffers[0][Buffer.output][i] != want:
                return False
        return True


def to_next(ranks, last):
    with MSCCLProgram("next", fully_connected(ranks), ToNext(ranks, 2, last == "inplace"), 1):
        for rank in range(ranks - 1):
            at = chunk(rank, Buffer.input, 0, 2)
            if rank == 0 and last == "detour":
                at = at.copy(ranks - 1, f"via{ranks}")
            if rank + 2 < ranks or last != "lacking":
                at.copy(rank + 1, Buffer.output, 0)
        XML()
        Check()


def total(ranks, extra):
    with MSCCLProgram("sum", fully_connected(ranks), Sum(ranks, 2, True), 1):
        at = chunk(0, Buffer.input, 0, 2)
        for rank in range(1, ranks):
            at.reduce(chunk(rank, Buffer.input, 0, 2))
            if rank == extra:
                at = at.reduce(chunk(rank, Buffer.input, 0, 2))
        Check()
        XML()


if sys.argv[1] == "next":
    to_next(4, sys.argv[2])
else:
    total(3, int(sys.argv[2]))
