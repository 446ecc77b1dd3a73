--- case: a ring on a ring of links
-- expect: steps 24, hops 6
local routines = require "polyccl.routines"
allreduce { ranks = 4, chunks = 4, inplace = true, topology = "ring:4" }
routines.ring_allreduce { ranks = { 0, 1, 2, 3 } }

--- case: a copy across the ring
-- expect error: topology.lua:10: rank 0 has no link to rank 2 in topology ring:4
broadcast { ranks = 4, topology = "ring:4" }
chunk(0, input, 0):copy(2, output, 0)

--- case: a reduction across the ring
-- expect error: topology.lua:15: rank 3 has no link to rank 1 in topology ring:4
allreduce { ranks = 4, topology = "ring:4" }
chunk(1, input, 0):reduce(chunk(3, input, 0))

--- case: a routine across the ring names the author's line
-- expect error: topology.lua:21: rank 1 has no link to rank 3 in topology ring:4
local routines = require "polyccl.routines"
allreduce { ranks = 4, chunks = 4, inplace = true, topology = "ring:4" }
routines.ring_allreduce { ranks = { 0, 2, 1, 3 } }

--- case: what stays on a rank needs no link
-- expect: right
allgather { ranks = 1, topology = "ring:4" }
chunk(0, input, 0):copy(0, output, 0)

--- case: a file in the program's folder
-- expect error: topology.lua:31: rank 0 has no link to rank 2 in topology chain
broadcast { ranks = 3, topology = "helpers/chain.json" }
chunk(0, input, 0):copy(2, output, 0)

--- case: fewer ranks than the program
-- expect error: topology.lua:35: topology ring:4 has 4 ranks, but the program has 5
allreduce { ranks = 5, topology = "ring:4" }

--- case: a machine that is none
-- expect error: topology.lua:39: topology rign:4 is neither a shipped machine (polyccl topology --list) nor a file in the program's folder
allreduce { ranks = 4, topology = "rign:4" }

--- case: a file outside the folder
-- expect error: topology.lua:43: topology ../../README.md lies outside the program's folder (give it as a parameter)
allreduce { ranks = 4, topology = "../../README.md" }

--- case: an absolute path
-- expect error: topology.lua:47: topology /etc/hostname lies outside the program's folder (give it as a parameter)
allreduce { ranks = 4, topology = "/etc/hostname" }

--- case: a value that is no text
-- expect error: topology.lua:51: allreduce: topology must be text, not 4
allreduce { ranks = 4, topology = 4 }

--- case: a topology from the command line
-- param: topology=ring:3
-- expect error: topology.lua:57: rank 0 has no link to rank 2 in topology ring:4
broadcast { ranks = 4, topology = "ring:4", name = param("topology", "") }
chunk(0, input, 0):copy(2, output, 0)
