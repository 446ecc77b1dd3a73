-- Tree AllGather: the blocks are collected on rank 0, in log2 n hops, each time twice as many in one message; then all of
-- them go down a tree in which every rank passes them on to two more. Best for many ranks, of which the ring would make
-- n - 1 hops and n times as many messages.

local n = param("ranks", 8, "number of ranks")

allgather {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local blocks = 1 -- that the ranks that still hold some have collected
while blocks < n do
  for from = blocks, n - 1, 2 * blocks do
    chunk(from, output, from, math.min(blocks, n - from)):copy(from - blocks, output, from)
  end
  blocks = 2 * blocks
end
for v = 1, n - 1 do
  chunk((v - 1) // 2, output, 0, n):copy(v, output, 0)
end
