-- Chain Broadcast: the root sends to the next rank, which sends to the next one, and so on. Every link carries the data
-- once, and large buffers stream through all links at the same time.

local n = param("ranks", 8, "number of ranks")
local root = param("root", 0, "the rank that has the data")

broadcast {
  ranks = n,
  root = root,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local at = chunk(root, output, 0)
for hop = 1, n - 1 do
  at = at:copy((root + hop) % n)
end
