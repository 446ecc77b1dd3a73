local broken = {}
function broken.take(rank)
  local c = chunk(rank, input, 0)
  return c
end
function broken.add(x)
  local sum = x + 1
  return sum
end
return broken
