#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The demo in one go, and in three with checkpoints between them, in the middle
# of an epoch and each on another way to run: the same losses, the same
# parameters.
#
# Prints what a cmocka program prints, for scripts/run_tests.sh.
set -u
demo=${TRN_BUILD:-build}/examples/demo
name=a_run_in_three_parts_is_the_run_in_one
at=$(mktemp -d) || exit 1
trap 'rm -rf "$at"' EXIT
trap 'exit 1' HUP INT TERM
TRN_LOOP_PATH=${TRN_BUILD:-build}/trn-loop.so
export TRN_LOOP_PATH

part() { # part <losses> <argument>...
    losses=$1
    shift
    "$demo" --schedule 40 --warmup 5 --sample 1 --held-out 100 \
        --losses "$at/$losses" "$@" >"$at/out" 2>"$at/err" || return 1
    sed -n 's/  parameters$//p' "$at/out" >"$at/digest"
}
all() {
    part whole --steps 40 && mv "$at/digest" "$at/expected" &&
        TRN_EXEC=eager TRN_NUM_THREADS=2 part 1 --steps 14 --save "$at/a" \
            --save-every 5 &&
        TRN_EXEC=captured TRN_NUM_THREADS=1 part 2 --steps 27 \
            --resume "$at/a" --save "$at/a" &&
        TRN_DEVICE=loop part 3 --steps 40 --resume "$at/a" &&
        cat "$at/1" "$at/2" "$at/3" | cmp "$at/whole" - &&
        cmp "$at/expected" "$at/digest" && [ -s "$at/digest" ]
}

echo '[==========] Running 1 test(s).'
echo "[ RUN      ] $name"
if [ ! -d /usr/share/common-licenses ]; then
    echo 'there are no licence texts to learn from'
    echo "[  SKIPPED ] $name"
elif all; then
    echo "[       OK ] $name"
elif grep -q 'has no HDF5' "$at/err"; then
    echo 'this build has no HDF5'
    echo "[  SKIPPED ] $name"
else
    cat "$at/err"
    echo "[  FAILED  ] $name"
    exit 1
fi
