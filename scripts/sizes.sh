#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks sizes: a .c file at most 500 lines, a .h 300, the Makefile 300, a
# function's body 60; the median file under 150.
#
# scripts/sizes.allow lists exceptions, one a line: `<path> <reason>`.  An
# exception that is no longer needed is an error, so the list only shrinks.
set -u
allow=scripts/sizes.allow
[ -f "$allow" ] || allow=/dev/null
bad=0

files=$(find include libtrn kernels backends tools examples tests bench \
    -name '*.[ch]' 2>/dev/null | sort)
[ -f Makefile ] && files="$files Makefile"

# shellcheck disable=SC2086
awk -v allow="$allow" '
BEGIN {
    while ((getline line < allow) > 0) {
        if (line ~ /^#/ || line == "") continue
        split(line, part, " ")
        allowed[part[1]] = 1
        if (part[2] == "") complain(part[1] ": exception without a reason")
    }
}
function complain(text) { print text; bad = 1 }
function judge(text, name) {
    if (name in allowed) used[name] = 1
    else complain(text)
}
function finish() {
    if (file == "") return
    limit = file ~ /\.c$/ ? 500 : 300
    if (lines > limit)
        judge(file ": " lines " lines, at most " limit, file)
}
FNR == 1 { finish(); file = FILENAME; top = 0 }
{ lines = FNR }
/^\{$/ { top = FNR }
/^\}$/ && top {
    n = FNR - top - 1
    top = 0
    if (n > 60)
        judge(FILENAME ":" FNR ": function of " n " lines, at most 60",
              FILENAME)
}
END {
    finish()
    for (name in allowed)
        if (!(name in used))
            complain(allow ": " name " no longer needs an exception")
    exit bad
}' $files || bad=1

# shellcheck disable=SC2086
median=$(for f in $files; do wc -l <"$f"; done | sort -n |
    awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] + 0 }')
if [ "$median" -ge 150 ]; then
    echo "median file: $median lines, must be under 150"
    bad=1
fi
exit $bad
