# AllToAll between two machines: what is meant for the other machine's rank is gathered, sent as one, split again.
from msccl.language import *
from msccl.topologies import *
from msccl.topologies.distributed import *
from msccl.language.collectives import AllToAll

local = 2
topology = distributed_fully_connected(fully_connected(local), 2, 1)
ranks = topology.num_nodes()
with MSCCLProgram("two step", topology, AllToAll(ranks, 1, inplace=False), 1):
    gathered = {}
    for rank in range(ranks):
        for to in range(ranks):
            at = chunk(rank, Buffer.input, to)
            if rank // local == to // local:
                at.copy(to, Buffer.output, rank)
            else:
                carrier = rank // local * local + to % local
                at = at.copy(carrier, ("for", to))
                gathered[to] = gathered[to].group(at) if to in gathered else at
    for (to, group) in gathered.items():
        assert group.size == local
        for i, part in enumerate(group.copy(to, "arrived", 0).split(local)):
            assert part.get_dst_rank() == to
            part.copy(to, Buffer.output, part.get_dst_index())
    Check()
    XML()
