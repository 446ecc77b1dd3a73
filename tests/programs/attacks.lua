--- case: insert in the middle of a length that lies, whole number
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.insert(huge, 1, 1)

--- case: the same with a float
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.insert(huge, 1.0, 1)

--- case: the same with text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.insert(huge, "1", 1)

--- case: a length that lies the second time
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local asked = 0
local two = setmetatable({}, { __len = function() asked = asked + 1 return asked % 2 == 0 and 1 << 60 or 0 end, __index = function() return 1 end })
while true do pcall(table.insert, two, 1, 1) pcall(table.remove, two, 1) pcall(table.sort, two) pcall(table.concat, two) end

--- case: remove
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.remove(huge, 1)

--- case: remove with a float
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.remove(huge, 1.0)

--- case: remove, negative length
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = setmetatable({}, { __len = function() return -5 end }) while true do table.remove(t) end

--- case: sort
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...array too big
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.sort(huge)

--- case: sort, just below what is too big
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
table.sort(setmetatable({}, { __len = function() return 2147483646 end }))

--- case: sort with an order of C
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = {} for i = 1, 100000 do t[i] = i end while true do table.sort(t, rawequal) end

--- case: sort with an order that makes no sense
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function() return true end) end

--- case: sort long texts
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local t = {} for i = 1, 20 do t[i] = s:sub(1, -2) .. i end while true do table.sort(t) end

--- case: concat
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.concat(huge)

--- case: concat to the last whole number
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.concat(huge, '', math.mininteger, math.maxinteger)

--- case: concat with a long separator
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
local s = ("a"):rep(1 << 20)
local t = {} for i = 1, 1000 do t[i] = '' end table.concat(t, s)

--- case: unpack
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...table.unpack returns too many values (at most 30000)
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.unpack(huge)

--- case: unpack over all whole numbers
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...table.unpack returns too many values
table.unpack({}, math.mininteger, math.maxinteger)

--- case: unpack again and again
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do table.unpack({}, 1, 30000) end

--- case: move
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.move(huge, 1, 1 << 60, 2)

--- case: move with numbers as text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local huge = setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return 1 end, __newindex = function() end })
table.move(huge, "1", "0x1000000000000", 2)

--- case: pack what was unpacked
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do table.pack(table.unpack({}, 1, 30000)) end

--- case: plain find
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local w = ("a"):rep(1 << 19) .. "b" while true do s:find(w, 1, true) end

--- case: find without specials
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local w = ("a"):rep(1 << 19) .. "b" while true do s:find(w) end

--- case: a long set
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...this pattern could take too long
local s = ("a"):rep(1 << 20)
s:match("[" .. ("b"):rep(1 << 19) .. "]")

--- case: a set on a shorter text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local set = "[" .. ("b"):rep(1 << 10) .. "]" while true do s:sub(1, 1000):match(set) end

--- case: a frontier with a long set
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...this pattern could take too long
local s = ("a"):rep(1 << 20)
s:match("%f[" .. ("b"):rep(1 << 19) .. "]")

--- case: a long pattern
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...this pattern could take too long
local s = ("a"):rep(1 << 20)
s:match(("a"):rep(1 << 19) .. ".b")

--- case: a pattern that begins at every place
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do s:sub(1, 5000):match("a*b") end

--- case: a circumflex does not anchor gmatch
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...this pattern could take too long
local s = ("a"):rep(1 << 20)
for _ in s:gmatch("^a*b") do end

--- case: gmatch
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do for _ in s:sub(1, 2000):gmatch("a-b") do end end

--- case: captures of places
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do s:gsub("()()()()()()()()", "") end

--- case: gsub with a long replacement
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
s:gsub("a", s)

--- case: gsub with captures that repeat
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
s:gsub("a", ("%0"):rep(1 << 18))

--- case: gsub with a table that answers at length
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
local s = ("a"):rep(1 << 20)
local t = setmetatable({}, { __index = function() return s end }) while true do s:sub(1, 10):gsub("a", t) end

--- case: gsub with a function of C
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do s:gsub("a", string.upper) end

--- case: balanced pairs
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...this pattern could take too long
("("):rep(1 << 20):match("%b()")

--- case: balanced pairs again and again
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local p = ("("):rep(5000) while true do p:match("%b()") end

--- case: back references
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...this pattern could take too long
local s = ("a"):rep(1 << 20)
s:match("(a*)%1b")

--- case: rep of one character
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
("x"):rep(1 << 40)

--- case: rep whose length overflows
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
("xy"):rep(math.maxinteger, "z")

