# Thread blocks by hand for one chain only; the other has none named.
from msccl.language import *
from msccl.topologies import *
from msccl.language.collectives import Collective


class FromFirst(Collective):
    def init_buffers(self):
        return [{Buffer.input: [Chunk(0, i) if rank == 0 else None for i in range(2)], Buffer.output: [None] * 2}
                for rank in range(3)]

    def check(self, prog):
        return all(prog.buffers[rank][Buffer.output] == [Chunk(0, 0), Chunk(0, 1)] for rank in (1, 2))


with MSCCLProgram("chains", fully_connected(3), FromFirst(3, 2, False), 1, threadblock_policy=ThreadBlockPolicy.manual):
    chunk(0, Buffer.input, 0).copy(1, Buffer.output, 0, sendtb=3, recvtb=3, ch=0).copy(2, sendtb=3, recvtb=3, ch=0)
    chunk(0, Buffer.input, 1).copy(2, Buffer.output, 1, ch=1).copy(1, ch=1)
    XML()
    assert Check()
