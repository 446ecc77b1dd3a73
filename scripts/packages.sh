#!/usr/bin/env bash
# usage: packages.sh LIST...: installs the Debian packages of the lists that are not there yet (as root).
set -euo pipefail
missing=()
for package in $(cat "$@" | sed 's/#.*//'); do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
echo "installing: ${missing[*]}"
if [ "$(id -u)" != 0 ]; then
  echo "these Debian packages are needed; run as root: apt-get install ${missing[*]}" >&2
  exit 2
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
