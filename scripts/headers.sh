#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compiles each public header alone, as C11 and as C++11, twice in one file,
# so that a missing include, guard or cast shows.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
warnings='-Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror'
cxx=
for c in ${CXX:-g++ clang++}; do
    command -v "$c" >/dev/null 2>&1 && cxx="$cxx $c"
done
if [ -z "$cxx" ]; then
    echo "no C++ compiler found"
    exit 1
fi

bad=0
compile() { # compile <header> <compiler and flags>...
    header=$1
    shift
    if ! "$@" -fsyntax-only -Iinclude "$dir/one" >"$dir/log" 2>&1; then
        echo "include/$header: does not compile alone by $1"
        cat "$dir/log"
        bad=1
    fi
}
n=0
for path in include/trn.h include/trn/*.h; do
    [ -f "$path" ] || continue
    n=$((n + 1))
    h=${path#include/}
    printf '#include <%s>\n#include <%s>\nint trn_only(void);\n' "$h" "$h" \
        >"$dir/one"
    for c in ${CC:-cc}; do
        # shellcheck disable=SC2086
        compile "$h" "$c" -std=c11 $warnings -x c
    done
    for c in $cxx; do
        # shellcheck disable=SC2086
        compile "$h" "$c" -std=c++11 $warnings -x c++
    done
done
[ $n -gt 0 ] || { echo "no public headers found"; bad=1; }
exit $bad
