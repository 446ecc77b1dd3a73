-- One-shot AllReduce: a single hop. Every rank sends all its data to every other, and each computes the sum for itself.
-- It moves n times the data of a ring, so it is for the smallest sizes only.
--
-- What arrives waits in scratch, because a rank may not overwrite its input before it has sent it. All ranks sum in the
-- same order, x0 + x1 + ..., so all get the same bits: swapping two operands does not change a sum, regrouping does.

local n = param("ranks", 4, "number of ranks")

allreduce {
  ranks = n,
  inplace = true,
  instances = param("instances", 1, "copies of the program, each on its part of the data"),
  protocol = param("protocol", "Simple", "Simple, LL or LL128"),
}

local arrived = scratch("arrived")

for r = 0, n - 1 do
  for to = 0, n - 1 do
    if to ~= r then
      chunk(r, input, 0):copy(to, arrived, r)
    end
  end
end

for r = 0, n - 1 do
  local sum = chunk(r, input, 0)
  if r > 0 then
    local before = chunk(r, arrived, 0)
    for other = 1, r - 1 do
      before = before:reduce(chunk(r, arrived, other))
    end
    sum = sum:reduce(before)
  end
  for other = r + 1, n - 1 do
    sum = sum:reduce(chunk(r, arrived, other))
  end
end
