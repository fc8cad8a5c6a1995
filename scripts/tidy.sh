#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs clang-tidy on the .c files named on standard input.
#
# Usage: FLAGS=... X86=... OPENMP=... tidy.sh <list
# A file's flags are those of the build; AVX2 files get their folder's, and are
# left out on another machine.
set -u
command -v clang-tidy >/dev/null 2>&1 || { echo "no clang-tidy"; exit 1; }
log=$(mktemp -d) || exit 1
trap 'rm -rf "$log"' EXIT

# shellcheck disable=SC2016
xargs -P "$(nproc 2>/dev/null || echo 2)" -n 1 sh -c '
    extra=
    checks=
    case $1 in
    # The path-sensitive checker does not see what the harness guarantees; the
    # tests themselves run under sanitizers and valgrind.
    tests/*) checks="--checks=-clang-analyzer-*" ;;
    esac
    case $1 in
    kernels/avx2/* | kernels/free_order/*)
        [ -n "$X86" ] || exit 0
        extra="-mavx2 -mfma -mf16c"
        ;;
    */threads_openmp.c) extra=$OPENMP ;;
    esac
    out=$0/$(echo "$1" | tr / _)
    # Its counts of hidden warnings go to standard error.
    if ! clang-tidy --quiet $checks "$1" -- $FLAGS $extra >"$out" 2>"$out.err"; then
        cat "$out"
        grep "error:" "$out.err"
        exit 1
    fi
    exit 0
' "$log"
