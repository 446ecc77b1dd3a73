--- case: no collective
-- expect error: errors.lua: the program declares no collective, such as allreduce { ranks = 4 }
local x = 1

--- case: an operation before the collective
-- expect error: errors.lua:7: chunk: declare the collective first, such as allreduce { ranks = 4 }
chunk(0, input, 0)

--- case: two collectives
-- expect error: errors.lua:12: allgather: the program is already of kind allreduce, declared at errors.lua:11
allreduce { ranks = 2 }
allgather { ranks = 2 }

--- case: no ranks
-- expect error: errors.lua:16: allreduce: ranks is missing
allreduce { chunks = 2 }

--- case: a misspelt key
-- expect error: errors.lua:20: allreduce: unknown key "chnuks" (known: ranks, chunks, inplace, name, protocol, instances, replication, minbytes, maxbytes, manual, fusion, topology)
allreduce { ranks = 2, chnuks = 2 }

--- case: a key of another collective
-- expect error: errors.lua:24: allreduce: unknown key "root"
allreduce { ranks = 2, root = 0 }

--- case: a list instead of names
-- expect error: errors.lua:28: allreduce: unexpected entry [1] = ... (known: ranks,
allreduce { 4, ranks = 2 }

--- case: parentheses instead of braces
-- expect error: errors.lua:32: allreduce needs a table such as {name = value}, not 4
allreduce(4)

--- case: no ranks at all
-- expect error: errors.lua:36: ranks = 0 is out of range (1 to 65536)
allreduce { ranks = 0 }

--- case: a negative number of chunks
-- expect error: errors.lua:40: chunks = -1 is out of range
allreduce { ranks = 2, chunks = -1 }

--- case: ranks that are no whole number
-- expect error: errors.lua:44: allreduce: ranks must be a whole number, not 2.5
allreduce { ranks = 2.5 }

--- case: a float that is whole
-- expect: ranks 2
allreduce { ranks = 4 / 2, inplace = true }
chunk(0.0, input, 0):reduce(chunk(1.0, input, 0.0, 1.0)):copy(1.0)

--- case: ranks that are not a number
-- expect error: errors.lua:53: allreduce: ranks must be a whole number, not nan
allreduce { ranks = 0 / 0 * -1 }

--- case: ranks without end
-- expect error: errors.lua:57: allreduce: ranks must be a whole number, not inf
allreduce { ranks = math.huge }

--- case: more ranks than an int holds
-- expect error: errors.lua:61: allreduce: ranks is out of range: 4294967298
allreduce { ranks = 4294967298 }

--- case: text for a number
-- expect error: errors.lua:65: allreduce: ranks must be a whole number, not the text "2"
allreduce { ranks = "2" }

--- case: more chunks than there is memory
-- expect error: errors.lua:69: the program needs more than 4294967296 bytes (POLYCCL_LUA_MEMORY)
allreduce { ranks = 65536, chunks = 1048576 }

--- case: a boolean that is none
-- expect error: errors.lua:73: allreduce: inplace must be true or false, not 1
allreduce { ranks = 2, inplace = 1 }

--- case: a protocol that is none
-- expect error: errors.lua:77: unknown protocol "LL256" (known: Simple, LL, LL128)
allreduce { ranks = 2, protocol = "LL256" }

--- case: a replication that is none
-- expect error: errors.lua:81: allreduce: replication must be "interleaved" or "batched", not "batch"
allreduce { ranks = 2, replication = "batch" }

--- case: instances below one
-- expect error: errors.lua:85: allreduce: instances = 0 is out of range (at least 1)
allreduce { ranks = 2, instances = 0 }

--- case: bytes that are no number
-- expect error: errors.lua:89: allreduce: minbytes must be a number of bytes such as 4096 or "64k", not the text "big"
allreduce { ranks = 2, minbytes = "big" }

--- case: a range of bytes the wrong way round
-- expect error: errors.lua:93: minbytes 65536 is above maxbytes 1024
allreduce { ranks = 2, minbytes = "64k", maxbytes = 1024 }

--- case: a range of bytes
-- expect: bytes 1024 67108864
allreduce { ranks = 1, inplace = true, minbytes = 1024, maxbytes = "64m" }

--- case: a root out of range
-- expect error: errors.lua:101: root = 2 is out of range (0 to 1)
broadcast { ranks = 2, root = 2 }

--- case: a name with a zero byte
-- expect error: errors.lua:105: allreduce: name has a character in it that cannot be printed
allreduce { ranks = 2, name = "a\0b" }

--- case: a sendrecv in place
-- expect error: errors.lua:109: sendrecv: unknown key "inplace"
sendrecv { ranks = 2, peer = 1, inplace = true }

--- case: a rank out of range
-- expect error: errors.lua:114: rank 2 is out of range (the program has ranks 0 to 1)
allreduce { ranks = 2 }
chunk(2, input, 0)

--- case: a negative rank
-- expect error: errors.lua:119: rank -1 is out of range (the program has ranks 0 to 1)
allreduce { ranks = 2 }
chunk(-1, input, 0)

--- case: an index out of range
-- expect error: errors.lua:124: rank 0 input[1] is out of range (1 chunk there, size 1)
allreduce { ranks = 2 }
chunk(0, input, 1)

--- case: an index that is no whole number
-- expect error: errors.lua:129: chunk: the index must be a whole number, not 0.5
allreduce { ranks = 2 }
chunk(0, input, 1 / 2)

--- case: an index no int holds
-- expect error: errors.lua:134: chunk: the index is out of range: 9223372036854775807
allreduce { ranks = 2 }
chunk(0, input, math.maxinteger)

--- case: a size of nothing
-- expect error: errors.lua:139: rank 0 input[0] is out of range (1 chunk there, size 0)
allreduce { ranks = 2 }
chunk(0, input, 0, 0)

--- case: an argument too many
-- expect error: errors.lua:144: chunk: unexpected argument 7
allreduce { ranks = 2 }
chunk(0, input, 0, 1, 7)

--- case: a buffer that is none
-- expect error: errors.lua:149: chunk: the buffer must be input, output or scratch("name"), not the text "input"
allreduce { ranks = 2 }
chunk(0, "input", 0)

--- case: a buffer that is nil
-- expect error: errors.lua:155: chunk: the buffer must be input, output or scratch("name"), not nothing (nil)
allreduce { ranks = 2 }
local nowhere
chunk(0, nowhere, 0)

--- case: an output that holds nothing
-- expect error: errors.lua:160: rank 0 output[0] holds nothing yet
allreduce { ranks = 2 }
chunk(0, output, 0)

--- case: a scratch buffer that holds nothing
-- expect error: errors.lua:165: rank 0 tmp[0] is out of range (0 chunks there, size 1)
allreduce { ranks = 2 }
chunk(0, scratch("tmp"), 0)

--- case: a scratch buffer without a name
-- expect error: errors.lua:170: scratch: the name must be text of 1 to 60 printable characters, not 3
allreduce { ranks = 2 }
scratch(3)

--- case: a scratch buffer with a taken name
-- expect error: errors.lua:175: scratch: "output" is the name of another buffer
allreduce { ranks = 2 }
scratch("output")

--- case: a copy to nowhere
-- expect error: errors.lua:180: rank 7 is out of range
allreduce { ranks = 2 }
chunk(0, input, 0):copy(7)

--- case: a copy beyond the buffer
-- expect error: errors.lua:185: rank 1 output[3] is out of range (1 chunk there, size 1)
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, output, 3)

