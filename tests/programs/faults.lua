-- The faults of earlier tools that concern the language, each shown right.
--- case: a remote reduce between different indices
-- expect: steps 4, remote 2, hops 2
reduce_scatter { ranks = 2 }
local tmp = scratch("tmp")
local sum = chunk(0, input, 0):copy(0, output, 0)
sum:reduce(chunk(1, input, 0))
chunk(1, input, 1):reduce(chunk(0, input, 1)):copy(1, output, 0)

--- case: a remote reduce from scratch at another index
-- expect: right
reduce_scatter { ranks = 2 }
local tmp = scratch("tmp")
for r = 0, 1 do
  local other = chunk(1 - r, input, r):copy(1 - r, tmp, 3)
  chunk(r, input, r):copy(r, output, 0):reduce(other)
end

--- case: a local reduce on initial data stays
-- expect: steps 4, remote 3
custom {
  ranks = 2, chunks = 2, chunks_out = 1,
  post = function(rank) return { { 0, 0 }, { 0, 1 } } end,
}
chunk(0, input, 0):reduce(chunk(0, input, 1)):copy(1, output, 0):copy(0, output, 0)
chunk(1, input, 0):copy(0, scratch("unused"), 0)

--- case: a chunk reduced with itself
-- expect error: faults.lua:32: cannot reduce rank 0 input[0] into rank 0 input[0]: a chunk cannot be reduced with itself
allreduce { ranks = 2 }
local c = chunk(0, input, 0)
c:reduce(c)

--- case: a chunk reduced with itself under another name
-- expect error: faults.lua:38: cannot reduce rank 0 output[0] into rank 0 input[0]: a chunk cannot be reduced with itself
allreduce { ranks = 2, inplace = true }
local c = chunk(0, input, 0)
c:reduce(chunk(0, output, 0))

--- case: a stale reference names both lines
-- expect error: faults.lua:45: stale chunk: rank 1 input[0] was overwritten at faults.lua:44 after this reference to it was taken
allreduce { ranks = 2, inplace = true }
local a, b = chunk(0, input, 0), chunk(1, input, 0)
a:copy(1)
b:copy(0)

--- case: a stale operand
-- expect error: faults.lua:52: stale chunk: rank 0 input[0] was overwritten at faults.lua:51
allreduce { ranks = 2, inplace = true }
local old = chunk(0, input, 0)
old:reduce(chunk(1, input, 0))
chunk(1, input, 0):reduce(old)

--- case: one stale chunk of several
-- expect error: faults.lua:59: stale chunk: rank 0 input[2] was overwritten at faults.lua:58
allreduce { ranks = 2, chunks = 3, inplace = true }
local whole = chunk(0, input, 0, 3)
chunk(1, input, 2):copy(0)
whole:copy(1)

--- case: a part of a split that went stale
-- expect error: faults.lua:66: stale chunk: rank 0 input[1] was overwritten at faults.lua:65
allreduce { ranks = 2, chunks = 2, inplace = true }
local parts = chunk(0, input, 0, 2):split(2)
chunk(1, input, 1):copy(0)
parts[2]:copy(1)

--- case: sizes come from the declaration, not from use
-- expect error: untouched: rank 1 output[3]: holds nothing, lacks rank 0 chunk 3; never written
broadcast { ranks = 2, chunks = 4, name = "untouched" }
chunk(0, input, 0, 4):copy(0, output, 0)
chunk(0, input, 0, 3):copy(1, output, 0)

--- case: a contribution twice
-- expect error: ...has 2x rank 1 chunk 0
allreduce { ranks = 2, inplace = true }
local tmp = scratch("tmp")
local sum = chunk(0, input, 0)
local other = chunk(1, input, 0):copy(0, tmp)
sum = sum:reduce(other)
sum = sum:reduce(other)
sum:copy(1)

--- case: a contribution that is missing names the line that made the sum
-- expect error: faults: rank 0 output[0]: lacks rank 2 chunk 0; reduced at faults.lua:87
allreduce { ranks = 3, inplace = true }
local sum = chunk(0, input, 0):reduce(chunk(1, input, 0))
sum:copy(1)
sum:copy(2)
