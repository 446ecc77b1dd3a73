-- Hierarchical ReduceScatter, the AllGather turned round: each node sums what belongs to every node, then the GPUs of
-- equal number sum across nodes. mesh = 1: all pairs instead of rings.
local routines = require "polyccl.routines"

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")
local mesh = param("mesh", 0, "1: all pairs exchange directly")
local scatter = mesh == 1 and routines.allpairs_reduce_scatter or routines.ring_reduce_scatter

reduce_scatter { ranks = nodes * gpus, inplace = true }

for node = 0, nodes - 1 do
  for to = 0, nodes - 1 do
    scatter { ranks = routines.ranks(node * gpus, gpus), first = to * gpus }
  end
end
for gpu = 0, gpus - 1 do
  scatter { ranks = routines.ranks(gpu, nodes, gpus), first = gpu, stride = gpus }
end
