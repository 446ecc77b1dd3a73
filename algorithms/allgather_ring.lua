-- Ring AllGather: every rank's block travels round the ring once, in n - 1 hops.
--
-- In place a rank's input is its own block of the output, so there is nothing to copy at the start.

local n = param("ranks", 8, "number of ranks")

allgather {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for r = 0, n - 1 do
  local at = chunk(r, output, r)
  for hop = 1, n - 1 do
    at = at:copy((r + hop) % n)
  end
end
