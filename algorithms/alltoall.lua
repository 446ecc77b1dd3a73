-- Direct AllToAll: every rank sends each of its blocks directly to the rank that wants it.

local n = param("ranks", 8, "number of ranks")
local inplace = param("inplace", false, "input and output are one buffer: what arrives waits until all is sent")

alltoall {
  ranks = n,
  inplace = inplace,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local arrived = inplace and scratch("arrived") or output

-- Rank r begins with its neighbour, so that the ranks do not all send to the same rank at the same time.
for r = 0, n - 1 do
  for distance = 1, n do
    local to = (r + distance) % n
    chunk(r, input, to):copy(to, arrived, r)
  end
end

if inplace then
  for r = 0, n - 1 do
    chunk(r, arrived, 0, n):copy(r, output, 0)
  end
end
