-- Ring ReduceScatter: block b starts at rank b + 1 and travels round the ring; every rank adds its own copy of the
-- block. After n - 1 hops the sum is complete where it is wanted, on rank b.

local n = param("ranks", 8, "number of ranks")

reduce_scatter {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for b = 0, n - 1 do
  local at = chunk((b + 1) % n, input, b)
  for hop = 2, n do
    at = chunk((b + hop) % n, input, b):reduce(at)
  end
end
