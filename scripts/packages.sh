#!/usr/bin/env bash
# usage: packages.sh [--list] LIST...: installs the Debian packages of the lists that are not there yet (as root);
# --list only says which these are, and says nothing where there is no dpkg.
set -euo pipefail
list=
[ "${1:-}" != --list ] || { list=yes; shift; }
if ! command -v dpkg-query >/dev/null; then
  [ -n "$list" ] || echo "this system has no dpkg: the packages of $* must be there already" >&2
  exit 0
fi
missing=()
for package in $(cat "$@" | sed 's/#.*//'); do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ -n "$list" ]; then
  echo "${missing[*]}"
  exit 0
fi
echo "installing: ${missing[*]}"
if [ "$(id -u)" != 0 ]; then
  echo "these Debian packages are needed; run as root: apt-get install ${missing[*]}" >&2
  exit 2
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
