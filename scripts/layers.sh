#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks who includes whom: the core's folders only those before them, kernels
# and backends nothing of the core, third-party headers only where they belong.
#
# The rules are the two shell functions below: `ours` says which headers of the
# project a file may include, `foreign` which others.
set -u
here=$(cd "$(dirname "$0")" && pwd)
list=$(mktemp) || exit 1
trap 'rm -f "$list"' EXIT

order='context tensor graph dispatch ops autograd nn optim data io comm'

c_standard=' assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h
iso646.h limits.h locale.h math.h setjmp.h signal.h stdalign.h stdarg.h
stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h
tgmath.h threads.h time.h uchar.h wchar.h wctype.h '
posix=' dirent.h fcntl.h poll.h sched.h strings.h sys/mman.h sys/resource.h
sys/stat.h sys/time.h sys/types.h sys/wait.h unistd.h '
intrinsics=' immintrin.h xmmintrin.h emmintrin.h pmmintrin.h cpuid.h
x86intrin.h arm_neon.h '

has() { # has <list> <word>
    case " $(echo $1) " in *" $2 "*) return 0 ;; esac
    return 1
}

# before <folder> <folder>: is the second the first, or before it?
before() {
    for f in $order; do
        [ "$f" = "$2" ] && return 0
        [ "$f" = "$1" ] && return 1
    done
    return 1
}

# ours <file> <header>: headers of the project
ours() {
    case $1 in
    include/*) case $2 in trn/*) return 0 ;; esac ;;
    libtrn/*)
        folder=${1#libtrn/}
        folder=${folder%%/*}
        has "$order" "$folder" || return 1
        case $2 in
        trn.h | trn/*) return 0 ;;
        kernels/scalar.h | kernels/philox.h) return 0 ;;
        libtrn/*/*)
            other=${2#libtrn/}
            before "$folder" "${other%%/*}"
            return
            ;;
        backends/hlo/hlo.h) [ "$1" = libtrn/dispatch/hlo_bridge.c ] && return 0 ;;
        backends/pjrt/pjrt_object.h)
            [ "$1" = libtrn/dispatch/plugin.c ] && return 0
            ;;
        backends/*) [ "$1" = libtrn/dispatch/registry.c ] && return 0 ;;
        esac
        ;;
    kernels/*)
        case $2 in kernels/* | trn/types.h | trn/ops.def) return 0 ;; esac
        ;;
    backends/cpu/*)
        # As in dispatch: before dlopen() gets a path of the user's.
        [ "$1 $2" = 'backends/cpu/cpu_blas.c backends/pjrt/pjrt_object.h' ] &&
            return 0
        case $2 in trn.h | trn/* | kernels/* | backends/cpu/*) return 0 ;; esac
        ;;
    backends/hlo/*) case $2 in trn.h | trn/* | backends/hlo/*) return 0 ;; esac ;;
    backends/pjrt/*)
        case $2 in trn.h | trn/* | backends/hlo/* | backends/pjrt/*)
            return 0
            ;;
        esac
        ;;
    backends/trn3/sim/*)
        case $2 in kernels/* | backends/trn3/sim/*) return 0 ;; esac
        ;;
    backends/trn3/*)
        case $2 in
        backends/trn3/sim/*) return 1 ;;
        trn.h | trn/* | backends/hlo/* | backends/trn3/*) return 0 ;;
        esac
        ;;
    backends/loop/*) case $2 in trn/backend.h|trn/ops.def|backends/loop/*) return 0 ;; esac ;;
    tools/*) case $2 in trn.h | trn/backend.h | tools/*) return 0 ;; esac ;;
    examples/*) case $2 in trn.h | trn/backend.h) return 0 ;; esac ;;
    bench/*) case $2 in trn.h | trn/* | kernels/* | bench/*) return 0 ;; esac ;;
    tests/*) return 0 ;;
    esac
    return 1
}

# foreign <file> <header>: headers of the system and of third parties
foreign() {
    has "$c_standard" "$2" && return 0
    case $1 in include/*) return 1 ;; esac
    has "$posix" "$2" && return 0
    case $1 in
    libtrn/context/*) has 'omp.h pthread.h' "$2" || has "$intrinsics" "$2" ;;
    libtrn/dispatch/*) has dlfcn.h "$2" ;;
    libtrn/data/*) has 'zlib.h jansson.h json-c/json.h' "$2" ;;
    libtrn/io/*) has 'hdf5.h H5FDdevelop.h' "$2" ;;
    libtrn/comm/*) has mpi.h "$2" ;;
    kernels/generic/*) return 1 ;;
    kernels/*/* | kernels/*_avx2.h) has "$intrinsics" "$2" ;;
    # OpenBLAS is loaded when it is asked for, and its threads are the process's.
    backends/cpu/cpu_blas.c) has 'dlfcn.h pthread.h' "$2" ;;
    backends/cpu/*) has 'cblas.h lapacke.h' "$2" || has "$intrinsics" "$2" ;;
    backends/hlo/* | backends/trn3/sim/*)
        has protobuf-c/protobuf-c.h "$2"
        ;;
    backends/pjrt/*) has 'dlfcn.h elf.h pthread.h' "$2" ;;
    backends/trn3/*) has dlfcn.h "$2" ;;
    backends/loop/*) has pthread.h "$2" ;;
    tools/*) has 'jansson.h json-c/json.h' "$2" ;;
    bench/*) has 'cblas.h pthread.h dlfcn.h' "$2" ;;
    tests/*)
        has 'cmocka.h mpfr.h gmp.h cblas.h pthread.h dlfcn.h zlib.h jansson.h
            hdf5.h omp.h execinfo.h link.h' "$2" || has "$intrinsics" "$2"
        ;;
    *) return 1 ;;
    esac
}

find include libtrn kernels backends tools examples tests bench \
    -name '*.[ch]' 2>/dev/null | sort | while read -r file; do
    perl "$here/strip_c.pl" -s "$file" | awk -v file="$file" '
        match($0, /^[ \t]*#[ \t]*include[ \t]*["<][^">]*[">]/) {
            s = substr($0, RSTART, RLENGTH)
            kind = s ~ /"/ ? "quote" : "angle"
            sub(/^[^"<]*["<]/, "", s)
            sub(/[">]$/, "", s)
            print file, FNR, kind, s
        }'
done >"$list"

bad=0
while read -r file line kind header; do
    # A bare name in quotes is a neighbour; all else counts from the root.
    [ "$kind" = quote ] && [ -f "$(dirname "$file")/$header" ] &&
        header=$(dirname "$file")/$header
    header=${header#include/}
    case $header in
    trn.h | trn/* | libtrn/* | kernels/* | backends/* | tools/* | examples/* | \
        tests/* | bench/*)
        ours "$file" "$header" && continue
        ;;
    *) [ "$kind" = angle ] && foreign "$file" "$header" && continue ;;
    esac
    echo "$file:$line: may not include $header"
    bad=1
done <"$list"

# A folder of the core that the order does not know would be free of rules.
for folder in libtrn/*/; do
    [ -d "$folder" ] || continue
    name=$(basename "$folder")
    has "$order" "$name" || { echo "libtrn/$name: not in the order"; bad=1; }
done
exit $bad
