-- Hierarchical AllReduce: most data moves inside nodes, where links are fast; only what must cross moves between them.
--
--   1. in each node, a ring reduce-scatter: GPU g holds the node's sum of its part of the data
--   2. between the nodes, a ring AllReduce among the GPUs of equal number, each on its part only
--   3. in each node, a ring all-gather: every GPU has every part
--
-- A part has as many chunks as there are nodes, since step 2 scatters it over them.

local routines = require "polyccl.routines"

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")

allreduce {
  ranks = nodes * gpus,
  chunks = nodes * gpus,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for node = 0, nodes - 1 do
  routines.ring_reduce_scatter { ranks = routines.ranks(node * gpus, gpus), size = nodes }
end

for gpu = 0, gpus - 1 do
  routines.ring_allreduce { ranks = routines.ranks(gpu, nodes, gpus), first = gpu * nodes }
end

for node = 0, nodes - 1 do
  routines.ring_allgather { ranks = routines.ranks(node * gpus, gpus), size = nodes }
end
