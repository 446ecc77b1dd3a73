# AllReduce round a ring: sums, then the sums once more round.
import argparse
import sys

from msccl.language import *
from msccl.topologies import *
from msccl.language.collectives import AllReduce


def ring_allreduce(ranks, instances, protocol, lacking):
    with MSCCLProgram("ring", ring(ranks), AllReduce(ranks, ranks, True), instances, protocol=protocol):
        for index in range(ranks):
            at = chunk((index + 1) % ranks, Buffer.input, index)
            for step in range(2, ranks + 1 - lacking):
                own = chunk((index + step) % ranks, Buffer.input, index)
                own.reduce(at)
                at = own
            for step in range(1, ranks):
                at = at.copy((at.rank + 1) % ranks)
        if lacking:
            Check()
        XML()
        Check()


parser = argparse.ArgumentParser()
parser.add_argument("ranks", type=int)
parser.add_argument("--instances", type=int, default=1)
parser.add_argument("--protocol", default="Simple")
parser.add_argument("--lacking", type=int, default=0)
args = parser.parse_args()
ring_allreduce(args.ranks, args.instances, args.protocol, args.lacking)
sys.exit(0)
