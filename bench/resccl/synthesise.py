"""synthesise.py NODES GPUS CHUNKS: an AllGather as a time-expanded search finds it, in TE-CCL's JSON on standard output.

Greedy: in every epoch each link takes one chunk that its end does not have, the rarest first. Links: all pairs in a
node, GPUS_PER_NIC GPUs take turns at a NIC. What polyccl reads from a solver's file it reads from this one.
"""

import json
import sys

GPUS_PER_NIC = 2


def main():
    nodes, gpus, chunks = (int(x) for x in sys.argv[1:4])
    ranks = nodes * gpus
    every = [(source, chunk) for source in range(ranks) for chunk in range(chunks)]
    have = [{c for c in every if c[0] == rank} for rank in range(ranks)]
    flows, epoch = [], 0
    while any(len(h) < len(every) for h in have):
        copies = {c: sum(c in h for h in have) for c in every}
        new = [set() for _ in range(ranks)]
        out, into, nic_out, nic_in = {}, {}, {}, {}
        at_node = [set().union(*(have[n * gpus + g] for g in range(gpus))) for n in range(nodes)]
        for turn in range(ranks):  # between nodes first: what no GPU of the other node has
            src = (turn * 5 + epoch) % ranks
            node, nic = src // gpus, src % gpus // GPUS_PER_NIC
            if nic_out.get((node, nic)):
                continue
            for step in range(1, nodes):
                dst = (src + step * gpus) % ranks
                other = dst // gpus
                if nic_in.get((other, nic)):
                    continue
                arriving = set().union(*(new[other * gpus + g] for g in range(gpus)))
                wanted = [c for c in every if c in have[src] and c not in at_node[other] and c not in arriving]
                if wanted:
                    best = min(wanted, key=lambda c: (copies[c], (c[0] - src) % ranks, c))
                    new[dst].add(best)
                    flows.append((best, src, dst, epoch))
                    nic_out[(node, nic)] = nic_in[(other, nic)] = True
                    break
        for dst in range(ranks):  # in a node: one chunk a pair and epoch, a few at a time in and out of a GPU
            for step in range(1, gpus):
                src = dst // gpus * gpus + (dst + step) % gpus
                if out.get(src, 0) >= gpus - 1 or into.get(dst, 0) >= gpus - 1:
                    continue
                wanted = [c for c in every if c in have[src] and c not in have[dst] and c not in new[dst]]
                if wanted:
                    best = min(wanted, key=lambda c: (copies[c], (c[0] - src) % ranks, c))
                    new[dst].add(best)
                    flows.append((best, src, dst, epoch))
                    out[src], into[dst] = out.get(src, 0) + 1, into.get(dst, 0) + 1
        for rank in range(ranks):
            have[rank] |= new[rank]
        epoch += 1
    text = ["Chunk %d from %d traveled over %d->%d in epoch %d" % (c[1], c[0], s, d, e) for c, s, d, e in flows]
    json.dump({"1-Epoch_Duration": 1e-6, "7-Flows": text}, sys.stdout, indent=1)
    print()


main()
