#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Lists the C files whose objects depend on which optional libraries there are:
# those that ask for a TRN_HAVE_ name or for _OPENMP, or include a header that
# does.
set -u
cd "$(dirname "$0")/.." || exit 1
asks='TRN_HAVE_|\b_OPENMP\b'
pattern=$asks
files=none
# Until no header is added by which another one asks.
while :; do
    found=$(grep -rlE "$pattern" --include='*.[ch]' \
        kernels libtrn backends tools examples tests bench | sort)
    [ "$found" != "$files" ] || break
    files=$found
    headers=$(echo "$files" | sed -n 's,.*/\([^/]*\.h\)$,\1,p' | tr '\n' '|')
    pattern="$asks${headers:+|\"([^\"]*/)?(${headers%|})\"}"
done
echo "$files" | grep '\.c$'