--- case: rep with nothing but a separator
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
(""):rep(1 << 40, "z")

--- case: rep again and again
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do ("x"):rep(1 << 20) end

--- case: format with widths
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do (("%99d"):rep(200)):format(table.unpack(setmetatable({}, { __index = function() return 1 end }), 1, 200)) end

--- case: format quotes long text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do ("%q"):format(s) end

--- case: format with long text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do ("%.3s"):format(s) end

--- case: format with a width that is too large
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...invalid conversion
("%100d"):format(1)

--- case: byte
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...string.byte returns too many values (at most 30000)
local s = ("a"):rep(1 << 20)
s:byte(1, -1)

--- case: char of many
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do string.char(table.unpack(setmetatable({}, { __index = function() return 65 end }), 1, 20000)) end

--- case: upper, lower, reverse
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do s:upper() s:lower() s:reverse() end

--- case: sub
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do s:sub(2) end

--- case: pack with a size
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
string.pack("c2147483647", "x")

--- case: pack with many sizes
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
string.pack(("c100000"):rep(20), "", "")

--- case: pack long text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do string.pack("s", s) end

--- case: packsize of a long format
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local f = ("b"):rep(1 << 20) while true do string.packsize(f) end

--- case: unpack a text that never ends
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do pcall(string.unpack, "z", s) end

--- case: text that is read as a number
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local d = ("1"):rep(1 << 20) while true do tonumber(d) end

--- case: the same with a base
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local d = ("1"):rep(1 << 20) while true do tonumber(d, 36) end

--- case: the same by arithmetic
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local d = (" "):rep(1 << 19) .. "1" while true do local _ = d + 1 end

--- case: the same in math
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local d = ("1"):rep(1 << 20) while true do math.max(d, d) end

--- case: concatenation
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
local s = ("a"):rep(1 << 20)
while true do s = s .. s end

--- case: concatenation of short-lived texts
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do local _ = s:sub(1, 1 << 19) .. "x" end

--- case: utf8.len
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do utf8.len(s) end

--- case: utf8.codepoint
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...utf8.codepoint returns too many values
local s = ("a"):rep(1 << 20)
utf8.codepoint(s, 1, -1)

--- case: utf8.offset
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do utf8.offset(s, 1 << 19) end

--- case: utf8.codes over bytes that only continue
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local c = "\u{10000}" .. ("\x80"):rep(1 << 19) while true do for _ in utf8.codes(c) do break end local f = utf8.codes(c) pcall(f, c, 1) end

--- case: utf8.char of many
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do utf8.char(table.unpack(setmetatable({}, { __index = function() return 65 end }), 1, 20000)) end

--- case: a chain of __call
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...stack overflow
local t = {} setmetatable(t, { __call = t }) t()

--- case: a long chain of __call
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local f = function() end for i = 1, 20 do f = setmetatable({}, { __call = f }) end while true do f() end

--- case: __index that is a function of C
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = setmetatable({}, { __index = rawget }) while true do local _ = t[1] end

--- case: a chain of __index
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = {} for i = 1, 50 do t = setmetatable({}, { __index = t }) end while true do local _ = t[1] end

--- case: a loop of __index
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...'__index' chain too long; possible loop
local m = {} local t = setmetatable({}, m) m.__index = t local _ = t[1]

--- case: a loop of __newindex
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...'__newindex' chain too long; possible loop
local m = {} local t = setmetatable({}, m) m.__newindex = t t[1] = 1

--- case: __eq, __lt, __le, __concat, __len, __unm
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local m = {} for _, n in ipairs { '__eq', '__lt', '__le', '__concat', '__len', '__unm' } do m[n] = function() return 1 end end local x, y = setmetatable({}, m), setmetatable({}, m) while true do local _ = x == y, x < y, x <= y, x .. y, #x, -x end

--- case: pairs of a large table
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = {} for i = 1, 10000 do t[i] = i end while true do pairs(t) end

--- case: pairs of long keys
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local t = {} for i = 1, 10 do t[s:sub(1, -3) .. i] = i end while true do pairs(t) end

--- case: next from the start
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = {} for i = 1, 10000 do t[i] = i end while true do next(t) end

--- case: next in two tables at once and more
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local ts = {} for i = 1, 9 do ts[i] = {} for k = 1, 1000 do ts[i][k] = k end end while true do for _, t in ipairs(ts) do next(t, 1) end end

--- case: __pairs that is pairs
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = setmetatable({}, { __pairs = function(t) return next, t end }) while true do pairs(t) end

