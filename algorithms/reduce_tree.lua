-- Tree Reduce: sums are added in pairs on their way to the root, in log2 n hops. Best for small buffers.

local routines = require "polyccl.routines"

local n = param("ranks", 8, "number of ranks")
local root = param("root", 0, "the rank that gets the sum")

reduce {
  ranks = n,
  root = root,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local ranks = {} -- counted from the root
for v = 0, n - 1 do
  ranks[v + 1] = (root + v) % n
end
routines.tree_reduce { ranks = ranks }
