#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `make without`: builds and tests the library without each of its optional
# libraries in turn, and without all of them; one line for each.
#
# Usage: MAKE=... without.sh '<part>:<test>,<test> <part>:...'
# Each build runs the tests of what it lacks, a few that use what is left, and
# the example mlp on images made here, which must print what it prints with all
# parts.  What is compiled the same way comes from the build with all.
set -u
make=${MAKE:-make}
smoke='parts tensor step data'
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
log=$dir/log
failed=0

# 300 images whose bright columns tell their label; the rest is noise.
perl -e '
    my ($n, $x) = (300, 1);
    open(my $images, ">:raw", "$ARGV[0]/images") or die;
    open(my $labels, ">:raw", "$ARGV[0]/labels") or die;
    print $images pack("N4", 0x803, $n, 28, 28);
    print $labels pack("N2", 0x801, $n);
    for my $i (0 .. $n - 1) {
        print $labels pack("C", $i % 10);
        print $images pack("C*", map {
            $x = ($x * 1103515245 + 12345) % 2**31;
            int($_ % 28 / 2.8) == $i % 10 ? 255 : $x / 2**24;
        } 0 .. 783);
    }' "$dir" || exit 1
mlp() { # mlp <folder of the build> <file>
    "$1/examples/mlp" "$dir/images" "$dir/labels" 200 100 3 >"$2"
}

tests_of() { # tests_of <part>:<test>,<test>...
    echo "${1#*:}" | tr , ' '
}
every=
for entry in $1; do
    every="$every $(tests_of "$entry")"
done
"$make" LINKS=no test-build T="$every $smoke" >"$log" 2>&1 || {
    cat "$log"
    exit 1
}
share=$("$make" -s where) && mlp "$share" "$dir/expected" || exit 1

try() { # try <parts to leave out> <tests>
    start=$(date +%s)
    set -- "$1" LINKS=no WITHOUT="$1" SHARE="$share" T="$2 $smoke"
    what=$1
    shift
    printf 'without %-12s ' "$what"
    if "$make" "$@" test-run >"$log" 2>&1 &&
        result=$(tail -n 1 "$log") &&
        mlp "$("$make" -s "$@" where)" "$dir/printed" &&
        cmp "$dir/expected" "$dir/printed" >>"$log" 2>&1; then
        printf '%s, %d s\n' "$result" $(($(date +%s) - start))
    else
        printf 'FAILED\n'
        cat "$log"
        failed=$((failed + 1))
    fi
}

for entry in $1; do
    try "${entry%%:*}" "$(tests_of "$entry")"
done
try all "$every"

[ $failed -eq 0 ] || exit 1
echo "without each of:$(echo " $1" | sed 's/:[^ ]*//g')"