--- case: ipairs without end
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
for _ in ipairs(setmetatable({}, { __index = function() return 1 end })) do end

--- case: ipairs of a function of C
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
for _ in ipairs(setmetatable({}, { __index = function(_, i) return i end })) do end

--- case: tostring
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do tostring({}) end

--- case: __tostring at length
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local t = setmetatable({}, { __tostring = function() return s end }) while true do ('%s'):format(t) end

--- case: __name at length
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local t = setmetatable({}, { __name = s:sub(1, 1 << 19) }) while true do tostring(t) end

--- case: select among many
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local function f(...) while true do select(1, ...) end end f(table.unpack({}, 1, 20000))

--- case: select's number as text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local d = (' '):rep(1 << 19) .. '1' while true do select(d, 1) end

--- case: rawequal of long texts
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local t = s:sub(1, -2) .. 'a' while true do rawequal(s, t) end

--- case: rawget and rawset with long keys
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
local t = {} while true do rawset(t, s, 1) rawget(t, s) end

--- case: rawlen
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do rawlen(s) end

--- case: errors that are caught
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do pcall(error, 'x', 1000) end

--- case: errors with long text
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do pcall(error, s) end

--- case: assert with many values
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do assert(1, table.unpack({}, 1, 20000)) end

--- case: pcall of pcall of pcall
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local function f(...) return pcall(...) end while true do f(pcall, pcall, pcall, pcall, error) end

--- case: xpcall with a handler that fails
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do xpcall(error, function(m) error(m) end) end

--- case: print
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local s = ("a"):rep(1 << 20)
while true do print(s:sub(1, 1)) end

--- case: print of an object at length
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
print(setmetatable({}, { __tostring = function() while true do end end }))

--- case: a finaliser
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...finalisers (__gc) are not allowed here
setmetatable({}, { __gc = print })

--- case: __close that never ends
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
do local x <close> = setmetatable({}, { __close = function() while true do end end }) end

--- case: math.random
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do math.random(0) end

--- case: recursion
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...stack overflow
local function f() return 1 + f() end pcall(f)

--- case: recursion in metamethods
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k + 1] end while true do pcall(function() return t[1] end) end

--- case: recursion in a text's metatable
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
getmetatable("").__index = function(t, k) return t[k] end while true do pcall(function() return ("x").y end) end

--- case: many arguments
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...stack overflow
local function f(...) return f(1, ...) end f()

--- case: pcall does not catch the end of memory
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program needs more than 33554432 bytes
pcall(function() local t = {} for i = 1, 1 << 40 do t[i] = i end end) error('not reached')

--- case: __close does not hide it
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program needs more than 33554432 bytes
pcall(function()
  local x <close> = setmetatable({}, { __close = function() error("hidden", 0) end })
  local t = {}
  for i = 1, 1 << 40 do t[i] = i end
end)
error("not reached")

--- case: __close that loops does not hold it up
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program needs more than 33554432 bytes
pcall(function()
  local x <close> = setmetatable({}, { __close = function() while true do end end })
  local t = {}
  for i = 1, 1 << 40 do t[i] = i end
end)
error("not reached")

--- case: __close that takes memory does not hold it up
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program needs more than 33554432 bytes
pcall(function()
  local x <close> = setmetatable({}, { __close = function() local t = {} while true do t = { t } end end })
  local t = {}
  for i = 1, 1 << 40 do t[i] = i end
end)
error("not reached")

--- case: __close does not hide a text that is too long
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
local s = ("a"):rep(1 << 20)
pcall(function()
  local x <close> = setmetatable({}, { __close = function() error("hidden", 0) end })
  s = s .. s
end)
error("not reached")

--- case: __close does not hide rep
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program makes a string of more than 1048576 bytes
local s = ("a"):rep(1 << 20)
pcall(function()
  local x <close> = setmetatable({}, { __close = function() error("hidden", 0) end })
  s = s:rep(2)
end)
error("not reached")

--- case: a buffer that is too large is not caught
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=100m
-- expect error: ...the program needs more than 33554432 bytes
local s = ("a"):rep(1 << 20)
local t = {}
for i = 1, 20 do t[i] = s:sub(1, -2) .. string.char(64 + i) end
pcall(string.format, ("%s"):rep(20), table.unpack(t))
error("not reached")

--- case: garbage at the edge of memory
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=100m
-- expect error: ...the program ran more than 104857600 instructions
local keep = {}
for i = 1, 300000 do keep[i] = i .. "" end
while true do local _ = ("x"):rep(1 << 20) end

