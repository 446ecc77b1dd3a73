--- case: what the author declares is checked
-- expect: custom, ranks 3, steps 3
custom { ranks = 3, chunks = 2, post = function(rank, c) if c == 0 then return { { (rank + 1) % 3, 1 } } end end }
for r = 0, 2 do chunk((r + 1) % 3, input, 1):copy(r, output, 0) end

--- case: and an error where it does not hold
-- expect error: custom: rank 1 output[0]: has rank 0 chunk 0, lacks rank 2 chunk 0; copied at custom.lua:9
custom { ranks = 3, post = function(rank, c) return { { (rank + 1) % 3, 0 } } end }
for r = 0, 2 do chunk(r == 0 and 1 or 0, input, 0):copy(r, output, 0) end

--- case: a chunk that is not there at the start
-- expect error: custom.lua:15: rank 1 input[0] holds nothing yet
custom { ranks = 2, pre = function(rank) return rank == 0 end, post = function() return { { 0, 0 } } end }
chunk(0, input, 0):copy(1, output, 0)
chunk(1, input, 0):copy(0, output, 0)

--- case: reductions and other sizes of output
-- expect: steps 4
custom { ranks = 2, chunks = 2, chunks_out = 1, post = function() return { { 0, 0 }, { 1, 1 } } end }
for r = 0, 1 do chunk(0, input, 0):copy(r, output, 0):reduce(chunk(1, input, 1)) end

--- case: a multiset: twice the same
-- expect: right
custom { ranks = 2, post = function(r) if r == 0 then return { { 1, 0 }, { 1, 0 } } end end }
chunk(1, input, 0):copy(0, output, 0):reduce(chunk(1, input, 0))

--- case: no post
-- expect error: custom.lua:29: custom: post is missing; it is a function(rank, chunk) that says what must be there
custom { ranks = 2 }

--- case: post is no function
-- expect error: custom.lua:33: custom: post must be a function, not a table
custom { ranks = 2, post = {} }

--- case: post returns a single pair
-- expect error: custom.lua:37: custom: post(0, 0) must return a list of pairs such as {{rank, chunk}}, but the list has 0 in it
custom { ranks = 2, post = function() return { 0, 0 } end }

--- case: post returns a number
-- expect error: custom.lua:41: custom: post(0, 0) must return a list of pairs such as {{rank, chunk}} or nil, not 5
custom { ranks = 2, post = function() return 5 end }

--- case: post returns an empty list
-- expect error: custom.lua:45: custom: post(0, 0) returns a list of 0 pairs (return nil where anything may be)
custom { ranks = 2, post = function() return {} end }

--- case: post names a rank that is not there
-- expect error: custom.lua:49: postcondition of rank 0 chunk 0: rank 2 chunk 0 is out of range
custom { ranks = 2, post = function() return { { 2, 0 } } end }

--- case: post names no whole chunk
-- expect error: custom.lua:53: custom: a chunk that post(0, 0) returns must be a whole number, not 0.5
custom { ranks = 2, post = function() return { { 1, 0.5 } } end }

--- case: post fails
-- expect error: custom.lua:57: attempt to perform arithmetic on a nil value
custom { ranks = 2, post = function(rank) return nil + rank end }

--- case: pre returns nothing
-- expect error: custom.lua:61: custom: pre(0, 0) must return true or false, not nothing (nil)
custom { ranks = 2, pre = function() end, post = function() end }

--- case: post works on the program it declares
-- expect error: custom.lua:65: the postcondition must be declared before the first operation
custom { ranks = 2, post = function(rank) chunk(0, input, 0):copy(1, output, 0) return { { 0, 0 } } end }
