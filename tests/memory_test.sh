#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All memory of a context comes through its hooks: a program that serves them
# from an array of its own, and defines malloc and its kin, sees what is
# allocated beside them while a context lives (tests/memory/counted.c).
#
# Prints what a cmocka program prints, for scripts/run_tests.sh.
# CC is the compiler, TRN_BUILD the folder of libtrn.so.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=${TRN_BUILD:-$root/build}
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
cd "$root" || exit 1
unset TRN_DEVICE TRN_EXEC TRN_ENGINE TRN_NUM_THREADS

zlib=
case " ${TRN_LIBS:-} " in *' -lz '*) zlib='-DTRN_HAVE_ZLIB -lz' ;; esac
case " ${TRN_LIBS:-} " in *' -fopenmp '*) openmp=eager-openmp ;; *) openmp= ;; esac
# shellcheck disable=SC2086
${CC:-cc} -std=gnu17 -O1 -g -fno-builtin -Iinclude -I. -o "$top/counted" \
    tests/memory/counted.c tests/host_job.c tests/host_files.c \
    -L"$build" -ltrn -Wl,-rpath,"$build" -pthread -ldl $zlib || exit 1

skip=
counted() { # counted <way> [past]: its lines in $top/log
    "$top/counted" "$@" >"$top/log" 2>&1 || { cat "$top/log"; return 1; }
    if grep -q '^not here' "$top/log"; then
        skip=$(cat "$top/log")
    fi
    return 0
}
by() { # by <who>: how many allocations
    awk -v who="$1" '$2 == "by" && $3 == who { n += $1 } END { print n + 0 }' "$top/log"
}

# Libraries that we call allocate on their own account: the C library for its
# threads and for the objects it loads, OpenMP for its teams; so does a device in
# a shared object that maps memory, as loop does.  The list of loaded
# devices outlives all contexts: one block for each, of malloc, and each life
# tries to open one, loop.
nothing_is_allocated_beside_the_hooks() {
    for way in eager-1 eager-3 captured-1 captured-3 $openmp loop-3; do
        counted $way || return 1
        [ -n "$skip" ] && return 0
        awk -v way=$way '
            { said = said (said == "" ? "" : ", ") $0 }
            $3 == "libtrn" { ours += $1; next }
            $3 !~ /^(pthread_create|dlopen|dlclose|dlerror|trn-loop.so|GOMP_parallel|__kmpc_fork_call)/ {
                print way ": " $0; bad = 1
            }
            END {
                print way ": " (said == "" ? "none" : said)
                if (ours != 1) print way ": " ours " by libtrn itself"
                exit bad || ours != 1
            }' "$top/log" || return 1
    done
}

# Without hooks all of it is malloc: else the case above proves nothing.
what_is_allocated_beside_the_hooks_is_seen() {
    for way in eager-1 captured-3 loop-3; do
        counted $way past || return 1
        [ -n "$skip" ] && return 0
        n=$(by libtrn)
        echo "$way without hooks: $n by libtrn itself"
        [ "$n" -gt 200 ] || return 1
    done
}

for name in nothing_is_allocated_beside_the_hooks \
    what_is_allocated_beside_the_hooks_is_seen; do
    printf '[ RUN      ] %s\n' "$name"
    if ! "$name"; then
        printf '[  FAILED  ] %s\n' "$name"
        failed=1
    elif [ -n "$skip" ]; then
        printf '%s\n[  SKIPPED ] %s\n' "$skip" "$name"
    else
        printf '[       OK ] %s\n' "$name"
    fi
done
exit $failed
