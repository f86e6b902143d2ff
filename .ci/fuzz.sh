#!/bin/sh
# Builds the fuzz targets with clang 19 and libFuzzer and runs each for so many seconds.
# Usage: fuzz.sh SECONDS_EACH
set -eu
SECONDS_EACH=${1:-60}
cd "$(dirname "$0")/.."
cmake --preset fuzz
cmake --build --preset fuzz -j "$(nproc)"
found=0
for target in build/fuzz/fuzz/*_fuzz; do
    [ -x "$target" ] || continue
    found=$((found + 1))
    name=$(basename "$target" _fuzz)
    # New inputs are kept in the build folder; the committed corpus is only read.
    mkdir -p "build/fuzz/corpus/$name"
    set -- "build/fuzz/corpus/$name"
    [ ! -d "fuzz/corpus/$name" ] || set -- "$@" "fuzz/corpus/$name"
    echo "=== $name for $SECONDS_EACH s"
    "$target" -max_total_time="$SECONDS_EACH" -print_final_stats=1 "$@"
done
[ "$found" -gt 0 ] || { echo "no fuzz target was built"; exit 1; }
