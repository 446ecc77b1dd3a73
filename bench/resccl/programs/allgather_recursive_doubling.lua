-- Recursive doubling: partners at distance 1, 2, 4, ... swap all that they have. For a power of two of ranks.
local n = param("ranks", 8, "number of ranks, a power of two")

allgather { ranks = n, inplace = true }

local distance = 1
while distance < n do
  for v = 0, n - 1 do
    chunk(v, output, v // distance * distance, distance):copy(v ~ distance)
  end
  distance = distance * 2
end
