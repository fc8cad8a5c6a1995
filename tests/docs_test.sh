#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compiles and runs the programs in the README and docs/, and compares what they
# print with what the page says.
#
# A program is the block after <!-- program -->; the block after <!-- prints -->
# is what the last program prints, to the letter.  Each is compiled as C11
# against the public headers alone, with warnings as errors.
# CC is the compiler, TRN_BUILD the folder of libtrn.a, TRN_LIBS what it needs.
# Prints what a cmocka program prints, for scripts/run_tests.sh.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
# The loop device of that build: the programs lie elsewhere.
loop=$(cd "${TRN_BUILD:-build}" && pwd)/trn-loop.so
export TRN_LOOP_PATH="${TRN_LOOP_PATH:-$loop}"

# Writes <page>_<number>.c, and .out where the page says what is printed.
perl - "$top" README.md docs/*.md <<'END' || exit 1
my ($top, @pages) = @ARGV;
for my $page (@pages) {
    my ($n, $want, $open) = (0, '', 0);
    (my $base = lc $page) =~ s/[^a-z0-9]+/_/g;
    open(my $in, '<', $page) or die "$page: $!\n";
    while (<$in>) {
        if (/^<!-- (program|prints) -->$/) { $want = $1 }
        elsif (/^```/ && $open) { close $out; $open = 0; $want = '' }
        elsif (/^```/ && $want) {
            $n++ if $want eq 'program';
            my $to = "$top/${base}_$n." . ($want eq 'program' ? 'c' : 'out');
            open($out, '>', $to) or die "$to: $!\n";
            $open = 1;
        }
        elsif ($open) { print $out $_ }
    }
}
END

check() { # check <program without .c>
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$1.c" \
        "${TRN_BUILD:-build}/libtrn.a" ${TRN_LIBS:--lz -fopenmp -pthread -ldl -lm} \
        -o "$1" || return 1
    (cd "$top" && "$1") >"$1.got" || {
        cat "$1.got"
        return 1
    }
    [ ! -f "$1.out" ] || diff -u "$1.out" "$1.got"
}

for source in "$top"/*.c; do
    program=${source%.c}
    name=the_program_of_$(basename "$program")_does_what_the_page_says
    printf '[ RUN      ] %s\n' "$name"
    if check "$program" >"$top/log" 2>&1; then
        printf '[       OK ] %s\n' "$name"
    else
        sed 's/^/  | /' "$top/log"
        printf '[  FAILED  ] %s\n' "$name"
        failed=1
    fi
done
exit $failed
