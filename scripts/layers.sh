#!/usr/bin/env bash
# A folder of src/ includes only itself and the folders above it in this list (docs/architecture.md).
set -euo pipefail
cd "$(dirname "$0")/.."
layers=(base topology program language plan simulator view compiler codegen kernel device transport runtime)
bad=0
declare -A place
for i in "${!layers[@]}"; do place[${layers[i]}]=$i; done
for folder in src/*/; do
  folder=$(basename "$folder")
  if [ -z "${place[$folder]:-}" ]; then
    echo "src/$folder stands in no layer"
    bad=1
    continue
  fi
  while IFS=: read -r file include; do
    target=$(sed -n 's|.*#include "\([a-z]*\)/.*|\1|p' <<<"$include")
    if [ -n "$target" ] && [ "${place[$target]:-99}" -gt "${place[$folder]}" ]; then
      echo "$file includes $target/, which lies below $folder/: $include"
      bad=1
    fi
  done < <(grep -rH '^#include "' "src/$folder" || true)
done
exit $bad
