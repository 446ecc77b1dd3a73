-- Gather: every rank sends its block to the root.

local n = param("ranks", 8, "number of ranks")
local root = param("root", 0, "the rank that gets the blocks")

gather {
  ranks = n,
  root = root,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for r = 0, n - 1 do
  chunk(r, input, 0):copy(root, output, r) -- does nothing for the root's own block, which is there already
end
