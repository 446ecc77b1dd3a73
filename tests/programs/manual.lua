--- case: thread blocks and channels as the author says
-- expect: steps 4
allreduce { ranks = 2, chunks = 2, inplace = true, manual = true }
for c = 0, 1 do
  local sum = chunk(c, input, c):reduce(chunk(1 - c, input, c), { ch = c, sendtb = c, recvtb = c })
  sum:copy(1 - c, { ch = c, sendtb = c, recvtb = c })
end

--- case: two thread blocks on one connection
-- expect error: manual.lua:15: rank 0 sends to rank 1 on channel 0 in thread block 1 here and in thread block 0 at manual.lua:14; a connection belongs to one: use the same sendtb, or another channel
broadcast { ranks = 2, chunks = 2, manual = true }
local a, b = chunk(0, input, 0), chunk(0, input, 1)
chunk(0, input, 0, 2):copy(0, output, 0, { sendtb = 0 })
a:copy(1, output, 0, { ch = 0, sendtb = 0, recvtb = 0 })
b:copy(1, output, 1, { ch = 0, sendtb = 1, recvtb = 0 })

--- case: two receiving thread blocks on one connection
-- expect error: manual.lua:23: rank 1 receives from rank 0 on channel 0 in thread block 1 here and in thread block 0 at manual.lua:22; a connection belongs to one: use the same recvtb, or another channel
broadcast { ranks = 2, chunks = 2, manual = true }
local a, b = chunk(0, input, 0), chunk(0, input, 1)
chunk(0, input, 0, 2):copy(0, output, 0, { sendtb = 0 })
a:copy(1, output, 0, { ch = 0, sendtb = 0, recvtb = 0 })
b:copy(1, output, 1, { ch = 0, sendtb = 0, recvtb = 1 })

--- case: manual without saying it
-- expect error: manual.lua:28: the program assigns thread blocks itself (manual), but this operation has no sendtb
broadcast { ranks = 2, inplace = true, manual = true }
chunk(0, input, 0):copy(1)

--- case: fusion off
-- expect: right
broadcast { ranks = 3, inplace = true, fusion = false }
chunk(0, input, 0):copy(1):copy(2)

--- case: channels as wishes, thread blocks by the compiler
-- expect: right
broadcast { ranks = 3, chunks = 2, inplace = true }
for c = 0, 1 do chunk(0, input, c):copy(1, { ch = c }):copy(2, { ch = c }) end