--- case: xpcall's handler does not see the end
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
xpcall(function() while true do end end, function() print('not reached') end) error('not reached')

--- case: an error object does not hide the end
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
pcall(function() local x <close> = setmetatable({}, { __close = function() error({}) end }) while true do end end) error('not reached')

--- case: routines with huge lists
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
local routines = require "polyccl.routines"
allreduce { ranks = 2 }
routines.ring_allreduce { ranks = routines.ranks(0, 1 << 40) }

--- case: pre that is a function of C
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
custom { ranks = 1000, chunks = 10000, pre = rawequal, post = function() end }

--- case: post that is a function of C
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
custom { ranks = 1000, chunks = 10000, post = select and function() end }

--- case: names of parameters
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
for i = 1, 1 << 40 do param("p" .. i, 1) end

--- case: names of scratch buffers
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2 } for i = 1, 1 << 40 do scratch("s" .. i) end

--- case: references to many chunks
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2, chunks = 1 << 18 } while true do chunk(0, input, 0, 1 << 18) end

--- case: a group of many
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2, chunks = 1 << 18 }
local low, high = chunk(0, input, 0, 1 << 17), chunk(0, input, 1 << 17, 1 << 17)
while true do group(high, low) end

--- case: copies of many chunks
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2, chunks = 1 << 18, inplace = true }
while true do chunk(0, input, 0, 1 << 18):copy(1) end

--- case: splitting
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2, chunks = 1 << 18, inplace = true }
while true do chunk(0, input, 0, 1 << 18):split(1 << 16) end

--- case: scratch that begins at its end
-- env: POLYCCL_LUA_MEMORY=32m
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program needs more than 33554432 bytes
allreduce { ranks = 100 }
local s = scratch("far")
for r = 0, 99 do chunk(0, input, 0):copy(r, s, 1000000) end

--- case: a sum that doubles: origins
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2, inplace = true }
for i = 1, 20 do chunk(0, input, 0):reduce(chunk(1, input, 0)) chunk(0, input, 0):copy(1) end
chunk(0, input, 0):origins()

--- case: a sum that doubles: more than can be listed
-- env: POLYCCL_LUA_INSTRUCTIONS=100m
-- expect error: ...at most 4194304 can be listed
allreduce { ranks = 2, inplace = true }
for i = 1, 60 do chunk(0, input, 0):reduce(chunk(1, input, 0)) chunk(0, input, 0):copy(1) end
chunk(0, input, 0):origins()

--- case: the same, caught again and again
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 2, inplace = true }
for i = 1, 60 do chunk(0, input, 0):reduce(chunk(1, input, 0)) chunk(0, input, 0):copy(1) end
while true do pcall(function() chunk(0, input, 0):origins() end) end

--- case: destinations on many ranks
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
allreduce { ranks = 60000, inplace = true }
local sum = chunk(0, input, 0)
for r = 1, 500 do sum = sum:reduce(chunk(r, input, 0)) end
sum:destinations()

--- case: modules that do not exist
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...the program ran more than 4194304 instructions
while true do pcall(require, "no.such.module") end

--- case: 2^31: index + size
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...rank 0 input[2147483647..4294967293] is out of range (1 chunk there, size 2147483647)
allreduce { ranks = 2 }
chunk(0, input, 2147483647, 2147483647)

--- case: 2^31: a negative index
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...rank 0 input[-2147483648..-2] is out of range
allreduce { ranks = 2 }
chunk(0, input, -2147483648, 2147483647)

--- case: 2^31: past an int
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...chunk: the index is out of range: 2147483648
allreduce { ranks = 2 }
chunk(0, input, 2147483648)

--- case: 2^31: a copy's index
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...rank 1 s[2147483647] is out of range
allreduce { ranks = 2 }
chunk(0, input, 0):copy(1, scratch('s'), 2147483647)

--- case: 2^31: a transfer's step
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...transfer: the step is out of range: 2147483648
allreduce { ranks = 2 }
transfer(0, 1, 2147483648, 0, 'recv')

--- case: 2^31: ranks times chunks
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...chunks = 1048576 is out of range
alltoall { ranks = 65536, chunks = 1 << 20 }

--- case: 2^31: instances
-- env: POLYCCL_LUA_INSTRUCTIONS=4m
-- expect error: ...
allreduce { ranks = 1, chunks = 1 << 20, instances = 1024 }
chunk(0, input, 0, 1 << 20):copy(0, output, 0)
