#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests of the loop device once more, on one that was built from the frozen
# header: an old device under the host of today.
#
# TRN_BUILD is the folder of trn-loop-frozen.so and of the test programs.
# Prints what a cmocka program prints, for scripts/run_tests.sh.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${TRN_BUILD:-$(pwd)/build}
TRN_LOOP_PATH=$build/trn-loop-frozen.so
export TRN_LOOP_PATH
failed=0
[ -f "$TRN_LOOP_PATH" ] || { echo "there is no $TRN_LOOP_PATH"; exit 1; }
for name in flights loop loop_faults lower; do
    "$build/tests/test_$name" || failed=1
done
exit $failed
