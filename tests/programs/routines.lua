--- case: a ring over some of the ranks
-- expect: steps 12, hops 4
local routines = require "polyccl.routines"
custom {
  ranks = 6, chunks = 3, inplace = true,
  post = function(rank, c) if rank % 2 == 1 then return { { 1, c }, { 3, c }, { 5, c } } end end,
}
routines.ring_allreduce { ranks = routines.ranks(1, 3, 2) }

--- case: pieces of two chunks, with a stride
-- expect: steps 4, hops 2
local routines = require "polyccl.routines"
custom {
  ranks = 2, chunks = 8, inplace = true,
  post = function(rank, c) if c % 4 < 2 then return { { 0, c }, { 1, c } } else return { { rank, c } } end end,
}
routines.ring_allreduce { ranks = { 0, 1 }, size = 2, stride = 4 }

--- case: all pairs
-- expect: steps 24, hops 4
local routines = require "polyccl.routines"
allreduce { ranks = 4, chunks = 4, inplace = true }
routines.allpairs_allreduce { ranks = { 3, 1, 0, 2 } }

--- case: a tree of seven
-- expect: steps 24, hops 6
local routines = require "polyccl.routines"
allreduce { ranks = 7, chunks = 2, inplace = true }
routines.tree_allreduce { ranks = routines.ranks(0, 7), pieces = 2 }

--- case: two rings that together are an AllReduce
-- expect: right
local routines = require "polyccl.routines"
allreduce { ranks = 4, chunks = 4, inplace = true }
for node = 0, 1 do routines.ring_reduce_scatter { ranks = routines.ranks(2 * node, 2), size = 2 } end
for gpu = 0, 1 do routines.ring_allreduce { ranks = { gpu, gpu + 2 }, first = 2 * gpu } end
for node = 0, 1 do routines.ring_allgather { ranks = routines.ranks(2 * node, 2), size = 2 } end

--- case: one rank alone
-- expect: steps 0
local routines = require "polyccl.routines"
allreduce { ranks = 1, inplace = true }
routines.ring_allreduce { ranks = { 0 } }
routines.tree_allreduce { ranks = { 0 } }
routines.allpairs_allreduce { ranks = { 0 } }

--- case: an error names the author's line
-- expect error: routines.lua:51: rank 2 is out of range (the program has ranks 0 to 1)
local routines = require "polyccl.routines"
allreduce { ranks = 2, inplace = true }
routines.ring_allreduce { ranks = { 0, 2 } }

--- case: a stale chunk made by a routine names the author's lines
-- expect error: routines.lua:59: stale chunk: rank 0 input[0] was overwritten at routines.lua:58
local routines = require "polyccl.routines"
allreduce { ranks = 2, inplace = true }
local before = chunk(0, input, 0)
routines.tree_reduce { ranks = { 0, 1 } }
before:copy(1)

--- case: a misspelt key
-- expect error: routines.lua:64: ring_allreduce: unknown key "rank" (known: ranks, buffer, first, size, stride, hints, pieces)
local routines = require "polyccl.routines"
routines.ring_allreduce { rank = { 0 } }

--- case: no ranks
-- expect error: routines.lua:69: tree_broadcast: ranks must be a list of at least one rank
local routines = require "polyccl.routines"
routines.tree_broadcast {}

--- case: a rank twice
-- expect error: routines.lua:74: ring_allgather: rank 3 is listed twice
local routines = require "polyccl.routines"
routines.ring_allgather { ranks = { 3, 1, 3 } }

--- case: a size that is no whole number
-- expect error: routines.lua:79: ring_allgather: size must be a whole number, not 1.5
local routines = require "polyccl.routines"
routines.ring_allgather { ranks = { 0, 1 }, size = 1.5 }

--- case: a routine that is not there
-- expect error: routines.lua:84: attempt to call a nil value (field 'ring_all_reduce')
local routines = require "polyccl.routines"
routines.ring_all_reduce { ranks = { 0, 1 } }

--- case: hints reach every operation
-- expect error: routines.lua:90: copy: hints: ch = -2 is out of range (0 and up)
local routines = require "polyccl.routines"
allreduce { ranks = 2, inplace = true }
routines.tree_broadcast { ranks = { 0, 1 }, hints = function(piece) return { ch = piece - 2 } end }
