-- AllToNext with NCCL's point-to-point calls: every GPU sends its buffer to the next one, over a few channels.

local n = param("ranks", 24, "number of ranks")
local channels = param("channels", 2, "channels of a pair of GPUs")

custom {
  name = "nccl_next",
  ranks = n,
  chunks = channels,
  post = function(rank, c)
    if rank > 0 then
      return { { rank - 1, c } }
    end
  end,
}

for r = 0, n - 2 do
  for c = 0, channels - 1 do
    chunk(r, input, c):copy(r + 1, output, c, { ch = c })
  end
end
