-- AllToAll, plainly: every rank sends each of its blocks straight to the rank that wants it.

local n = param("ranks", 8, "number of ranks")

alltoall {
  ranks = n,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

-- Rank r begins with its neighbour, so that not all send to the same rank at the same time.
for r = 0, n - 1 do
  for distance = 0, n - 1 do
    local to = (r + distance) % n
    chunk(r, input, to):copy(to, output, r)
  end
end
