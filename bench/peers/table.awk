# Lines of name, operation, ranks, bytes, median, min, way -> for each way the medians over the rounds (in brackets the
# min), then the time of the fastest peer divided by PolyCCL's, bold where PolyCCL is behind.
function size(bytes) {
  if (bytes >= 1048576 && bytes % 1048576 == 0) return bytes / 1048576 " MiB"
  if (bytes >= 1024 && bytes % 1024 == 0) return bytes / 1024 " KiB"
  return bytes " B"
}
function fastest_peer(key, p, best) {
  best = 0
  for (p = 1; p <= names; p++)
    if (name[p] !~ /^polyccl/ && (key, name[p]) in times && (best == 0 || median(times[key, name[p]]) < best)) best = median(times[key, name[p]])
  return best
}
function add(list, count, value) {
  if ((list, value) in known) return count
  known[list, value] = 1
  return count + 1
}
NF < 7 { next }
{
  key = $7 SUBSEP $2 SUBSEP $4
  times[key, $1] = times[key, $1] " " $5
  if (!((key, $1) in least) || $6 + 0 < least[key, $1]) least[key, $1] = $6 + 0
  ranks = $3
  if (add("name", names, $1) > names) name[++names] = $1
  if (add("op", ops, $2) > ops) op[++ops] = $2
  if (add("bytes", sizes, $4) > sizes) bytes[++sizes] = $4
  if (add("way", ways, $7) > ways) way[++ways] = $7
}
END {
  title["back"] = "calls back to back"; title["single"] = "single calls, each after a barrier (32 KiB and less: batches)"
  for (w = 1; w <= ways; w++) {
    printf "%d ranks, float32, sum; %s; us: median (min)\n\n| operation | size |", ranks, title[way[w]]
    for (p = 1; p <= names; p++) printf " %s |", name[p]
    printf "\n|---|---|"
    for (p = 1; p <= names; p++) printf "---|"
    print ""
    for (o = 1; o <= ops; o++)
      for (s = 1; s <= sizes; s++) {
        key = way[w] SUBSEP op[o] SUBSEP bytes[s]
        printf "| %s | %s |", op[o], size(bytes[s])
        for (p = 1; p <= names; p++)
          if ((key, name[p]) in times) printf " %.2f (%.2f) |", median(times[key, name[p]]), least[key, name[p]]
          else printf " |"
        print ""
      }
    printf "\nFastest peer / PolyCCL, %d ranks, %s\n\n| %d ranks |", ranks, title[way[w]], ranks
    for (s = 1; s <= sizes; s++) printf " %s |", size(bytes[s])
    printf "\n|---|"
    for (s = 1; s <= sizes; s++) printf "---|"
    print ""
    behind = 0; cells = 0
    for (p = 1; p <= names; p++) {
      if (name[p] !~ /^polyccl/) continue
      for (o = 1; o <= ops; o++) {
        printf "| %s %s |", op[o], substr(name[p], 9)
        for (s = 1; s <= sizes; s++) {
          key = way[w] SUBSEP op[o] SUBSEP bytes[s]
          peer = fastest_peer(key)
          mine = (key, name[p]) in times ? median(times[key, name[p]]) : 0
          if (peer == 0 || mine == 0) { printf " |"; continue }
          cells++
          if (peer < mine) { behind++; printf " **%.2f** |", peer / mine }
          else printf " %.2f |", peer / mine
        }
        print ""
      }
    }
    printf "\nBehind in %d of %d cells.\n\n", behind, cells
  }
}
