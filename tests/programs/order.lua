--- case: next and pairs go in the order of the keys, in every run
-- expect error: ...-3 0.5 1 2 alpha beta delta eps gamma zeta false true
local t = { alpha = 1, beta = 2, gamma = 3, delta = 4, eps = 5, zeta = 6, [2] = 1, [1] = 1, [-3] = 1, [0.5] = 1,
  [true] = 1, [false] = 1 }
local by_next, by_pairs = {}, {}
for key in next, t do by_next[#by_next + 1] = tostring(key) end
for key in pairs(t) do by_pairs[#by_pairs + 1] = tostring(key) end
assert(table.concat(by_next, " ") == table.concat(by_pairs, " "))
error(table.concat(by_next, " "), 0)

--- case: objects come as they were made, among one another
-- expect error: ...1 2 3 4 5 6 7 8 9
allreduce { ranks = 2 }
local objects = { {}, function() end, chunk(0, input, 0), {}, scratch("s"), chunk(1, input, 0), print and {},
  function() return objects end, setmetatable({}, {}) }
local t, seen = {}, {}
for i = #objects, 1, -1 do t[objects[i]] = i end
for _, i in pairs(t) do seen[#seen + 1] = i end
error(table.concat(seen, " "), 0)

--- case: many objects, with collections of garbage between them
-- expect: right
local t = {}
for i = 1, 20000 do
  t[{}] = i
  local _ = { tostring(i) }
end
local last = 0
for _, i in pairs(t) do
  assert(i == last + 1)
  last = i
end
last = 0
for _, i in next, t do
  assert(i == last + 1)
  last = i
end
assert(last == 20000)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: fields may be cleared and changed during a walk
-- expect: right
for _, walk in ipairs { pairs, function(t) return next, t end } do
  local t, seen = {}, {}
  for i = 1, 100 do t["k" .. i], t[i], t[{ i }] = i, i, i end
  for key, value in walk(t) do
    assert(not seen[key] and t[key] == value)
    seen[key] = true
    t[key] = nil
    if t[value + 1] then t[value + 1] = value + 1 end
  end
  assert(next(t) == nil)
  local count = 0
  for _ in pairs(seen) do count = count + 1 end
  assert(count == 300)
end
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: what has gone is not visited
-- expect: right
local t, seen = { a = 1, b = 2, c = 3, d = 4 }, {}
for key in next, t do
  seen[#seen + 1] = key
  t.b, t.d = nil, nil
end
assert(table.concat(seen) == "ac")
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: next after a change sees what is new, and takes a key that has gone
-- expect: right
local t = { 10, 20, 30 }
assert(next(t, 1) == 2)
t[1.5] = 15
assert(next(t, 1) == 1.5)
t[1] = nil
assert(next(t, 1) == 1.5 and next(t) == 1.5)
assert(next(t, 3) == nil and select("#", next(t, 3)) == 1)
assert(next({}) == nil and next({}, nil) == nil)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: more walks at a time than are remembered
-- expect: right
local ts = {}
for i = 1, 7 do ts[i] = { i, i, a = i, b = i } end
local keys, count = {}, 0
for _ = 1, 5 do
  for i = 1, 7 do
    local key, value = next(ts[i], keys[i])
    assert(key == nil or value == i)
    keys[i], count = key, count + (key ~= nil and 1 or 0)
  end
end
assert(count == 28)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: __pairs decides
-- expect: right
local t = setmetatable({}, { __pairs = function(t) return function(_, k) return (k or 0) < 3 and (k or 0) + 1 or nil end, t end })
local sum = 0
for k in pairs(t) do sum = sum + k end
assert(sum == 6)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: objects are numbered as the author sees them
-- expect error: ...table: 1 function: 2 table: 1 thing: 4 function: 5 table: 3 table: 1
local a, b, c, d = {}, {}, function() end, setmetatable({}, { __name = "thing" })
error(("%s %s %s %s %s %s %s"):format(tostring(a), tostring(c), a, d, print, tostring(b), a), 0)

--- case: an address cannot be seen
-- expect error: order.lua:118: string.format: %p shows an address, which differs in every run
local text = ("%d %5s"):format(3, {})
text = ("%%p %p"):format({})

--- case: weak tables are refused
-- expect error: order.lua:122: setmetatable: weak tables (__mode) are not allowed here
setmetatable({}, { __mode = "k" })

--- case: not a number has no sign
-- expect error: ...nan nan nan nan
error(("%s %s %f %.1f"):format(tostring(0 / 0), 0 / 0, -(0 / 0), 0 / 0), 0)

--- case: sorting is stable, and does the same for every order function
-- expect error: ...1a 1b 1c 2a 2b 3a 3b | 4 3 2 1 | 1 2 3 4
local t = { { 3, "a" }, { 1, "a" }, { 2, "a" }, { 1, "b" }, { 3, "b" }, { 1, "c" }, { 2, "b" } }
table.sort(t, function(x, y) return x[1] < y[1] end)
local sorted = {}
for i, v in ipairs(t) do sorted[i] = v[1] .. v[2] end
local always, never = { 1, 2, 3, 4 }, { 1, 2, 3, 4 }
table.sort(always, function() return true end)
table.sort(never, function() return false end)
local long = {}
for i = 1, 5000 do long[i] = i * 7919 % 5000 end
table.sort(long)
for i = 1, 4999 do assert(long[i] <= long[i + 1]) end
table.sort(long, function(x, y) return x > y end)
for i = 1, 4999 do assert(long[i] >= long[i + 1]) end
error(table.concat(sorted, " ") .. " | " .. table.concat(always, " ") .. " | " .. table.concat(never, " "), 0)

--- case: random numbers are the same in every run
-- expect: right
math.randomseed(7)
local first = {}
for i = 1, 5 do first[i] = math.random(1000) end
math.randomseed(7)
for i = 1, 5 do assert(first[i] == math.random(1000)) end
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: functions of tables do what Lua's own do
-- expect: right
local function same(t, text) assert(table.concat(t, ",") == text, table.concat(t, ",")) end
local t = { 1, 2, 3 }
table.insert(t, 4) table.insert(t, 1, 0) table.insert(t, 6, 5) table.insert(t, 2.0, "x")
same(t, "0,x,1,2,3,4,5")
assert(table.remove(t, 2) == "x" and table.remove(t) == 5 and table.remove(t, 1) == 0)
same(t, "1,2,3,4")
assert(table.remove(t, 5) == nil and table.remove({}) == nil and table.remove({}, 0) == nil)
assert(not pcall(table.remove, t, 7) and not pcall(table.remove, t, 0) and not pcall(table.insert, t, 7, 1))
assert(not pcall(table.insert, t, 0, 1) and not pcall(table.insert, t) and not pcall(table.insert, t, 1, 2, 3))
assert(not pcall(table.insert, nil, 1) and not pcall(table.concat, { {} }) and not pcall(table.sort, { 1, "x" }))
same(table.move({ 1, 2, 3, 4 }, 1, 3, 2), "1,1,2,3")
same(table.move({ 1, 2, 3, 4 }, 2, 4, 1), "2,3,4,4")
same(table.move({ 1, 2 }, 1, 2, 2, { 9 }), "9,1,2")
assert(not pcall(table.move, {}, 1, math.maxinteger, 2) and not pcall(table.move, {}, -1, math.maxinteger, 2))
assert(table.concat({}, ",") == "" and table.concat({ 1, 2.5, "x" }, "-", 2, 3) == "2.5-x")
assert(select("#", table.unpack({ 1, nil, 3 }, 1, 3)) == 3 and select("#", table.unpack({}, 2, 1)) == 0)
local proxy = setmetatable({}, { __index = function(_, i) return i <= 3 and i * 10 or nil end, __len = function() return 3 end })
assert(table.concat(proxy, ",") == "10,20,30" and select(3, table.unpack(proxy)) == 30)
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)

--- case: functions of text do what Lua's own do
-- expect: right
assert(("abc"):find("b", 1, true) == 2 and ("abc"):find("") == 1 and ("abc"):find("", 4) == 4 and ("abc"):find("", 5) == nil)
assert(select(2, ("a.c"):find(".c", 1, true)) == 3 and ("abc"):find("c", -1) == 3 and ("abc"):find("a", -2) == nil)
assert(("a\0b\0c"):find("\0c") == 4 and ("abc"):find("b()") == 2 and ("x"):rep(3, ",") == "x,x,x" and ("x"):rep(0) == "")
assert(("abc"):byte(-1) == 99 and select("#", ("abc"):byte(1, -1)) == 3 and select("#", ("abc"):byte(9)) == 0)
assert(("%5.1f|%-5s|%q|%i|%%|%c"):format(1.25, "x", "a\nb", 3, 65) == '  1.2|x    |"a\\\nb"|3|%|A')
assert(("%s %s %s"):format(nil, true, setmetatable({}, { __tostring = function() return "own" end })) == "nil true own")
assert("10" + 5 == 15 and -"2" == -2 and "3" * "4" == 12 and 10 .. 20 == "1020")
assert(utf8.len("häh") == 3 and utf8.offset("häh", 3) == 4 and utf8.codepoint("ä") == 228 and utf8.char(228) == "ä")
local codes = {}
for at, code in utf8.codes("aä€") do codes[#codes + 1] = at .. "=" .. code end
assert(table.concat(codes, " ") == "1=97 2=228 4=8364")
assert(string.unpack("z", "ab\0c") == "ab" and string.pack("<i2", 258) == "\2\1" and string.packsize("i4c10") == 14)
assert(tostring(1e15) == "1e+15" and tostring(2^53) == "9.007199254741e+15" and tostring(-0.0) == "-0.0" and tostring(3) == "3")
allreduce { ranks = 1 }
chunk(0, input, 0):copy(0, output, 0)
