"""The topologies that MSCCLang scripts name."""

from .amd import amd4, amd8
from .distributed import distributed_fully_connected, distributed_hub_and_spoke
from .generic import fully_connected, hub_and_spoke, line, ring, star
from .nvidia import dgx1, dgx_a100, nvlink_only
from .topology import Topology
from .transformers import binarize_topology, reverse_topology
