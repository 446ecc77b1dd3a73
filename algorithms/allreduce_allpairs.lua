-- All-pairs AllReduce: two hops whatever the number of ranks, and every rank sums only its share of the data. The
-- choice for middle sizes, where hops cost more than the links' limits.
--
-- Rank r owns chunk r: it takes that chunk from all others and sums it, then hands the sum to all others.

local n = param("ranks", 8, "number of ranks")

allreduce {
  ranks = n,
  chunks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for r = 0, n - 1 do
  local sum = chunk(r, input, r)
  for other = 1, n - 1 do
    sum = sum:reduce(chunk((r + other) % n, input, r))
  end
  for other = 1, n - 1 do
    sum:copy((r + other) % n)
  end
end
