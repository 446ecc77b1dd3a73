-- AllToNext: every rank sends its data to the next one, as stages of a pipeline do. This is a custom collective.
--
-- Inside a node that is one copy. Between the last GPU of a node and the first GPU of the next node, the program uses
-- all network cards: it cuts the data into as many chunks as there are GPUs, sends each chunk through another GPU and
-- its peer in the next node, and collects the chunks there.

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")
local ranks = nodes * gpus

custom {
  name = "alltonext",
  ranks = ranks,
  chunks = gpus,
  inplace = true,
  post = function(rank, c) -- the data of the rank before; the first rank gets nothing
    if rank > 0 then
      return { { rank - 1, c } }
    end
  end,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local leaving, arrived = scratch("leaving"), scratch("arrived")

-- From the last rank to the first, so that in place each rank sends its data before it receives.
for r = ranks - 2, 0, -1 do
  if r // gpus == (r + 1) // gpus then
    chunk(r, input, 0, gpus):copy(r + 1, output, 0)
  else
    for g = 0, gpus - 1 do
      local here, there = r - (gpus - 1) + g, r + 1 + g
      local part = chunk(r, input, g)
      if here ~= r then
        part = part:copy(here, leaving, 0)
      end
      if there ~= r + 1 then
        part = part:copy(there, arrived, 0)
      end
      part:copy(r + 1, output, g)
    end
  end
end
