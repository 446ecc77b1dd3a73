-- Ring AllReduce: moves the minimum of data for each rank, in 2 (n - 1) hops. Best for large buffers.
--
-- Every chunk goes round the ring twice. In the first round each rank adds its own copy to what arrives and passes the
-- sum on (reduce-scatter); in the second round the finished sum is passed on unchanged (all-gather). Chunk c starts one
-- rank further than chunk c - 1, so that all links are always busy.

local n = param("ranks", 8, "number of ranks")
local channels = param("channels", 0, "spread the chunks over this many channels (0: the compiler chooses)")

allreduce {
  ranks = n,
  chunks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

for c = 0, n - 1 do
  local hints = channels > 0 and { ch = c % channels } or nil
  local at = chunk((c + 1) % n, input, c)
  for hop = 2, n do
    at = chunk((c + hop) % n, input, c):reduce(at, hints)
  end
  for _ = 1, n - 1 do
    at = at:copy((at.rank + 1) % n, hints)
  end
end
