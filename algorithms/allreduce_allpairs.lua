-- All-pairs AllReduce: two hops for any number of ranks, and every rank sums only its share of the data. Best for
-- medium sizes, where the number of hops matters more than the bandwidth of the links.
--
-- Rank r owns chunk r: it receives that chunk from all others and sums it, then sends the sum to all others.

local n = param("ranks", 8, "number of ranks")

allreduce {
  ranks = n,
  chunks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

-- With hints, both directions of an exchange share one thread block. A rank numbers its partners by distance.
local paired = param("paired", false, "one thread block per partner")
local function hints(from, to)
  return paired and { sendtb = (to - from) % n - 1, recvtb = (from - to) % n - 1 } or nil
end

for r = 0, n - 1 do
  local sum = chunk(r, input, r)
  for other = 1, n - 1 do
    local peer = (r + other) % n
    sum = sum:reduce(chunk(peer, input, r), hints(peer, r))
  end
  for other = 1, n - 1 do
    local peer = (r + other) % n
    sum:copy(peer, hints(r, peer))
  end
end
