-- All-pairs AllGather: every rank sends its block directly to all others, in one hop. Best for small sizes.

local routines = require "polyccl.routines"

local n = param("ranks", 8, "number of ranks")

allgather {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

routines.allpairs_allgather { ranks = routines.ranks(0, n), buffer = output }
