#!/bin/sh
# Installs what the named groups of packages.txt need and this machine lacks, when root; says exactly
# what to install when not, and stops. On systems without dpkg it checks nothing.
# Usage: packages.sh GROUP...
set -eu
list=$(dirname "$0")/packages.txt

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "This is not a Debian or Ubuntu system: install what $list names by hand." >&2
    exit 0
fi

wanted=$(for group in "$@"; do awk -v group="$group" '$1 == group { print $2 }' "$list"; done | sort -u)
missing=
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
    echo "Missing packages. Run this as root, then try again:" >&2
    echo "    $line" >&2
    exit 1
fi
echo "Installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# The lists of packages may be absent or old: refresh them, and go on with the old ones if that fails.
apt-get update -q || true
# shellcheck disable=SC2086 # a list of words
exec $line
