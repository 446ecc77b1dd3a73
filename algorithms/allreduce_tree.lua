-- Tree AllReduce: sums are added on their way up to rank 0 and come back the same way, in 2 log2 n hops. Best for many
-- ranks, of which the ring would make 2 (n - 1) hops and n times as many messages.
--
-- The children of v are 2v + 1 and 2v + 2. A large buffer goes through the tree in micro-batches, so all links are busy.

local routines = require "polyccl.routines"

local n = param("ranks", 8, "number of ranks")

allreduce {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local ranks = {}
for v = 0, n - 1 do
  ranks[v + 1] = v
end
routines.tree_allreduce { ranks = ranks }
