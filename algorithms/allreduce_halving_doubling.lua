-- Recursive halving and doubling: an AllReduce that moves as little data as a ring, in 2 log2 n hops. Best for
-- medium sizes on many ranks.
--
-- Halving: partners at distance p/2, p/4, ..., 1 swap halves of what they still hold and add, until each holds the sum
-- of one chunk. Doubling does the same in reverse and collects the sums. If the number of ranks is not a power of two,
-- the surplus ranks first add their data to a neighbour's and get the result from it at the end.

local n = param("ranks", 8, "number of ranks")

local p = 1 -- the largest power of two up to n
while p * 2 <= n do p = p * 2 end
local surplus = n - p

allreduce {
  ranks = n,
  chunks = p,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

-- With hints, both directions of an exchange share one thread block: half as many blocks, but less bandwidth.
local paired = param("paired", false, "one thread block per partner")
local function hints(round)
  return paired and { sendtb = round, recvtb = round } or nil
end

-- Of the first 2 * surplus ranks only the even ones take part.
local function rank(v)
  return v < surplus and 2 * v or v + surplus
end

for i = 0, surplus - 1 do
  chunk(2 * i, input, 0, p):reduce(chunk(2 * i + 1, input, 0, p))
end

local distance, round = p // 2, 0
while distance >= 1 do
  for v = 0, p - 1 do
    local keep = v // distance * distance -- first chunk of the half that v keeps
    chunk(rank(v), input, keep, distance):reduce(chunk(rank(v ~ distance), input, keep, distance), hints(round))
  end
  distance, round = distance // 2, round + 1
end

distance = 1
while distance < p do
  round = round - 1
  for v = 0, p - 1 do
    local have = v // distance * distance
    chunk(rank(v), input, have, distance):copy(rank(v ~ distance), hints(round))
  end
  distance = distance * 2
end

for i = 0, surplus - 1 do
  chunk(2 * i, input, 0, p):copy(2 * i + 1)
end
