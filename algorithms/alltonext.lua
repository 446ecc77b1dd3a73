-- AllToNext: every rank sends its data to the next one, as stages of a pipeline do. A collective that no library has.
--
-- Inside a node that is a plain copy. From the last GPU of a node to the first of the next one all network cards of
-- the node help: the data is cut in as many chunks as there are GPUs, each chunk goes to another GPU, crosses to the
-- GPU of equal number in the next node, and is put together there.

local nodes = param("nodes", 2, "number of nodes")
local gpus = param("gpus", 4, "GPUs (ranks) in a node")
local ranks = nodes * gpus

custom {
  name = "alltonext",
  ranks = ranks,
  chunks = gpus,
  inplace = true,
  post = function(rank, c) -- what the rank before had; the first rank gets nothing
    if rank > 0 then
      return { { rank - 1, c } }
    end
  end,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local leaving, arrived = scratch("leaving"), scratch("arrived")

-- From the last rank to the first, so that in place each has sent what it had before it receives.
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
