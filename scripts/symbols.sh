#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares what libtrn.so exports with what the public headers declare as
# TRN_API, and looks for imports that end the process.
#
# Usage: symbols.sh <libtrn.so>
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

nm -D --defined-only "$1" >"$dir/nm" || exit 1
awk '{ print $NF }' "$dir/nm" | sed 's/@.*//' | sort -u >"$dir/exported"

for path in include/trn.h include/trn/*.h; do
    [ -f "$path" ] && echo "#include <${path#include/}>"
done >"$dir/all.c"
# Read after the preprocessor: the table of ops may expand to declarations.
${CC:-cc} -std=c11 -E -P -Iinclude "$dir/all.c" >"$dir/text" || exit 1
perl -0777 -ne '
    for (split /[;{}]/) {
        next unless /visibility\s*\(\s*"default"\s*\)/;
        s/__attribute__\s*(\((?:[^()]|(?1))*\))//g;
        print "$1\n" if /\b(trn_\w+)\s*\(/ || /\b(trn_\w+)\s*(?:\[.*)?$/s;
    }' "$dir/text" | sort -u >"$dir/declared"

bad=0
# Macros of hdf5.h call it behind one's back; it prints and aborts.
if nm -D --undefined-only "$1" | grep -qw H5check_version; then
    echo "$1: imports H5check_version, which may end the process"
    bad=1
fi
for name in $(comm -23 "$dir/exported" "$dir/declared"); do
    echo "$1: exports $name, which no public header declares as TRN_API"
    bad=1
done
for name in $(comm -13 "$dir/exported" "$dir/declared"); do
    echo "include/: declares $name, which libtrn.so does not export"
    bad=1
done
[ -s "$dir/declared" ] || { echo "no TRN_API declarations found"; bad=1; }
exit $bad
