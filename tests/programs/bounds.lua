--- case: a loop that does not end
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:4: the program ran more than 1048576 instructions (POLYCCL_LUA_INSTRUCTIONS); does it end?
while true do end

--- case: pcall does not catch the end
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:9: the program ran more than 1048576 instructions
while true do pcall(function() while true do end end) end

--- case: xpcall's handler does not run on
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:14: the program ran more than
xpcall(function() while true do end end, function() while true do end end)

--- case: a handler that fails for ever
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:20: the program ran more than
xpcall(error, function() error("again") end)
while true do xpcall(error, function() error("again") end) end

--- case: closing variables does not hold it up
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:26: the program ran more than
local held <close> = setmetatable({}, { __close = function() while true do end end })
while true do end

--- case: recursion without end
-- expect error: bounds.lua:30: stack overflow
local function f() return 1 + f() end
f()

--- case: recursion through pcall
-- env: POLYCCL_LUA_INSTRUCTIONS=10m
-- expect error: bounds.lua:36: the program ran more than
local function f() pcall(f) f() end
f()

--- case: a table without end
-- env: POLYCCL_LUA_MEMORY=8m
-- expect error: bounds.lua:43: the program needs more than 8388608 bytes (POLYCCL_LUA_MEMORY)
local t = {}
for i = 1, 1e9 do t[i] = { i } end

--- case: memory is not caught either
-- env: POLYCCL_LUA_MEMORY=8m
-- expect error: bounds.lua:49: the program needs more than 8388608 bytes
local t = {}
pcall(function() for i = 1, 1e9 do t[i] = { i } end end)
error("not reached")

--- case: operations count as memory
-- env: POLYCCL_LUA_MEMORY=8m
-- expect error: bounds.lua:56: the program needs more than 8388608 bytes
allreduce { ranks = 2, inplace = true }
while true do chunk(0, input, 0):copy(1) end

--- case: a string too long
-- expect error: bounds.lua:60: the program makes a string of more than 1048576 bytes
local s = ("x"):rep(1e9)

--- case: growing a string by doubling
-- expect error: bounds.lua:65: the program makes a string of more than 1048576 bytes
local s = "x"
while true do s = s .. s end

--- case: repeating nothing
-- expect: right
assert((""):rep(1 << 60) == "")
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: a pattern that backtracks for ever
-- expect error: bounds.lua:76: string.find: this pattern could take too long on a string of 60 bytes
local s = ("a"):rep(60)
s:find(("a*"):rep(30) .. "b")

--- case: the same with lazy repetitions, classes and sets
-- expect error: bounds.lua:81: string.match: this pattern could take too long
local s = ("a"):rep(60)
s:match(("[%]a-]-%w*."):rep(15) .. "b")

--- case: the same with balanced pairs and back references
-- expect error: ...string.gsub: this pattern could take too long
local s = ("(a)"):rep(3000)
s:gsub("(.-)%1%b()%b()%b()", "")

--- case: a long table operation
-- env: POLYCCL_LUA_INSTRUCTIONS=100m
-- expect error: bounds.lua:91: the program ran more than
table.move({}, 1, 1 << 60, 2)

--- case: a length that lies
-- env: POLYCCL_LUA_INSTRUCTIONS=100m
-- expect error: bounds.lua:97: the program ran more than
local liar = setmetatable({}, { __len = function() return 1 << 60 end })
table.insert(liar, 1, 0)

--- case: concatenating a length that lies
-- env: POLYCCL_LUA_INSTRUCTIONS=100m
-- expect error: bounds.lua:103: the program ran more than
local liar = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return "" end })
table.concat(liar)

--- case: unpacking too much
-- expect error: ...table.unpack returns too many values (at most 30000)
table.unpack({}, 1, 1e7)

--- case: many short-lived objects are fine
-- env: POLYCCL_LUA_MEMORY=8m
-- expect: right
for i = 1, 200000 do local t = { i, i } end
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: deep nesting in the text
-- expect error: bounds.lua:118: C stack overflow (blocks, brackets and operators are nested too deeply
local deep = {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{

--- case: making text costs as well
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:123: the program ran more than
while true do tostring({}) end

--- case: too little memory to begin
-- env: POLYCCL_LUA_MEMORY=1k
-- expect error: POLYCCL_LUA_MEMORY and POLYCCL_LUA_INSTRUCTIONS are too small
allreduce { ranks = 1 }

--- case: an option that is no number
-- env: POLYCCL_LUA_MEMORY=lots
-- expect error: POLYCCL_LUA_MEMORY=lots is not a number such as 4096, 64k or 4g
allreduce { ranks = 1 }

--- case: endless conditions of a custom collective
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:138: the program ran more than
custom { ranks = 2, post = function() while true do end end }

--- case: a condition on more chunks than can be asked
-- env: POLYCCL_LUA_INSTRUCTIONS=1m
-- expect error: bounds.lua:143: the program needs more than 4294967296 bytes
custom { ranks = 60000, chunks = 10000, post = function() end }

--- case: printing costs by the byte
-- env: POLYCCL_LUA_INSTRUCTIONS=100k
-- expect error: bounds.lua:150: the program ran more than
local text = ("."):rep(40000)
for _ = 1, 3 do print(text:sub(1, 1)) end
print(text .. text .. text)
