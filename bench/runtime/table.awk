# The lines of all rounds of one part of run.sh -> its table, of medians over the rounds.
function put(row, column, value) {
  if (!(row in place)) { place[row] = ++rows; name[rows] = row }
  values[row, column] = values[row, column] " " value
}
function least(row, column, value) { if (!((row, column) in min) || value < min[row, column]) min[row, column] = value }

part == "overhead" { put($1, $2, $3); least($1, $2, $4 + 0) }
part == "first" {
  row = $2 " | " $1
  if ($3 == "failed") { put(row, "failed", 1); next }
  put(row, "bytes", $3); put(row, "init", $4); put(row, "first", $5); put(row, "second", $6); put(row, "peak", $7)
}
END {
  if (part == "overhead") {
    print "| ns: median (min) | 1 rank | 2 ranks |\n|---|---|---|"
    for (i = 1; i <= rows; i++)
      printf "| %s | %.0f (%.0f) | %.0f (%.0f) |\n", name[i], median(values[name[i], 1]), min[name[i], 1], median(values[name[i], 2]), min[name[i], 2]
  } else {
    print "| ranks | plan | first AllReduce ms | second ms | init ms | peak MiB |\n|---|---|---|---|---|---|"
    for (i = 1; i <= rows; i++)
      if ((name[i], "failed") in values) printf "| %s | failed | | | |\n", name[i]
      else printf "| %s | %.2f | %.2f | %.2f | %.1f |\n", name[i], median(values[name[i], "first"]), median(values[name[i], "second"]), median(values[name[i], "init"]), median(values[name[i], "peak"])
  }
  print ""
}
