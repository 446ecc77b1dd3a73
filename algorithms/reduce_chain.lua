-- Chain Reduce: every rank adds its data to the sum and passes it on, up to the root. Large buffers stream through.

local n = param("ranks", 8, "number of ranks")
local root = param("root", 0, "the rank that gets the sum")

reduce {
  ranks = n,
  root = root,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local at = chunk((root + 1) % n, input, 0)
for hop = 2, n do
  at = chunk((root + hop) % n, input, 0):reduce(at)
end
