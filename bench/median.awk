# The median of a list of numbers separated by blanks.
function median(list, n, values, i, j, t) {
  n = split(list, values, " ")
  for (i = 2; i <= n; i++) {
    t = values[i] + 0
    for (j = i - 1; j >= 1 && values[j] + 0 > t; j--) values[j + 1] = values[j]
    values[j + 1] = t
  }
  return (values[int((n + 1) / 2)] + values[int(n / 2) + 1]) / 2
}
