"""Which ranks are linked, and how fast."""


class Topology:
    """links[dst][src] is the bandwidth from src to dst, 0 where there is no link. Each entry of switches is (sources,
    destinations, bandwidth, name) and limits the sum of what passes at one time."""

    def __init__(self, name, links, switches=()):
        self.name = name
        self.links = links
        self.switches = list(switches)
        for _, _, bandwidth, switch in self.switches:
            if bandwidth <= 0:
                raise ValueError(f"the bandwidth of switch {switch} must be positive, not {bandwidth}")

    def num_nodes(self):
        return len(self.links)

    def nodes(self):
        return range(self.num_nodes())

    def link(self, src, dst):
        return self.links[dst][src]

    def sources(self, dst):
        return (src for src in self.nodes() if self.links[dst][src] > 0)

    def destinations(self, src):
        return (dst for dst in self.nodes() if self.links[dst][src] > 0)

    def bandwidth_constraints(self):
        for dst in self.nodes():
            for src in self.sources(dst):
                yield [src], [dst], self.links[dst][src], f"{src} to {dst}"
        yield from self.switches


def from_function(name, ranks, bandwidth, switches=()):
    """Makes a topology of `ranks` ranks from bandwidth(src, dst)."""
    links = [[bandwidth(src, dst) if src != dst else 0 for src in range(ranks)] for dst in range(ranks)]
    return Topology(name, links, switches)
