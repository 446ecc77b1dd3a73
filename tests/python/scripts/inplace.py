# The collectives whose smaller buffer lies in the larger one, in place and out of place, and AllToAll.
import sys

from msccl.language import *
from msccl.topologies import fully_connected
from msccl.language.collectives import *

ranks, size = 3, 2


def allgather(place):
    with MSCCLProgram("gather", fully_connected(ranks), AllGather(ranks, size, place), 1):
        for rank in range(ranks):
            at = chunk(rank, Buffer.input, 0, size)
            if not place:
                at.copy(rank, Buffer.output, rank * size)
            for other in range(ranks):
                if other != rank and other % 2 == 0:
                    at.copy(other, Buffer.output, rank * size)
                elif other != rank and place:
                    at.copy(other, Buffer.input, 0)  # the sender's place in the output
                elif other != rank:
                    at.copy(other, Buffer.output, rank * size)
        XML()
        assert Check()


def reduce_scatter(place):
    with MSCCLProgram("scatter", fully_connected(ranks), ReduceScatter(ranks, size, place), 1):
        for rank in range(ranks):
            at = chunk(rank, Buffer.input, rank * size, size)
            for other in range(ranks):
                if other != rank:
                    at.reduce(chunk(other, Buffer.input, rank * size, size))
            if not place:
                at.copy(rank, Buffer.output, 0)
        XML()
        assert Check()


def alltoall():
    with MSCCLProgram("exchange", fully_connected(ranks), AllToAll(ranks, size, False), 1):
        for rank in range(ranks):
            for index in range(ranks * size):
                at = chunk(rank, Buffer.input, index)
                assert (at.get_origin_rank(), at.get_origin_index()) == (rank, index)
                at.copy(at.get_dst_rank(), Buffer.output, at.get_dst_index())
        XML()
        assert Check()


{"allgather": lambda: allgather(False), "allgather_inplace": lambda: allgather(True),
 "reduce_scatter": lambda: reduce_scatter(False), "reduce_scatter_inplace": lambda: reduce_scatter(True),
 "alltoall": alltoall}[sys.argv[1]]()
