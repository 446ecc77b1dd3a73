-- The first half of a two-step AllToAll written by hand on NCCL's point-to-point calls: inside each node, what is for
-- GPU g of any node goes to GPU g. A kernel of its own: the second half starts when all of it has ended.

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 8, "GPUs (ranks) in a node")

custom {
  name = "cuda_alltoall_inside",
  ranks = nodes * gpus,
  chunks = nodes * gpus,
  post = function(rank, c) -- output chunk n * gpus + i: what GPU i of the node has for GPU g of node n
    local m, g = rank // gpus, rank % gpus
    return { { m * gpus + c % gpus, (c // gpus) * gpus + g } }
  end,
}

for m = 0, nodes - 1 do
  for g = 0, gpus - 1 do
    for i = 0, gpus - 1 do
      for n = 0, nodes - 1 do
        chunk(m * gpus + i, input, n * gpus + g):copy(m * gpus + g, output, n * gpus + i)
      end
    end
  end
end
