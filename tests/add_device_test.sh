#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Proves docs/add-a-device.md: its files compile without a warning, against the
# public headers alone, and its devices train with the bits of the CPU.
#
# A file is the block after <!-- file: NAME -->; the block after <!-- prints -->
# is what the page's test prints, to the letter.
# CC is the compiler, TRN_BUILD the folder of libtrn.a, TRN_LIBS what it needs.
# Prints what a cmocka program prints, for scripts/run_tests.sh.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$(pwd)
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
build=${TRN_BUILD:-$root/build}
failed=0

perl - "$top" docs/add-a-device.md <<'END' || exit 1
my ($top, $page) = @ARGV;
my ($to, $out, $n);
open(my $in, '<', $page) or die "$page: $!\n";
while (<$in>) {
    if (/^<!-- file: ([a-z_]+\.[ch]) -->$/) { $to = $1 }
    elsif (/^<!-- prints -->$/) { $to = 'expected' }
    elsif (/^```/ && $out) { close $out; undef $out; undef $to }
    elsif (/^```/ && $to) {
        open($out, '>', "$top/$to") or die "$top/$to: $!\n";
        $n++;
    }
    elsif ($out) { print $out $_ }
}
die "$page: no files\n" unless $n;
END
command=$(sed -n 's/^    \(\.\/test_device .*\)/\1/p' docs/add-a-device.md)

# shellcheck disable=SC2086
compile() { # compile <words for the compiler>
    ${CC:-cc} -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Werror -O1 \
        -fvisibility=hidden -I"$root/include" "$@"
}

try() { # try <name of the case> <command and arguments>
    printf '[ RUN      ] %s\n' "$1"
    if (shift && cd "$top" && "$@") >"$top/log" 2>&1; then
        printf '[       OK ] %s\n' "$1"
    else
        sed 's/^/  | /' "$top/log"
        printf '[  FAILED  ] %s\n' "$1"
        failed=1
    fi
}

devices() {
    compile -shared -fPIC tally.c -o tally.so &&
        compile -shared -fPIC ledger.c -o ledger.so
}

# shellcheck disable=SC2086
program() {
    compile test_device.c "$build/libtrn.a" \
        ${TRN_LIBS:--lz -fopenmp -pthread -ldl -lm} -o test_device
}

as_printed() {
    [ -n "$command" ] || return 1
    env -u TRN_DEVICE -u TRN_EXEC $command >got || { cat got; return 1; }
    diff -u expected got
}

argument_is_refused() {
    ./test_device plugin:./tally.so:nonsense >got && return 1
    grep -q 'tally: takes no argument' got || { cat got; return 1; }
}

# A device for single ops has no program of a step.
steps_are_refused() {
    ./test_device --steps plugin:./tally.so >got && return 1
    grep -q 'takes single ops only' got || { cat got; return 1; }
}

try the_devices_of_the_page_compile devices
try the_test_of_the_page_compiles program
try the_devices_train_with_the_bits_of_the_cpu as_printed
try an_argument_that_the_device_refuses_is_told argument_is_refused
try captured_steps_are_refused_by_an_eager_device steps_are_refused
exit $failed
