#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Finds out which optional libraries the compiler can use.
#
# Usage: CC=... FLAGS=... SAN=... probe.sh <file>
# Writes <file> as lines for make and says once, on standard error, what is
# lacking.  Fails, and writes nothing, when the compiler itself does not work.
set -u
out=$1
mkdir -p "$(dirname "$out")"
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT

# try <flags> compiles and links the program on standard input.
try() {
    cat >"$dir/p.c"
    # CC and FLAGS hold words as they would stand in a recipe, quotes included.
    eval "$CC -std=c17 -D_POSIX_C_SOURCE=200809L -o '$dir/p' '$dir/p.c' \
        ${FLAGS:-} $*" >"$dir/log" 2>&1
}

if ! echo 'int main(void) { return 0; }' | try; then
    cat "$dir/log" >&2
    exit 1
fi
lacks() {
    echo "libtrn: building without $1: $2 ($3; \`make deps\` installs it)" >&2
}

{
    # shellcheck disable=SC2086
    echo "MACHINE := $($CC -dumpmachine)"

    case ",${SAN:-}," in
    *,thread,*)
        # Neither OpenMP run-time library tells ThreadSanitizer of its locks.
        ;;
    *)
        if printf '#include <omp.h>\nint main(void)\n{\n
#pragma omp parallel\n{ }\nreturn omp_get_max_threads() < 1;\n}\n' |
            try -fopenmp; then
            echo 'HAVE_OPENMP := 1'
        else
            lacks OpenMP 'threads come from our own pool' 'libomp-dev for clang'
        fi
        ;;
    esac

    if printf '#include <zlib.h>\nint main(void) { return !zlibVersion(); }\n' |
        try -lz; then
        echo 'HAVE_ZLIB := 1'
    else
        lacks zlib '.gz files cannot be read' zlib1g-dev
    fi

    # Debian's serial build has names of its own beside pkg-config's; headers
    # of another project are not ours to warn of.  The file driver that we bring
    # is written for 1.10 to 1.14.
    hdf5='#include <hdf5.h>
#if !H5_VERSION_GE(1, 10, 2)
#error "too old"
#endif
int main(void) { return H5open() < 0; }'
    flags=
    libs=-lhdf5
    if ! echo "$hdf5" | try $libs; then
        flags='-isystem /usr/include/hdf5/serial'
        libs=-lhdf5_serial
    fi
    # shellcheck disable=SC2086
    if ! echo "$hdf5" | try $flags $libs; then
        flags=$(pkg-config --cflags hdf5 2>/dev/null | sed 's/-I */-isystem /g')
        libs=$(pkg-config --libs hdf5 2>/dev/null)
    fi
    # shellcheck disable=SC2086
    if [ -n "$libs" ] && echo "$hdf5" | try $flags $libs; then
        echo 'HAVE_HDF5 := 1'
        echo "HDF5_CFLAGS := $flags"
        echo "HDF5_LIBS := $libs"
    else
        lacks HDF5 'checkpoints are loaded, none is saved' libhdf5-dev
    fi

    # The compiler of messages and the library must be of one version.
    echo 'syntax = "proto3"; message M { int32 x = 1; }' >"$dir/m.proto"
    if protoc-c --proto_path="$dir" --c_out="$dir" "$dir/m.proto" \
        >"$dir/log" 2>&1 && printf '#include "m.pb-c.c"
int main(void) { M m = M__INIT; return m__get_packed_size(&m) != 0; }\n' |
        try -lprotobuf-c; then
        echo 'HAVE_PROTOBUFC := 1'
    else
        lacks protobuf-c 'nothing is lowered to HLO' \
            'libprotobuf-c-dev and protobuf-c-compiler'
    fi

    if printf '#include <jansson.h>
int main(void) { json_decref(json_object()); return 0; }\n' | try -ljansson; then
        echo 'HAVE_JANSSON := 1'
    else
        lacks jansson 'trn has no --json' libjansson-dev
    fi

    blas='#include <cblas.h>
int main(void) { float x = 1; return cblas_sdot(1, &x, 1, &x, 1) < 0; }'
    flags=
    libs=-lopenblas
    if ! echo "$blas" | try $libs; then
        flags=$(pkg-config --cflags openblas 2>/dev/null)
        libs=$(pkg-config --libs openblas 2>/dev/null)
    fi
    # shellcheck disable=SC2086
    if [ -n "$libs" ] && echo "$blas" | try $flags $libs; then
        echo 'HAVE_OPENBLAS := 1'
        echo "OPENBLAS_CFLAGS := $flags"
        echo "OPENBLAS_LIBS := $libs"
    else
        lacks OpenBLAS 'no products by it (TRN_MATMUL), no comparison with it' \
            libopenblas-dev
    fi

    # The compiler alone: whether the processor has tiles is asked by the test.
    if printf '#include <immintrin.h>
int main(void) { _tile_dpbf16ps(0, 1, 2); _tile_release(); return 0; }\n' |
        try -mamx-tile -mamx-bf16; then
        echo 'HAVE_AMX := 1'
    fi

    if printf '#include <mpfr.h>
int main(void) { return !mpfr_get_version(); }\n' | try -lmpfr -lgmp; then
        echo 'HAVE_MPFR := 1'
    else
        lacks MPFR 'tests of the mathematics are skipped' libmpfr-dev
    fi
} >"$dir/config"
mv "$dir/config" "$out"
