"""Several machines of one shape."""

from .topology import from_function


def _copies(shape, local_topology, num_copies, remote_bw):
    local = local_topology.num_nodes()
    switches = [([src + copy * local for src in srcs], [dst + copy * local for dst in dsts], bandwidth,
                 f"{name} of machine {copy}")
                for srcs, dsts, bandwidth, name in local_topology.switches for copy in range(num_copies)]

    def bandwidth(src, dst):
        same = src // local == dst // local
        return local_topology.link(src % local, dst % local) if same else remote_bw

    return from_function(f"{num_copies} x {local_topology.name}, {shape}", local * num_copies, bandwidth, switches)


def distributed_fully_connected(local_topology, num_copies, remote_bw):
    return _copies("fully connected", local_topology, num_copies, remote_bw)


def distributed_hub_and_spoke(local_topology, num_copies, remote_bw):
    """All ranks of a machine share its port."""
    topology = _copies("hub and spoke", local_topology, num_copies, remote_bw)
    local = local_topology.num_nodes()
    for copy in range(num_copies):
        own = [rank for rank in topology.nodes() if rank // local == copy]
        rest = [rank for rank in topology.nodes() if rank // local != copy]
        topology.switches += [(own, rest, remote_bw, f"out of machine {copy}"),
                              (rest, own, remote_bw, f"into machine {copy}")]
    return topology
