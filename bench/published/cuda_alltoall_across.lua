-- The second half: GPUs of equal number exchange what was collected for each node.

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 8, "GPUs (ranks) in a node")

custom {
  name = "cuda_alltoall_across",
  ranks = nodes * gpus,
  chunks = nodes * gpus,
  post = function(rank, c) -- output chunk m * gpus + i comes from GPU g of node m
    local n, g = rank // gpus, rank % gpus
    return { { (c // gpus) * gpus + g, n * gpus + c % gpus } }
  end,
}

for n = 0, nodes - 1 do
  for m = 0, nodes - 1 do
    for g = 0, gpus - 1 do
      chunk(m * gpus + g, input, n * gpus, gpus):copy(n * gpus + g, output, m * gpus)
    end
  end
end
