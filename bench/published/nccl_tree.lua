-- NCCL's tree AllReduce: in a node a chain of its GPUs, between nodes a binary tree of the chains' heads (every other
-- channel the mirrored one); up with the sum, down with the result, both at once on different parts of the data.

local nodes = param("nodes", 1, "number of nodes")
local gpus = param("gpus", 8, "GPUs (ranks) in a node")
local channels = param("channels", 24, "trees")

allreduce { name = "nccl_tree", ranks = nodes * gpus, chunks = channels, inplace = true }

for c = 0, channels - 1 do
  local up, down = { ch = 2 * c }, { ch = 2 * c + 1 }
  local function gpu(v, place) -- of the v-th node of the tree
    local node = c % 2 == 0 and v or nodes - 1 - v
    return node * gpus + (c + place) % gpus
  end
  for v = 0, nodes - 1 do
    local sum = chunk(gpu(v, gpus - 1), input, c)
    for place = gpus - 2, 0, -1 do
      sum = chunk(gpu(v, place), input, c):reduce(sum, up)
    end
  end
  for v = nodes - 1, 1, -1 do
    chunk(gpu((v - 1) // 2, 0), input, c):reduce(chunk(gpu(v, 0), input, c), up)
  end
  for v = 1, nodes - 1 do
    chunk(gpu((v - 1) // 2, 0), input, c):copy(gpu(v, 0), input, c, down)
  end
  for v = 0, nodes - 1 do
    local at = chunk(gpu(v, 0), input, c)
    for place = 1, gpus - 1 do
      at = at:copy(gpu(v, place), input, c, down)
    end
  end
end