--- case: a copy to a negative index
-- expect error: errors.lua:190: copy: the index is out of range: -1
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, output, -1)

--- case: a copy with an index but no buffer
-- expect error: errors.lua:195: copy: the buffer must be input, output or scratch("name"), not 0
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, 0)

--- case: a copy that overlaps itself
-- expect error: errors.lua:200: a copy from rank 0 input[0..1] to rank 0 input[1..2] overlaps itself
allreduce { ranks = 2, chunks = 3, inplace = true }
chunk(0, input, 0, 2):copy(0, input, 1)

--- case: a misspelt hint
-- expect error: errors.lua:205: copy: hints: unknown key "channel" (known: ch, sendtb, recvtb)
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, output, 0, { channel = 1 })

--- case: a negative hint
-- expect error: errors.lua:210: copy: hints: ch = -3 is out of range (0 and up)
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, output, 0, { ch = -3 })

--- case: a huge hint
-- expect error: errors.lua:215: a channel or thread block above 65535 is out of range
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, output, 0, { sendtb = 70000 })

--- case: hints are the last argument
-- expect error: errors.lua:220: copy: unexpected argument 0
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, { ch = 0 }, 0)

--- case: a dot where a colon belongs
-- expect error: errors.lua:225: copy: must be called on a chunk reference (write ref:copy(...)), not on 1
allreduce { ranks = 2 }
chunk(0, input, 0).copy(1)

