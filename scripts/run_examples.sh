#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs every example that needs no arguments, for valgrind and ThreadSanitizer.
#
# Usage: WITH='valgrind ...' run_examples.sh <folder of examples>
# The pool with three threads: one more than the smallest machine has cores.
set -u
export TRN_NUM_THREADS="${TRN_NUM_THREADS:-3}"
export TRN_ENGINE=pool
failed=0
for source in examples/*.c; do
    name=$(basename "$source" .c)
    [ -x "$1/$name" ] || continue
    case $name in
    demo) arguments='--steps 2 --sample 3 --held-out 300' ;;
    mlp*) continue ;; # wants files
    *) arguments= ;;
    esac
    # shellcheck disable=SC2086
    if ${WITH:-} "$1/$name" $arguments >"$1/$name.log" 2>&1; then
        echo "ok      $name"
    else
        echo "FAILED  $name"
        cat "$1/$name.log"
        failed=1
    fi
done
exit $failed
