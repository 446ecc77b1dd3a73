-- Tree Broadcast: every rank passes the data on to two more, so the last rank has it after log2 n hops. Best for small
-- buffers.
--
-- Ranks are counted from the root; the children of v are 2v + 1 and 2v + 2.

local n = param("ranks", 8, "number of ranks")
local root = param("root", 0, "the rank that has the data")

broadcast {
  ranks = n,
  root = root,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for v = 1, n - 1 do
  local parent = (v - 1) // 2
  chunk((root + parent) % n, output, 0):copy((root + v) % n)
end
