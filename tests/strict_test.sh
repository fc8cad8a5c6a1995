#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the compiler may not do to the library's arithmetic is refused when it is
# built, by kernels/fma.h, which every set of kernels includes.
# Prints what a cmocka program prints, for scripts/run_tests.sh.
set -u
cc=${CC:-cc}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
bad=0
echo '[==========] Running 2 test(s).'

# refused <name> <what the error must say> <flags>...
refused() {
    name=$1
    words=$2
    shift 2
    echo "[ RUN      ] $name"
    for file in kernels/generic/generic_elementwise.c \
        kernels/generic/generic_matmul.c kernels/generic/generic_scalar.c; do
        # shellcheck disable=SC2086
        if $cc -std=c17 -O1 -Iinclude -I. "$@" -c -o /dev/null $file 2>"$log"; then
            echo "$file is built with $*"
        elif ! grep -q "$words" "$log"; then
            echo "$file: the error does not say \"$words\""
        else
            continue
        fi
        echo "[  FAILED  ] $name"
        bad=1
        return
    done
    echo "[       OK ] $name"
}

refused fast_math_is_refused 'strict arithmetic' -ffast-math

# Arithmetic in more digits than the type has, where the compiler can do it.
method=$(echo __FLT_EVAL_METHOD__ | $cc -mfpmath=387 -E -P - 2>/dev/null)
case $method in
1 | 2) refused excess_precision_is_refused 'FLT_EVAL_METHOD 0' -mfpmath=387 ;;
*)
    echo '[ RUN      ] excess_precision_is_refused'
    echo 'this compiler has no arithmetic with excess precision'
    echo '[  SKIPPED ] excess_precision_is_refused'
    ;;
esac
exit $bad
