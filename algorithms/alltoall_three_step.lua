-- Three-step AllToAll: a single message between any two nodes. Best for many nodes.
--
-- All that node m has for node n is collected on one GPU of m, crosses to one GPU of n as one message, and is spread
-- there. The GPUs of a node exchange data with different nodes, so that all of them share the work. An extra hop inside
-- the node makes messages `gpus` times larger than those of the two-step exchange.

local nodes = param("nodes", 3, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")

alltoall {
  ranks = nodes * gpus,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local function rank(node, gpu)
  return node * gpus + gpu
end

-- The GPU of node m that exchanges data with node n.
local function speaker(m, n)
  return rank(m, (n < m and n or n - 1) % gpus)
end

for m = 0, nodes - 1 do
  for n = 0, nodes - 1 do
    local parts = {}
    for i = 0, gpus - 1 do
      if m == n then
        for g = 0, gpus - 1 do
          chunk(rank(m, i), input, rank(n, g)):copy(rank(n, g), output, rank(m, i))
        end
      else
        parts[i + 1] = chunk(rank(m, i), input, rank(n, 0), gpus):copy(speaker(m, n), scratch("to " .. n))
      end
    end
    if m ~= n then
      local all = group(parts):copy(speaker(n, m), scratch("from " .. m))
      for i, block in ipairs(all:split(gpus * gpus)) do
        local from, to = (i - 1) // gpus, (i - 1) % gpus
        block:copy(rank(n, to), output, rank(m, from))
      end
    end
  end
end
