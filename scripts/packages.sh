#!/usr/bin/env bash
# usage: packages.sh [--list|--require] LIST...: installs the Debian packages of the lists that are not there yet (as
# root). --list only says which these are; --require fails with their names. Both say nothing where there is no dpkg.
set -euo pipefail
list=
case ${1:-} in --list | --require) list=$1; shift ;; esac
if ! command -v dpkg-query >/dev/null; then
  [ -n "$list" ] || echo "this system has no dpkg: the packages of $* must be there already" >&2
  exit 0
fi
missing=()
for package in $(cat "$@" | sed 's/#.*//'); do
  dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$list" = --list ]; then
  echo "${missing[*]}"
  exit 0
fi
if [ "$list" = --require ]; then
  echo "these Debian packages are needed: ${missing[*]} (as root: apt-get install ${missing[*]})" >&2
  exit 2
fi
echo "installing: ${missing[*]}"
if [ "$(id -u)" != 0 ]; then
  echo "these Debian packages are needed; run as root: apt-get install ${missing[*]}" >&2
  exit 2
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
