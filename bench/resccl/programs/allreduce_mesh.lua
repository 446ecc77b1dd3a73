-- Hierarchical mesh AllReduce: as the hierarchical one, but all pairs exchange directly, inside a node and between
-- nodes, instead of rings.
local routines = require "polyccl.routines"

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")

allreduce { ranks = nodes * gpus, chunks = nodes * gpus, inplace = true }

for node = 0, nodes - 1 do
  routines.allpairs_reduce_scatter { ranks = routines.ranks(node * gpus, gpus), size = nodes }
end
for gpu = 0, gpus - 1 do
  routines.allpairs_allreduce { ranks = routines.ranks(gpu, nodes, gpus), first = gpu * nodes }
end
for node = 0, nodes - 1 do
  routines.allpairs_allgather { ranks = routines.ranks(node * gpus, gpus), size = nodes }
end
