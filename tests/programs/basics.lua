--- case: a ring of three
-- param: ranks=3
-- expect: allreduce, ranks 3, chunks 3, steps 12, hops 4, identical yes, in place yes
local n = param("ranks", 8)
allreduce { ranks = n, chunks = n, inplace = true }
for c = 0, n - 1 do
  local at = chunk((c + 1) % n, input, c)
  for s = 2, n do at = chunk((c + s) % n, input, c):reduce(at) end
  for s = 1, n - 1 do at = at:copy((at.rank + 1) % n) end
end

--- case: a reference knows where it is
-- expect: right
allgather { ranks = 2 }
local mine = chunk(1, input, 0)
assert(mine.rank == 1 and mine.buffer == input and mine.index == 0 and mine.size == 1)
assert(tostring(mine) == "rank 1 input[0]")
for r = 0, 1 do
  local c = chunk(r, input, 0)
  for q = 0, 1 do
    local there = c:copy(q, output, r)
    assert(there.rank == q and there.buffer == output and there.index == r)
  end
end
assert(tostring(chunk(0, output, 0, 2)) == "rank 0 output[0..1]")
assert(tostring(output) == "output" and tostring(scratch("tmp")) == "tmp")
assert(scratch("tmp") == scratch("tmp") and scratch("tmp") ~= scratch("other"))

--- case: split and group
-- expect: steps 6, remote 2, hops 2
alltoall { ranks = 2, chunks = 2 }
local tmp = scratch("tmp")
local parts = chunk(0, input, 2, 2):split(2)
assert(#parts == 2 and parts[1].index == 2 and parts[2].index == 3 and parts[2].size == 1)
local a = parts[1]:copy(0, tmp)
local b = parts[2]:copy(0, tmp)
assert(a.index == 0 and b.index == 1)
local both = group(b, a)
assert(both.index == 0 and both.size == 2)
both:copy(1, output, 0)
assert(#group { a, b }:split(1) == 1)
chunk(1, input, 0, 2):copy(0, output, 2)
chunk(0, input, 0, 2):copy(0, output, 0)
chunk(1, input, 2, 2):copy(1, output, 2)

--- case: origins and destinations
-- expect: right
local function text(list)
  local out = {}
  for _, pair in ipairs(list) do out[#out + 1] = pair[1] .. "." .. pair[2] end
  return table.concat(out, " ")
end
reduce_scatter { ranks = 3, chunks = 2 }
local first = chunk(0, input, 5)
assert(text(first:origins()) == "0.5" and text(first:destinations()) == "2.1")
assert(text(chunk(0, input, 4, 2):origins(1)) == "0.5")
local tmp = scratch("tmp")
for r = 0, 2 do
  for c = 0, 1 do
    local at = chunk((r + 1) % 3, input, 2 * r + c):copy(r, tmp)
    at = at:reduce(chunk((r + 2) % 3, input, 2 * r + c))
    at = at:reduce(chunk(r, input, 2 * r + c)):copy(r, output, c)
    assert(text(at:origins()) == ("0.%d 1.%d 2.%d"):format(2 * r + c, 2 * r + c, 2 * r + c))
    assert(text(at:destinations()) == r .. "." .. c)
  end
end

--- case: destinations in every collective
-- param: kind=allreduce
-- expect: right
local function text(list)
  local out = {}
  for _, pair in ipairs(list) do out[#out + 1] = pair[1] .. "." .. pair[2] end
  return table.concat(out, " ")
end
assert(param("kind", "") == "allreduce")
allreduce { ranks = 2, chunks = 2, inplace = true }
assert(text(chunk(1, input, 1):destinations()) == "0.1 1.1")
assert(not pcall(function() chunk(0, input, 0):origins(1) end))
for c = 0, 1 do
  local sum = chunk(0, input, c):reduce(chunk(1, input, c))
  assert(text(sum:origins()) == "0." .. c .. " 1." .. c and text(sum:destinations()) == "0." .. c .. " 1." .. c)
  sum:copy(1)
end

--- case: destinations of an AllToAll, an AllGather's place in the output, mixed sums
-- expect: right
alltoall { ranks = 3, chunks = 2 }
local function text(list)
  local out = {}
  for _, pair in ipairs(list) do out[#out + 1] = pair[1] .. "." .. pair[2] end
  return table.concat(out, " ")
end
for r = 0, 2 do
  for c = 0, 5 do
    local at = chunk(r, input, c)
    local goal = at:destinations()
    assert(#goal == 1 and text(goal) == (c // 2) .. "." .. (2 * r + c % 2))
    at:copy(goal[1][1], output, goal[1][2])
  end
end

--- case: destinations that a custom collective declares
-- expect: right
custom {
  ranks = 3, chunks = 2,
  post = function(rank, c) if c == 0 and rank > 0 then return { { 0, 0 }, { 0, 1 } } end end,
}
local a, b = chunk(0, input, 0), chunk(0, input, 1)
assert(#a:destinations() == 2 and a:destinations()[1][1] == 1 and a:destinations()[2][1] == 2)
assert(#chunk(1, input, 0):destinations() == 0)
local sum = a:reduce(b)
assert(#sum:destinations() == 2 and #sum:origins() == 2)
assert(not pcall(a.origins, a)) -- stale
sum:copy(1, output, 0)
sum:copy(2, output, 0)

--- case: sums of the same parts in different orders
-- expect: ranks 600, identical no
local n, groups = 600, 6
allreduce { ranks = n }
local parts, sums = scratch("parts"), scratch("sums")
for r = 0, n - 1 do
  local mine = chunk(r, input, 0)
  if r < groups then mine:copy(0, parts, r) else chunk(0, parts, r % groups):reduce(mine) end
end
for r = 0, n - 1 do
  local order, number = {}, r -- the r-th permutation
  for i = 0, groups - 1 do
    table.insert(order, number % (i + 1) + 1, i)
    number = number // (i + 1)
  end
  local sum = chunk(0, parts, order[1]):copy(0, sums, 0)
  for i = 2, groups do sum = sum:reduce(chunk(0, parts, order[i])) end
  sum:copy(r, output, 0)
end

--- case: origins of a sum that has doubled too often
-- expect error: basics.lua:144: the chunk has at least 4294967295 contributions; at most 4194304 can be listed
allreduce { ranks = 1 }
local other = scratch("other")
local sum = chunk(0, input, 0):copy(0, output, 0)
for _ = 1, 40 do sum = sum:reduce(sum:copy(0, other, 0)) end
sum:origins()
