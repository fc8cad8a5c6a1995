#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs cmocka programs, and scripts (*.sh) that print as these do, and counts
# their test cases.
#
# Usage: run_tests.sh <folder for logs> <program>...
# A failing program's output is printed whole; every skipped case is printed
# with its reason, which is what the case said last.  A case that skips
# without a word has failed.  The last line is
#     N passed, N failed, N skipped
set -u
logs=$1
shift
rm -f "$logs"/*.log
jobs=$(nproc 2>/dev/null || echo 2)
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}"

# The loop device of this very build: programs find it beside their folder, as a
# user's would; what scripts build lies elsewhere.
unset TRN_LOOP_PATH
loop=${TRN_BUILD:-}/trn-loop.so
[ -f "$loop" ] || loop=
export loop

# Each program gets its own process and log; the log's last line is its end.
# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P "$jobs" -n 1 sh -c '
    log=$0/$(basename "$1").log
    start=$(date +%s)
    case $1 in
    *.sh) timeout 600 env ${loop:+"TRN_LOOP_PATH=$loop"} sh "$1" ;;
    *) timeout 600 "$1" ;;
    esac >"$log" 2>&1 </dev/null
    echo "@end $? $(($(date +%s) - start))" >>"$log"
' "$logs"

for program in "$@"; do
    name=$(basename "$program")
    awk -v program="$name" -v all="$logs/summary" '
    function close_case(how) { # the running case ends
        if (how == "failed") { failed++; list = list "  FAILED  " current "\n" }
        if (how == "passed") passed++
        if (how == "skipped" && said != "")
            { skipped++; list = list "  skipped " current ": " said "\n" }
        if (how == "skipped" && said == "") {
            failed++
            list = list "  FAILED  " current ": skipped without a reason\n"
        }
        current = ""
    }
    /^\[ RUN      \] / {
        if (current != "") close_case("failed")
        current = substr($0, 14); said = ""; next
    }
    /^\[       OK \] / && current != "" { close_case("passed"); next }
    /^\[  FAILED  \] / && current != "" { close_case("failed"); next }
    /^\[  SKIPPED \] / && current != "" { close_case("skipped"); next }
    /^@end / { status = $2; seconds = $3; next }
    { if (current != "" && $0 != "") said = $0; text = text $0 "\n" }
    END {
        if (current != "") close_case("failed")
        if (status == 124) why = "more than 600 s"
        else why = "exit status " status
        if (status != 0 && !failed) {
            failed++; list = list "  FAILED  " program ": " why "\n"
        }
        if (passed + failed + skipped == 0) {
            failed++; list = list "  FAILED  " program ": no test cases\n"
        }
        printf "%-32s %4d passed %3d failed %3d skipped %4d s\n", program,
            passed, failed, skipped, seconds
        printf "%s", list
        print passed + 0, failed + 0, skipped + 0 >>all
        exit failed > 0
    }' "$logs/$name.log" || {
        echo "---- output of $name ----"
        grep -v '^@end ' "$logs/$name.log"
        echo "---- end of $name ----"
    }
done | cat
awk '{ p += $1; f += $2; s += $3 }
END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 }
' "$logs/summary"
status=$?
rm -f "$logs/summary"
exit $status
