-- Tree ReduceScatter: the whole buffers are summed on their way up a tree to rank 0; then the sums are handed out, in
-- log2 n hops, each time half as many in one message. Best for many ranks, of which the ring would make n - 1 hops and n
-- times as many messages.

local n = param("ranks", 8, "number of ranks")

reduce_scatter {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for v = n - 1, 1, -1 do
  chunk((v - 1) // 2, input, 0, n):reduce(chunk(v, input, 0, n))
end
local blocks = 1
while blocks < n do
  blocks = 2 * blocks
end
while blocks > 1 do -- every rank that is a multiple has the sums of as many ranks from itself on
  blocks = blocks // 2
  for to = blocks, n - 1, 2 * blocks do
    chunk(to - blocks, input, to, math.min(blocks, n - to)):copy(to, input, to)
  end
end
