#!/usr/bin/env bash
# Holds the tree against the map in docs/architecture.md: a folder of src/ includes what its row of the table of layers
# names, which stands below it there; every folder, public header and compiler pass stands in the map.
set -euo pipefail
cd "$(dirname "$0")/.."
map=docs/architecture.md
bad=0
complain() { echo "$1" >&2; bad=1; }

# The table of layers: | `src/FOLDER` | what | folders it includes | `header.h` ... |
declare -A place includes owner
rows=0
while IFS='|' read -r _ folder _ allowed headers _; do
  folder=$(tr -d '` ' <<<"$folder")
  folder=${folder#src/}
  place[$folder]=$((++rows))
  includes[$folder]=" $folder $allowed "
  for header in $(tr -d '`,' <<<"$headers"); do owner[$header]=$folder; done
done < <(grep '^| `src/' "$map")

for folder in "${!place[@]}"; do
  [ -d "src/$folder" ] || complain "$map: the row of src/$folder names a folder that does not exist"
  for other in ${includes[$folder]}; do
    [ -n "${place[$other]:-}" ] || complain "$map: the row of src/$folder names $other, which is no folder"
    [ "${place[$other]:-99}" -ge "${place[$folder]}" ] || complain "$map: the row of src/$folder names $other, which stands above it"
  done
done
for folder in src/*/; do
  [ -n "${place[$(basename "$folder")]:-}" ] || complain "$map: the table of layers has no row for $folder"
done
for header in include/polyccl/*.h; do
  [ -n "${owner[$(basename "$header")]:-}" ] || complain "$map: no row names the public header $(basename "$header")"
done

while IFS=: read -r file line; do
  folder=$(cut -d/ -f2 <<<"$file")
  case $line in
    *'<polyccl/'*) target=$(sed 's|.*<polyccl/\([^>]*\)>.*|\1|' <<<"$line"); target=${owner[$target]:-?} ;;
    */*) target=$(sed 's|.*"\([a-z_]*\)/.*|\1|' <<<"$line") ;;
    *) continue ;; # a generated file of the same folder
  esac
  case "${includes[$folder]:-}" in
    *" $target "*) ;;
    *) complain "$file: src/$folder may not include $target ($map, Layers): $line" ;;
  esac
done < <(grep -rHE '^#include ("|<polyccl/)' src)

# The table of passes: every pass is a file, every file of the compiler is a pass or stands in the text below the table.
section=$(sed -n '/^## The compiler/,/^## The language/p' "$map")
for file in src/compiler/*.c; do
  name=$(basename "$file" .c)
  grep -q "\`$name\(\.c\)\?\`" <<<"$section" || complain "$map: The compiler does not mention $file"
done
while read -r name; do
  [ -f "src/compiler/$name.c" ] || complain "$map: The compiler names the pass $name, and there is no src/compiler/$name.c"
done < <(grep '^| `' <<<"$section" | cut -d'|' -f2 | grep -o '`[a-z_]*`' | tr -d '`')

# Every file that the map names exists.
for path in $(grep -o '`[a-z_]\+/[a-zA-Z0-9_./]*`' "$map" | tr -d '`' | sort -u); do
  [ -e "$path" ] || [ -e "src/$path" ] || complain "$map names $path, which does not exist"
done

# Every relative link of the documentation leads to a file.
for page in README.md CONTRIBUTING.md docs/*.md docs/results/*.md; do
  for target in $(grep -o '](\([^)#: ]\+\)[)#]' "$page" | sed 's/^](//; s/[)#]$//'); do
    [ -e "$(dirname "$page")/$target" ] || complain "$page links to $target, which does not exist"
  done
done
exit $bad
