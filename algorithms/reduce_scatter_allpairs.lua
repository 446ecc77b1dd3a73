-- All-pairs ReduceScatter: every rank receives its block directly from all others and sums it, in one hop. Best for
-- small sizes.

local routines = require "polyccl.routines"

local n = param("ranks", 8, "number of ranks")

reduce_scatter {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

routines.allpairs_reduce_scatter { ranks = routines.ranks(0, n) }