--- case: a reduction with something else
-- expect error: errors.lua:230: reduce: the argument must be a chunk reference, not 1
allreduce { ranks = 2 }
chunk(0, input, 0):reduce(1)

--- case: a reduction with nothing
-- expect error: errors.lua:235: reduce: the argument must be a chunk reference, not nothing (nil)
allreduce { ranks = 2 }
chunk(0, input, 0):reduce()

--- case: sizes that differ
-- expect error: errors.lua:240: cannot reduce rank 1 input[0] (size 1) into rank 0 input[0..1] (size 2): the sizes differ
allreduce { ranks = 2, chunks = 2 }
chunk(0, input, 0, 2):reduce(chunk(1, input, 0))

--- case: a collective that does not reduce
-- expect error: errors.lua:245: allgather does not reduce
allgather { ranks = 2 }
chunk(0, input, 0):reduce(chunk(1, input, 0))

--- case: a split that leaves a rest
-- expect error: errors.lua:250: split: 3 chunks cannot be split into 2 equal parts
allreduce { ranks = 2, chunks = 3 }
chunk(0, input, 0, 3):split(2)

--- case: a group with a gap
-- expect error: errors.lua:255: group: chunks 0 to 0 and 2 to 2 are not side by side
allreduce { ranks = 2, chunks = 3 }
group(chunk(0, input, 0), chunk(0, input, 2))

--- case: a group over two ranks
-- expect error: errors.lua:260: cannot group rank 0 input[0] with rank 1 input[1]: they lie in different buffers
allreduce { ranks = 2, chunks = 3 }
group(chunk(0, input, 0), chunk(1, input, 1))

--- case: a group of nothing
-- expect error: errors.lua:265: group needs 1 to 100000 chunk references
allreduce { ranks = 2 }
group()

--- case: a field that is not there
-- expect error: errors.lua:270: a chunk reference has no indx (it has rank, buffer, index, size, copy,
allreduce { ranks = 2 }
local x = chunk(0, input, 0).indx

--- case: a field that cannot be set
-- expect error: errors.lua:275: a chunk reference cannot be changed; take another with chunk()
allreduce { ranks = 2 }
chunk(0, input, 0).rank = 1

--- case: parallelize without a function
-- expect error: errors.lua:280: parallelize: the second argument must be a function, not nothing (nil)
allreduce { ranks = 2 }
parallelize(2)

--- case: parallelize by nothing
-- expect error: errors.lua:285: parallelize by 0 is out of range
allreduce { ranks = 2 }
parallelize(0, function() end)

--- case: an error in a scope that pcall catches closes the scope
-- expect: right
allreduce { ranks = 2, inplace = true }
for _ = 1, 20 do
  assert(not pcall(parallelize, 1024, function() parallelize(1, function() error("no") end) end))
end
parallelize(1024, function() chunk(0, input, 0):reduce(chunk(1, input, 0)):copy(1) end)

--- case: an error in a helper names both lines
-- expect error: helpers/broken.lua:3: rank 9 is out of range (the program has ranks 0 to 1) (called from errors.lua:299)
allreduce { ranks = 2 }
local broken = require "helpers.broken"
broken.take(9)

--- case: an error of Lua's in a helper
-- expect error: helpers/broken.lua:7: attempt to perform arithmetic on a nil value (local 'x') (called from errors.lua:304)
local broken = require "helpers.broken"
broken.add(nil)

--- case: a name that a terminal would obey
-- expect error: errors.lua:309: scratch: the name must be text of 1 to 60 printable characters, not the text "?[31mred"
allreduce { ranks = 2 }
scratch("\27[31mred")
