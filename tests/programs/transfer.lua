--- case: a ring of tasks
-- param: ranks=4
-- expect: allreduce, ranks 4, chunks 4, steps 24, hops 6, identical yes, in place yes
local n = param("ranks", 8)
allreduce { ranks = n, chunks = n, inplace = true }
for c = 0, n - 1 do
  for s = 0, n - 2 do
    transfer((c + s) % n, (c + s + 1) % n, s, c, "rrc")
    transfer((c + s + n - 1) % n, (c + s) % n, n - 1 + s, c, "recv")
  end
end

--- case: steps decide the order, not the lines
-- expect: allgather, ranks 3, chunks 1, steps 6, hops 2, identical yes, in place yes
allgather { ranks = 3, chunks = 1, inplace = true }
for c = 0, 2 do
  transfer((c + 1) % 3, (c + 2) % 3, 1, c, "recv")
  transfer(c, (c + 1) % 3, 0, c, "recv")
end

--- case: a chunk that is not there yet
-- expect error: transfer.lua:25: rank 1 output[0] holds nothing yet
allgather { ranks = 3, chunks = 1, inplace = true }
transfer(0, 1, 5, 0, "recv")
transfer(1, 2, 4, 0, "recv")

--- case: out of place has no tasks
-- expect error: transfer.lua:30: transfer: the program must be in place (inplace = true)
allreduce { ranks = 2, chunks = 1, inplace = false }
transfer(0, 1, 0, 0, "rrc")

--- case: an unknown kind
-- expect error: transfer.lua:35: transfer: the kind must be "recv" or "rrc", not the text "copy"
allreduce { ranks = 2, chunks = 1, inplace = true }
transfer(0, 1, 0, 0, "copy")

--- case: ranks, chunks and steps are checked where they stand
-- expect error: transfer.lua:40: transfer: rank 2 is out of range (0 to 1)
allreduce { ranks = 2, chunks = 1, inplace = true }
transfer(0, 2, 0, 0, "rrc")

--- case: a chunk out of range
-- expect error: transfer.lua:45: transfer: chunk 1 is out of range (0 to 0)
allreduce { ranks = 2, chunks = 1, inplace = true }
transfer(0, 1, 0, 1, "rrc")

--- case: tasks and chunks do not mix
-- expect error: transfer.lua:51: copy and reduce do not mix with transfer
allreduce { ranks = 2, chunks = 1, inplace = true }
transfer(0, 1, 0, 0, "rrc")
chunk(0, input, 0):copy(1)
