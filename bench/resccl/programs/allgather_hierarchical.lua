-- Hierarchical AllGather: a ring between the GPUs of equal number, then a ring in each node for every node's blocks.
-- mesh = 1: all pairs instead of rings.
local routines = require "polyccl.routines"

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")
local mesh = param("mesh", 0, "1: all pairs exchange directly")
local gather = mesh == 1 and routines.allpairs_allgather or routines.ring_allgather

allgather { ranks = nodes * gpus, inplace = true }

for gpu = 0, gpus - 1 do
  gather { ranks = routines.ranks(gpu, nodes, gpus), buffer = output, first = gpu, stride = gpus }
end
for node = 0, nodes - 1 do
  for from = 0, nodes - 1 do
    gather { ranks = routines.ranks(node * gpus, gpus), buffer = output, first = from * gpus }
  end
end
