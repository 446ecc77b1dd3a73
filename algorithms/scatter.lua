-- Scatter: the root sends every rank its block.

local n = param("ranks", 8, "number of ranks")
local root = param("root", 0, "the rank that has the blocks")

scatter {
  ranks = n,
  root = root,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for r = 0, n - 1 do
  chunk(root, input, r):copy(r, output, 0) -- does nothing for the root's own block, which is there already
end
