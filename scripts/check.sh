#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `make check`: every check, one after the other, to the end even when one
# fails; then which failed, and how long each took.
set -u
make=${MAKE:-make}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
failed=0

step() { # step <name> <words for make>...
    name=$1
    shift
    start=$(date +%s)
    printf "%-22s " "$name"
    if "$make" "$@" >"$log" 2>&1; then
        result=ok
    else
        result=FAILED
        failed=$((failed + 1))
    fi
    printf "%-6s %4d s" $result $(($(date +%s) - start))
    # What was tested and skipped is part of the result.
    case $name in
    verify* | without*) printf '  %s\n' "$(tail -n 1 "$log")" ;;
    tests*) printf '  %s\n' "$(tail -n 1 "$log")"
        grep '^  skipped ' "$log" || : ;;
    *) echo ;;
    esac
    [ $result = ok ] || cat "$log"
}

step format format-check
step layers layers
step sizes sizes
step 'banned calls' banned
step 'rows documented' docs-complete
step 'rows with cases' cases-complete
step 'checks themselves' self-test
step 'headers alone' headers
step 'gcc, no warnings' CC=gcc WERROR=1 LINKS=no all test-build test-xla-build bench-build
step 'names' CC=gcc WERROR=1 LINKS=no names
step 'exported symbols' CC=gcc WERROR=1 LINKS=no symbols
step 'instructions' CC=gcc WERROR=1 LINKS=no instructions
step 'without parts' CC=gcc WERROR=1 without-run
step 'clang, no warnings' CC=clang WERROR=1 LINKS=no all test-build test-xla-build bench-build
step 'instructions, clang' CC=clang WERROR=1 LINKS=no instructions
step 'verify, all pairs' verify-pairs
step cppcheck cppcheck
step clang-tidy tidy
step 'tests, sanitizers' CC=gcc SAN=address,undefined test-run
step 'tests of threads, ThreadSanitizer' CC=gcc SAN=thread T='contexts limits signals' test-run
step 'tests by XLA, sanitized' CC=gcc SAN=address,undefined test-xla-run T='xla_faults xla_buffers xla_errors'

if [ $failed -gt 0 ]; then
    echo "check: $failed failed"
    exit 1
fi
echo "check: all passed"
