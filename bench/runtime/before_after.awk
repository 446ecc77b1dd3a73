# The lines of all rounds of before_after.sh (which, name, operation, ranks, bytes, median, min, way) -> its table.
{
  row = $4 SUBSEP $8 SUBSEP $3 SUBSEP substr($2, 9) SUBSEP $5
  if (!(row in seen)) { seen[row] = 1; rows[++count] = row }
  times[row, $1] = times[row, $1] " " $6
}
END {
  print "| ranks | way | operation | memory | bytes | before us | after us | before / after |"
  print "|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; i++) {
    if (!((rows[i], "old") in times) || !((rows[i], "new") in times)) continue
    split(rows[i], key, SUBSEP)
    b = median(times[rows[i], "old"]); a = median(times[rows[i], "new"])
    printf "| %d | %s | %s | %s | %d | %.2f | %.2f | %.2f |\n", key[1], key[2], key[3], key[4], key[5], b, a, b / a
    group = key[1] " ranks, " key[2] ", " key[4]
    if (!(group in cells)) groups[++named] = group
    cells[group]++; logs[group] += log(b / a); slower[group] += a > b * 1.05
  }
  print ""
  for (g = 1; g <= named; g++)
    printf "%s: geometric mean of before / after %.2f; more than 5 %% slower in %d of %d\n", groups[g],
      exp(logs[groups[g]] / cells[groups[g]]), slower[groups[g]], cells[groups[g]]
}
