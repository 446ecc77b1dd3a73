# name, operation, ranks, bytes, median, least -> a table of medians over the rounds, ratios to Open MPI's.
function median(list, n, values, i, j, t) {
  n = split(list, values, " ")
  for (i = 2; i <= n; i++) {
    t = values[i] + 0
    for (j = i - 1; j >= 1 && values[j] + 0 > t; j--) values[j + 1] = values[j]
    values[j + 1] = t
  }
  return values[int((n + 1) / 2)] + 0
}
{
  row = $2 "\t" $4
  if (!(row in seen)) { seen[row] = 1; rows[++count] = row; ranks = $3 }
  times[row, $1] = times[row, $1] " " $5
  if (!((row, $1) in least) || $6 + 0 < least[row, $1]) least[row, $1] = $6 + 0
}
END {
  printf "%d ranks, float32, sum, out of place; us: median (least)\n", ranks
  printf "%-15s %11s %21s %21s %6s %21s %6s\n", "operation", "bytes", "Open MPI", "PolyCCL private", "x", "PolyCCL shared", "x"
  for (i = 1; i <= count; i++) {
    split(rows[i], key, "\t")
    m = median(times[rows[i], "openmpi"]); p = median(times[rows[i], "polyccl-private"]); s = median(times[rows[i], "polyccl-shared"])
    printf "%-15s %11d %10.2f %10s %10.2f %10s %6.2f %10.2f %10s %6.2f\n", key[1], key[2], m, sprintf("(%.2f)", least[rows[i], "openmpi"]), p, sprintf("(%.2f)", least[rows[i], "polyccl-private"]), (p > 0 ? m / p : 0), s, sprintf("(%.2f)", least[rows[i], "polyccl-shared"]), (s > 0 ? m / s : 0)
  }
}
