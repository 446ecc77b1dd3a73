# The older names: send() for copy(), reduce(dst, buffer, index) to add onto another rank's chunk.
from msccl.language import *
from msccl.topologies import *
from msccl.collectives import *
from msccl.language.collectives import AllReduce

ranks = 4
with MSCCLProgram("older", line(ranks), AllReduce(ranks, 1, True), 1):
    at = chunk(0, Buffer.input)
    for rank in range(1, ranks):
        at = at.reduce(rank, Buffer.input, 0)
    for rank in range(ranks - 2, -1, -1):
        at = at.send(rank, buffer=Buffer.input, index=0)
    XML()
    Check()
