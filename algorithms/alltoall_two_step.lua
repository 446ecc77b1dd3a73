-- Two-step AllToAll: one large message between nodes instead of many small ones.
--
-- A GPU has a block for every other GPU. What the GPUs of node m have for GPU g of node n is first collected on GPU g
-- of node m, over the fast links inside the node, and then crosses to node n as one message.

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")
local inplace = param("inplace", false, "input and output are one buffer: what arrives waits until all is sent")

alltoall {
  ranks = nodes * gpus,
  inplace = inplace,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local collected = scratch("collected")
local arrived = inplace and scratch("arrived") or output

local function rank(node, gpu)
  return node * gpus + gpu
end

for m = 0, nodes - 1 do
  for n = 0, nodes - 1 do
    for g = 0, gpus - 1 do
      local place = (n < m and n or n - 1) * gpus -- the own node needs no place
      for i = 0, gpus - 1 do
        local block = chunk(rank(m, i), input, rank(n, g))
        if m == n then
          block:copy(rank(n, g), arrived, rank(m, i))
        else
          block:copy(rank(m, g), collected, place + i)
        end
      end
      if m ~= n then
        chunk(rank(m, g), collected, place, gpus):copy(rank(n, g), arrived, rank(m, 0))
      end
    end
  end
end

if inplace then
  for r = 0, nodes * gpus - 1 do
    chunk(r, arrived, 0, nodes * gpus):copy(r, output, 0)
  end
end
