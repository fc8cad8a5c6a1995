#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs programs of tests/xla/ with a PJRT plug-in for the CPU.
#
# Usage: test_xla.sh <folder for logs> <program>...
# Where no plug-in can be had the reason is printed, and each test that needs
# one skips with it.  A plug-in that is not the expected one is a failure.
# In a build with AddressSanitizer (SAN=address) what the plug-in itself never
# frees is no leak of ours; what it gave us is counted by the tests' shim.
set -u
here=$(cd "$(dirname "$0")" && pwd)
why=$(mktemp) && theirs=$(mktemp) || exit 1
trap 'rm -f "$why" "$theirs"' EXIT
plugin=$(sh "$here/xla_plugin.sh" 2>"$why")
case $? in
0) TRN_PJRT_PLUGIN=$plugin
    export TRN_PJRT_PLUGIN
    echo "leak:$(basename "$plugin")" >"$theirs"
    LSAN_OPTIONS="suppressions=$theirs:print_suppressions=0"
    export LSAN_OPTIONS
    grep -v downloading "$why" >&2
    ;;
75)
    TRN_XLA_SKIP=$(tail -n 1 "$why")
    export TRN_XLA_SKIP
    unset TRN_PJRT_PLUGIN
    echo "skipped: $TRN_XLA_SKIP"
    ;;
*)
    cat "$why" >&2
    exit 1
    ;;
esac
sh "$here/run_tests.sh" "$@"
