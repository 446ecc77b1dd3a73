# Custom collectives whose init_buffers() is wrong, one an argument.
import sys

from msccl.language import *
from msccl.topologies import *
from msccl.language.collectives import Collective


class Odd(Collective):
    def init_buffers(self):
        held = [Chunk(0, 0)]
        return {
            "none": None,
            "short": [{Buffer.input: held, Buffer.output: [None]}],
            "empty": [{}, {}],
            "mixed": [{Buffer.input: held, Buffer.output: held}, {Buffer.input: [None], Buffer.output: [None]}],
            "text": [{Buffer.input: ["a"], Buffer.output: [None]}] * 2,
            "early": [{Buffer.input: held, Buffer.output: [Chunk(0, 0)]}] * 2,
        }[sys.argv[1]]


MSCCLProgram("odd", fully_connected(2), Odd(2, 1, False), 1)
