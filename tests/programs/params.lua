--- case: defaults
-- expect: right
assert(param("a", 3) == 3 and param("b", 2.5) == 2.5 and param("c", true) == true and param("d", "text") == "text")
assert(math.type(param("a", 3)) == "integer")
allreduce { ranks = 1, inplace = true }

--- case: the default says how a value is read
-- param: a=7
-- param: b=7
-- param: c=no
-- param: d=7
-- param: e=0x10
-- param: f=On
-- expect: right
assert(math.type(param("a", 3)) == "integer" and param("a", 3) == 7)
assert(param("b", 2.5) == 7 and param("c", true) == false and param("d", "text") == "7")
assert(param("e", 0) == 16 and param("f", false) == true)
allreduce { ranks = 1, inplace = true }

--- case: a whole number written as a float
-- param: a=4.0
-- expect: right
assert(math.type(param("a", 3)) == "integer")
allreduce { ranks = 1, inplace = true }

--- case: no default
-- param: ranks=3
-- param: mode=fast
-- expect: ranks 3
assert(param("mode") == "fast")
allreduce { ranks = param("ranks"), inplace = true, chunks = 3 }
for c = 0, 2 do
  local at = chunk((c + 1) % 3, input, c)
  for s = 2, 3 do at = chunk((c + s) % 3, input, c):reduce(at) end
  for s = 1, 2 do at = at:copy((at.rank + 1) % 3) end
end

--- case: a value that is missing
-- expect error: params.lua:40: parameter ranks has no default: give it a value (-p ranks=...)
allreduce { ranks = param("ranks") }

--- case: no number
-- param: ranks=four
-- expect error: params.lua:45: parameter ranks must be a number, not "four"
allreduce { ranks = param("ranks", 4) }

--- case: no whole number
-- param: ranks=2.5
-- expect error: params.lua:50: parameter ranks must be a whole number, not "2.5"
allreduce { ranks = param("ranks", 4) }

--- case: an empty value
-- param: ranks=
-- expect error: params.lua:55: parameter ranks must be a number, not ""
allreduce { ranks = param("ranks", 4) }

--- case: a number too large for the integers
-- param: ranks=99999999999999999999
-- expect error: params.lua:60: parameter ranks must be a whole number, not "99999999999999999999"
allreduce { ranks = param("ranks", 4) }

--- case: neither true nor false
-- param: fast=maybe
-- expect error: params.lua:65: parameter fast must be true or false, not "maybe"
local fast = param("fast", true)

--- case: a parameter that no one asks for
-- param: rank=4
-- expect error: params.lua: no parameter "rank" (known: ranks, channels)
local n, channels = param("ranks", 2), param("channels", 1)
allreduce { ranks = n }

--- case: a parameter for a program that has none
-- param: ranks=4
-- expect error: params.lua: no parameter "ranks" (the program has none)
allreduce { ranks = 1, inplace = true }

--- case: a name that is no text
-- expect error: params.lua:80: param: the name must be text, not 3
param(3)

--- case: a default that cannot be one
-- expect error: params.lua:84: param: the default must be a number, text, true or false, not a table
param("x", {})

--- case: a help that is no text
-- expect error: params.lua:88: param: the help must be text, not 3
param("x", 1, 3)
