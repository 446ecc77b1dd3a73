--- case: instances, interleaved
-- expect: instances 4, steps 12
local routines = require "polyccl.routines"
allreduce { ranks = 3, chunks = 3, inplace = true, instances = 4 }
routines.ring_allreduce { ranks = { 0, 1, 2 } }

--- case: instances, batched
-- expect: instances 4, steps 12
local routines = require "polyccl.routines"
allreduce { ranks = 3, chunks = 3, inplace = true, instances = 4, replication = "batched" }
routines.ring_allreduce { ranks = { 0, 1, 2 } }

--- case: operations of several sizes, interleaved
-- expect: instances 3
local routines = require "polyccl.routines"
allreduce { ranks = 4, chunks = 4, inplace = true, instances = 3 }
for node = 0, 1 do routines.ring_reduce_scatter { ranks = routines.ranks(2 * node, 2), size = 2 } end
for gpu = 0, 1 do routines.ring_allreduce { ranks = { gpu, gpu + 2 }, first = 2 * gpu } end
for node = 0, 1 do routines.ring_allgather { ranks = routines.ranks(2 * node, 2), size = 2 } end

--- case: operations of several sizes, batched
-- expect: instances 3
local routines = require "polyccl.routines"
allreduce { ranks = 4, chunks = 4, inplace = true, instances = 3, replication = "batched" }
for node = 0, 1 do routines.ring_reduce_scatter { ranks = routines.ranks(2 * node, 2), size = 2 } end
for gpu = 0, 1 do routines.ring_allreduce { ranks = { gpu, gpu + 2 }, first = 2 * gpu } end
for node = 0, 1 do routines.ring_allgather { ranks = routines.ranks(2 * node, 2), size = 2 } end

--- case: an AllGather, batched
-- expect: instances 2
allgather { ranks = 3, inplace = true, instances = 2, replication = "batched" }
for r = 0, 2 do chunk(r, output, r):copy((r + 1) % 3):copy((r + 2) % 3) end

--- case: an AllGather out of place with two chunks, batched
-- expect: instances 3
allgather { ranks = 2, chunks = 2, instances = 3, replication = "batched" }
for r = 0, 1 do
  chunk(r, input, 0, 2):copy(r, output, 2 * r)
  chunk(r, input, 0):copy(1 - r, output, 2 * r)
  chunk(r, input, 1):copy(1 - r, output, 2 * r + 1)
end

--- case: an AllToAll through scratch, batched
-- expect: instances 2
alltoall { ranks = 3, instances = 2, replication = "batched" }
local tmp = scratch("tmp")
for r = 0, 2 do
  for q = 0, 2 do chunk(r, input, q):copy((r + q) % 3, tmp):copy(q, output, r) end
end

--- case: a part of the program in parallel
-- expect: steps 12
local routines = require "polyccl.routines"
allreduce { ranks = 3, chunks = 3, inplace = true }
parallelize(2, function() routines.ring_reduce_scatter { ranks = { 0, 1, 2 } } end)
routines.ring_allgather { ranks = { 0, 1, 2 } }

--- case: scopes in one another, in instances
-- expect: steps 12, instances 2
local routines = require "polyccl.routines"
allreduce { ranks = 3, chunks = 3, inplace = true, instances = 2 }
parallelize(2, function()
  routines.ring_reduce_scatter { ranks = { 0, 1, 2 } }
  parallelize(3, function() routines.ring_allgather { ranks = { 0, 1, 2 } } end)
end)

--- case: two scopes of different width one after the other, batched
-- expect: steps 12
local routines = require "polyccl.routines"
allreduce { ranks = 3, chunks = 3, inplace = true, replication = "batched", instances = 2 }
parallelize(2, function() routines.ring_reduce_scatter { ranks = { 0, 1, 2 } } end)
parallelize(3, function() routines.ring_allgather { ranks = { 0, 1, 2 } } end)

--- case: what a scope's function returns comes back
-- expect: right
allreduce { ranks = 2, inplace = true }
local a, b = parallelize(2, function() return chunk(0, input, 0):reduce(chunk(1, input, 0)), 7 end)
assert(a.rank == 0 and b == 7)
a:copy(1)

--- case: every protocol
-- param: protocol=ll128
-- expect: protocol LL128
allreduce { ranks = 2, inplace = true, protocol = param("protocol", "Simple") }
chunk(0, input, 0):reduce(chunk(1, input, 0)):copy(1)
