-- polyccl.routines: rings, trees and all-pairs exchanges over any ranks and any chunks, as parts of larger programs.
--
-- Each routine takes one table:
--   ranks   the ranks that take part, in ring order; required
--   buffer  the buffer of the data (input)
--   first   index of the first chunk (0)
--   size    chunks in a piece (1)
--   stride  chunks from the start of one piece to the start of the next (size)
--   hints   {ch = ..., sendtb = ..., recvtb = ...} for every operation, or function(piece) that returns such a table
-- Routines that scatter or gather work on as many pieces as there are ranks: piece k belongs to ranks[k + 1].
-- Trees work on `pieces` pieces (1), from or to ranks[1].
--
-- Errors name the line of the program that called.

local routines = {}

local known = { ranks = true, buffer = true, first = true, size = true, stride = true, hints = true, pieces = true }

-- Checks the table and fills in the defaults. `level` is that of the author's call, as error() counts.
local function read_options(name, given, level)
  if type(given) ~= "table" then
    error(name .. " needs a table such as { ranks = {0, 1} }, not " .. type(given), level)
  end
  for key in pairs(given) do
    if not known[key] then
      error(('%s: unknown key "%s" (known: ranks, buffer, first, size, stride, hints, pieces)'):format(name,
        tostring(key)), level)
    end
  end
  local ranks = given.ranks
  if type(ranks) ~= "table" or #ranks == 0 then
    error(name .. ": ranks must be a list of at least one rank", level)
  end
  local seen = {}
  for _, rank in ipairs(ranks) do
    if math.type(rank) ~= "integer" then
      error(("%s: ranks must be whole numbers, not %s"):format(name, tostring(rank)), level)
    end
    if seen[rank] then
      error(("%s: rank %d is listed twice"):format(name, rank), level)
    end
    seen[rank] = true
  end
  local o = {
    ranks = ranks,
    n = #ranks,
    buffer = given.buffer or input,
    first = given.first or 0,
    size = given.size or 1,
    pieces = given.pieces or 1,
  }
  o.stride = given.stride or o.size
  for _, key in ipairs { "first", "size", "stride", "pieces" } do
    if math.type(o[key]) ~= "integer" then
      error(("%s: %s must be a whole number, not %s"):format(name, key, tostring(o[key])), level)
    end
  end
  local hints = given.hints
  o.hints = type(hints) == "function" and hints or function() return hints end
  -- The k-th rank of the ring, counted from 0 and modulo its length; and piece k of the data on a rank.
  function o.rank(k) return ranks[k % o.n + 1] end
  function o.piece(rank, k) return chunk(rank, o.buffer, o.first + k * o.stride, o.size) end
  return o
end

-- Returns the list of `count` ranks first, first + step, ...
function routines.ranks(first, count, step)
  local list = {}
  for i = 1, count do
    list[i] = first + (i - 1) * (step or 1)
  end
  return list
end

local function ring_reduce_scatter(o)
  for k = 0, o.n - 1 do
    local hints = o.hints(k)
    local at = o.piece(o.rank(k + 1), k)
    for hop = 2, o.n do
      at = o.piece(o.rank(k + hop), k):reduce(at, hints)
    end
  end
end

local function ring_allgather(o)
  for k = 0, o.n - 1 do
    local hints = o.hints(k)
    local at = o.piece(o.rank(k), k)
    for hop = 1, o.n - 1 do
      at = at:copy(o.rank(k + hop), hints)
    end
  end
end

local function allpairs_reduce_scatter(o)
  for k = 0, o.n - 1 do
    local hints = o.hints(k)
    local sum = o.piece(o.rank(k), k)
    for other = 1, o.n - 1 do
      sum = sum:reduce(o.piece(o.rank(k + other), k), hints)
    end
  end
end

local function allpairs_allgather(o)
  for k = 0, o.n - 1 do
    local hints = o.hints(k)
    local mine = o.piece(o.rank(k), k)
    for other = 1, o.n - 1 do
      mine:copy(o.rank(k + other), hints)
    end
  end
end

-- A binary tree: the children of position v are 2v + 1 and 2v + 2.
local function tree_reduce(o)
  for k = 0, o.pieces - 1 do
    local hints = o.hints(k)
    for v = o.n - 1, 1, -1 do
      o.piece(o.rank((v - 1) // 2), k):reduce(o.piece(o.rank(v), k), hints)
    end
  end
end

local function tree_broadcast(o)
  for k = 0, o.pieces - 1 do
    local hints = o.hints(k)
    for v = 1, o.n - 1 do
      o.piece(o.rank((v - 1) // 2), k):copy(o.rank(v), hints)
    end
  end
end

-- A public routine runs its parts, one after the other, on the same options.
local function define(name, ...)
  local parts = { ... }
  routines[name] = function(given)
    local o = read_options(name, given, 3)
    for _, part in ipairs(parts) do
      part(o)
    end
  end
end

define("ring_reduce_scatter", ring_reduce_scatter)
define("ring_allgather", ring_allgather)
define("ring_allreduce", ring_reduce_scatter, ring_allgather)
define("allpairs_reduce_scatter", allpairs_reduce_scatter)
define("allpairs_allgather", allpairs_allgather)
define("allpairs_allreduce", allpairs_reduce_scatter, allpairs_allgather)
define("tree_reduce", tree_reduce)
define("tree_broadcast", tree_broadcast)
define("tree_allreduce", tree_reduce, tree_broadcast)

return routines
