-- NCCL's ring AllReduce: every channel its own ring over all GPUs, one thread block a channel and GPU. Channel c enters
-- and leaves each node at another GPU, so that all its NICs are used.

local routines = require "polyccl.routines"

local nodes = param("nodes", 1, "number of nodes")
local gpus = param("gpus", 8, "GPUs (ranks) in a node")
local channels = param("channels", 24, "rings")
local n = nodes * gpus

allreduce { name = "nccl_ring", ranks = n, chunks = n * channels, inplace = true }

for c = 0, channels - 1 do
  local order = {}
  for node = 0, nodes - 1 do
    for g = 0, gpus - 1 do
      order[#order + 1] = node * gpus + (c + g) % gpus
    end
  end
  routines.ring_allreduce { ranks = order, first = c * n, hints = { ch = c } }
end
