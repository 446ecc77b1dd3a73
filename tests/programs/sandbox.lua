--- case: nothing that reaches outside is there
-- expect: right
for _, name in ipairs { "io", "os", "debug", "package", "load", "loadfile", "dofile", "collectgarbage", "coroutine",
                        "loadstring", "module", "warn", "ffi", "jit" } do
  assert(rawget(_G, name) == nil, name)
end
assert(string.dump == nil)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: what helps to compute is there
-- expect: right
assert(math.max(1, 2) == 2 and ("x"):rep(3) == "xxx" and table.concat({ 1, 2 }, ",") == "1,2" and utf8.len("é") == 1)
assert(select("#", table.unpack({ 1, 2, 3 })) == 3 and tonumber("0x10") == 16 and next({}) == nil)
local t = { 3, 1, 2 }
table.sort(t)
table.insert(t, 1, 0)
assert(table.remove(t) == 3 and table.concat(t) == "012")
assert(("a=1, b=2"):gsub("%w+=", "") == "1, 2" and ("key=value"):match("(%w+)=(%w+)") == "key")
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: loaded libraries are not reachable through the registry or metatables
-- expect: right
allreduce { ranks = 1 }
local c = chunk(0, input, 0)
assert(getmetatable(c) == "chunk reference" and getmetatable(input) == "buffer")
assert(not pcall(setmetatable, c, {}))
assert(not pcall(setmetatable, input, {}))
c:copy(0, output, 0)

--- case: finalisers are refused
-- expect error: sandbox.lua:34: setmetatable: finalisers (__gc) are not allowed here
setmetatable({}, { __gc = function() while true do end end })

--- case: a finaliser added to a metatable in use never runs
-- expect: right
do
  local meta = {}
  for _ = 1, 1000 do setmetatable({}, meta) end
  meta.__gc = function() while true do end end
  local waste = {}
  for i = 1, 100000 do waste[i % 100] = { i } end
end
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: undefined names are errors, not nil
-- expect error: sandbox.lua:50: undefined name "rnaks"
allreduce { ranks = rnaks }

--- case: globals of the program's own are fine
-- expect: right
function helper() return 1 end
allreduce { ranks = helper() }
chunk(0, input, 0):copy(0, output, 0)

--- case: pairs goes in the order of the keys in every run
-- expect: right
local keys = {}
for key, value in pairs { zeta = 1, alpha = 2, [3] = 3, [1] = 4, [2.5] = 5, [true] = 6, [false] = 7, mid = 8 } do
  keys[#keys + 1] = tostring(key) .. "=" .. value
end
assert(table.concat(keys, " ") == "1=4 2.5=5 3=3 alpha=2 mid=8 zeta=1 false=7 true=6", table.concat(keys, " "))
local t = { a = 1, b = 2, c = 3 }
local seen = 0
for key in pairs(t) do t[key] = nil; t.c = nil; seen = seen + 1 end
assert(seen == 2)
assert(math.random(1000000) == 1 or true)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: a seed from the clock is refused
-- expect error: sandbox.lua:75: math.randomseed: give a number
math.randomseed()

--- case: bytecode is refused
-- expect error: ...attempt to load a binary chunk
require "helpers.bytecode"

--- case: a program that writes over the names it needs
-- expect error: sandbox.lua:85: undefined name "chunk"
allreduce { ranks = 1 }
chunk = nil
chunk(0, input, 0)

--- case: pcall catches ordinary errors
-- expect: right
local ok, message = pcall(error, "no")
assert(not ok and message == "no")
ok, message = pcall(function() return nil + 1 end)
assert(not ok and message:find("attempt to perform arithmetic"))
assert(select(2, xpcall(error, function(m) return "handled " .. m end, "x")) == "handled x")
allreduce { ranks = 2, inplace = true }
ok, message = pcall(chunk, 5, input, 0)
assert(not ok and message:find("rank 5 is out of range", 1, true), message)
chunk(0, input, 0):reduce(chunk(1, input, 0)):copy(1)

--- case: an error with no text
-- expect error: sandbox.lua:101: the error has a value that is not text (table)
error({})

--- case: an error from nothing
-- expect error: sandbox.lua:105: the error has a value that is not text (nil)
error()

--- case: a syntax error has its line
-- expect error: sandbox.lua:110: unexpected symbol near '='
allreduce {
  = 3
}
