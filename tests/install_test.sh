#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `make install` into an empty tree, and a program outside of the project that
# uses what lies there: with pkg-config, with CMake, as C++, shared and static.
#
# Prints what a cmocka program prints, for scripts/run_tests.sh.
# CC is the compiler.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
unset MAKEFLAGS MFLAGS MAKELEVEL
cc=${CC:-cc}
at=$top/at
prefix=/opt/trn
lib=$at$prefix/lib
log=$top/log
sample=$root/tests/install/sample.c
failed=0
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$at"
cd "$top" || exit 1

# A case that needs a tool says so where there is none.
run() { # run <case> [<tool>...]
    name=$1
    shift
    printf '[ RUN      ] %s\n' "$name"
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 && continue
        printf 'there is no %s\n[  SKIPPED ] %s\n' "$tool" "$name"
        return
    done
    if ("$name") >"$log" 2>&1; then
        printf '[       OK ] %s\n' "$name"
    else
        sed 's/^/  | /' "$log"
        printf '[  FAILED  ] %s\n' "$name"
        failed=1
    fi
}

# Programs that were linked must run, and say what the sample says.
works() {
    LD_LIBRARY_PATH=$lib "$1" >"$1.out" || { cat "$1.out"; return 1; }
    cat "$1.out"
    grep -q '^libtrn [0-9.]*: loss below 1e-6$' "$1.out"
}
shared_alone() { # is libtrn.so needed (yes) or inside (no)?
    found=no
    readelf -d "$1" | grep -q 'NEEDED.*libtrn\.so\.[0-9.]*\]' && found=yes
    [ $found = "$2" ] || { echo "$1 needs libtrn.so: $found"; return 1; }
}

every_file_is_installed() {
    make -C "$root" CC="$cc" DESTDIR="$at" PREFIX=$prefix install || return 1
    version=$(sed -n 's/^Version: //p' "$lib/pkgconfig/libtrn.pc")
    series=${version%%.*}
    [ "$series" != 0 ] || series=${version%.*} # before 1.0 minors differ
    for f in include/trn.h lib/libtrn.a lib/libtrn.so "lib/libtrn.so.$version" \
        "lib/libtrn.so.$series" lib/pkgconfig/libtrn.pc bin/trn \
        lib/cmake/libtrn/libtrnConfig.cmake share/man/man1/trn.1 \
        lib/cmake/libtrn/libtrnConfigVersion.cmake; do
        [ -s "$at$prefix/$f" ] || { echo "no $f"; return 1; }
    done
    (cd "$root/include" && find . -type f -name '*.[hd]*' | sort) >want
    (cd "$at$prefix/include" && find . -type f | sort) >have
    grep -v README want | diff - have
}

# A header that was taken away must not stay behind another's name.
a_second_time_changes_nothing() {
    (cd "$at" && find . -type f -exec cksum {} + | sort) >before
    make -C "$root" CC="$cc" DESTDIR="$at" PREFIX=$prefix install || return 1
    (cd "$at" && find . -type f -exec cksum {} + | sort) | diff before -
}

no_file_names_where_it_was_built() {
    ! grep -rIlF -e "$root" -e "$at" "$at"
}

the_shared_library_has_its_name() {
    readelf -d "$lib/libtrn.so" | grep 'SONAME.*\[libtrn\.so\.\(0\.\)\{0,1\}[0-9]*\]' &&
        CC=$cc sh -c "cd '$root' && sh scripts/symbols.sh '$lib/libtrn.so'"
}

the_program_runs() {
    "$at$prefix/bin/trn" version && "$at$prefix/bin/trn" info
}

the_manual_knows_every_command_and_variable() {
    "$at$prefix/bin/trn" help >help || return 1
    sed 's/\\-/-/g; s/^\.[A-Z]*//; s/[]["]//g' "$at$prefix/share/man/man1/trn.1" |
        tr -s ' ' '\n' >words
    { sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' help
        grep -o -e 'TRN_[A-Z_]*' -e '--[a-z]*' help; } | sort -u >names
    [ "$(wc -l <names)" -gt 10 ] || return 1
    while read -r word; do
        grep -qxF -e "$word" words || { echo "trn.1 lacks $word"; exit 1; }
    done <names || return 1
    ! grep -q @ "$at$prefix/share/man/man1/trn.1"
}

# shellcheck disable=SC2046,SC2086
with_pkg_config() {
    $cc -o by_pc "$sample" $(pkg-config --cflags --libs libtrn) &&
        works ./by_pc && shared_alone by_pc yes
}

# shellcheck disable=SC2046,SC2086
with_pkg_config_statically() {
    $cc -o by_pc_static "$sample" \
        $(pkg-config --cflags --libs --static libtrn |
            sed 's/-ltrn/-l:libtrn.a/') &&
        works ./by_pc_static && shared_alone by_pc_static no
}

# shellcheck disable=SC2046,SC2086
with_cxx() {
    g++ -Wall -Werror -std=c++11 -x c++ -o by_cxx "$sample" \
        $(pkg-config --cflags --libs libtrn) &&
        works ./by_cxx && shared_alone by_cxx yes
}

with_cmake() {
    cp -r "$root/tests/install" project &&
        cmake -S project -B cm -DCMAKE_PREFIX_PATH="$at$prefix" \
            -DCMAKE_C_COMPILER="${cc%% *}" && cmake --build cm &&
        works cm/shared && shared_alone cm/shared yes &&
        works cm/static && shared_alone cm/static no
}

cmake_is_not_given_another_series() {
    cp -r "$root/tests/install" other && sed -i 's/libtrn 0\.1/libtrn 0.99/' \
        other/CMakeLists.txt || return 1
    if cmake -S other -B cm-other -DCMAKE_PREFIX_PATH="$at$prefix" \
        -DCMAKE_C_COMPILER="${cc%% *}" >other.log 2>&1; then
        echo 'version 0.99 was found'
        return 1
    fi
    grep -q 'requested version "0\.99"' other.log || { cat other.log; return 1; }
}

run every_file_is_installed
[ $failed -eq 0 ] || exit 1
run a_second_time_changes_nothing
run no_file_names_where_it_was_built
run the_shared_library_has_its_name readelf
run the_program_runs
run the_manual_knows_every_command_and_variable
run with_pkg_config pkg-config
run with_pkg_config_statically pkg-config
run with_cxx pkg-config g++
run with_cmake cmake
run cmake_is_not_given_another_series cmake
exit $failed
