# A ring per chunk, thread blocks and channels by hand.
import sys

from msccl.language import *
from msccl.topologies import *
from msccl.language.collectives import AllReduce

ranks, instances = int(sys.argv[1]), int(sys.argv[2])
with MSCCLProgram("manual", fully_connected(ranks), AllReduce(ranks, ranks, True), instances, "LL128",
                  threadblock_policy=ThreadblockPolicy.manual, interleaved_replication=False):
    for index in range(ranks):
        place = dict(sendtb=index, recvtb=index, ch=index)
        at = chunk(index, Buffer.input, index)
        for step in range(1, ranks):
            at = chunk((index + step) % ranks, Buffer.input, index).reduce(at, **place)
        for step in range(ranks - 1):
            at = at.copy((index + step) % ranks, Buffer.output, index, **place)
    XML()
    assert Check()
