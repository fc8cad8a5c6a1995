#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Proves that each check can fail: a small tree without fault passes, and with
# one fault put in, the check fails and names the file.
set -u
scripts=$(cd "$(dirname "$0")" && pwd)
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
CC=${CC:-cc}
n=0
bad=0

spdx='/* SPDX-License-Identifier: Apache-2.0'

# source <path>: a file with the SPDX line and what comes on standard input.
source_file() {
    mkdir -p "$(dirname "$1")"
    { echo "$spdx */"; cat; } >"$1"
}

# tree: a fresh one, in which every check passes, becomes the current folder.
tree() {
    rm -rf "$top/tree"
    mkdir -p "$top/tree/scripts" "$top/tree/docs"
    cd "$top/tree" || exit 1
    echo '#include "trn/types.h"' | source_file include/trn.h
    source_file include/trn/types.h <<'END'
#ifndef T_H
#define T_H
#define TRN_API __attribute__((visibility("default")))
#ifdef __cplusplus
extern "C" {
#endif
/* y = -x */
TRN_API double trn_neg(double x);
#ifdef __cplusplus
}
#endif
#endif
END
    source_file include/trn/ops.def <<'END'
TRN_OP(1, neg, UNARY, 1, 0)
TRN_OP(91, sgd_update, UPDATE, 2, 0x1)
END
    echo 'Used by the optimizer: sgd_update.' >docs/ops.md
    for row in neg sgd_update; do
        printf "TRN_CASE($row, \"%s\", \"\")\n" '[3]' '[1]' '[0]' 't[2,4]'
    done | source_file tests/cases.def
    source_file libtrn/ops/neg.c <<'END'
#include "trn.h"
double trn_neg(double x)
{
    /* malloc(1) in a comment, and "free(p)" in a string, are no calls. */
    return -x;
}
END
    source_file libtrn/context/memory.c <<'END'
#include <stdlib.h>
void *trn__alloc(unsigned long n);
void *trn__alloc(unsigned long n)
{
    return malloc(n);
}
END
    echo 'typedef int trn__generic_t;' | source_file kernels/generic/g.c
}

# build: objects and libraries of the tree, as the Makefile lays them out.
build() {
    rm -rf build
    for file in $(find libtrn kernels backends -name '*.c' 2>/dev/null); do
        mkdir -p "build/$(dirname "$file")"
        # shellcheck disable=SC2086
        $CC -O1 -fPIC -fvisibility=hidden -fno-builtin -Iinclude -I. ${1:-} \
            -c -o "build/${file%.c}.o" "$file" || exit 1
    done
    ar rcs build/libtrn.a $(find build -name '*.o')
    $CC -shared -o build/libtrn.so $(find build -name '*.o') -lm
}

run() { # run <script> <arguments>, by sh or perl
    case $1 in
    *.pl) perl "$scripts/$1" ${2:+"$2"} ;;
    *) sh "$scripts/$1" "${2:-}" ;;
    esac
}
passes() { # passes <script> <arguments>: the tree without fault
    n=$((n + 1))
    if ! run "$1" "${2:-}" >"$top/log" 2>&1; then
        echo "self-test: $1 fails on a tree without fault:"
        cat "$top/log"
        bad=1
    fi
}
finds() { # finds <what its message must hold> <script> <arguments>
    n=$((n + 1))
    if run "$2" "${3:-}" >"$top/log" 2>&1; then
        echo "self-test: $2 overlooks: $1"
        bad=1
    elif ! grep -qF -- "$1" "$top/log"; then
        echo "self-test: $2 fails, but does not say: $1"
        cat "$top/log"
        bad=1
    fi
}

tree
build
for script in layers sizes banned headers docs_complete cases_complete; do
    passes $script.sh
done
passes names.sh build/libtrn.a
passes symbols.sh build/libtrn.so
passes instructions.sh build

# layers <file> <header> <extra>: the include must be found.
layer() {
    tree
    echo "#include $2" | source_file "$1"
    [ -z "${3:-}" ] || : | source_file "$3"
    finds "$1:2: may not include" layers.sh
}
layer libtrn/tensor/t.c '"libtrn/ops/o.h"' libtrn/ops/o.h
layer libtrn/ops/o.c '"kernels/kernel_set.h"'
layer libtrn/ops/o.c '<zlib.h>'
layer libtrn/data/d.c '<omp.h>'
layer libtrn/ops/o.c '"backends/cpu/cpu.h"'
layer libtrn/ops/o.c '<unknown.h>'
layer kernels/k.c '"libtrn/context/c.h"'
layer kernels/k.c '"trn.h"'
layer kernels/generic/k.c '<immintrin.h>'
layer backends/cpu/b.c '"libtrn/context/c.h"'
layer backends/cpu/b.c '<dlfcn.h>'
layer backends/cpu/b.c '"backends/pjrt/pjrt_object.h"'
layer backends/trn3/sim/s.c '"backends/trn3/t.h"'
layer backends/loop/l.c '"trn.h"'
layer examples/e.c '"trn/types.h"'
layer tools/t.c '"kernels/fma.h"'
layer bench/b.c '"libtrn/context/c.h"'
layer include/trn/x.h '<unistd.h>'
layer include/trn/x.h '"kernels/fma.h"'
tree
mkdir libtrn/misc
finds 'libtrn/misc: not in the order' layers.sh

# sizes
lines() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) print ";" }'; }
tree
lines 500 | source_file libtrn/ops/long.c
finds 'libtrn/ops/long.c: 501 lines' sizes.sh
echo 'libtrn/ops/long.c a table' >scripts/sizes.allow
passes sizes.sh
echo 'libtrn/ops/neg.c short since' >>scripts/sizes.allow
finds 'libtrn/ops/neg.c no longer needs' sizes.sh
tree
lines 300 | source_file libtrn/ops/long.h
finds 'libtrn/ops/long.h: 301 lines' sizes.sh
tree
{ printf 'void f(void)\n{\n'; lines 61; echo '}'; } | source_file tests/f.c
finds 'tests/f.c:65: function of 61 lines' sizes.sh
tree
for i in 1 2 3 4 5 6; do lines 160 | source_file tests/m$i.c; done
finds 'median file: 161 lines' sizes.sh

# banned <file> <code> <message>
banned() {
    tree
    echo "$2" | source_file "$1"
    finds "$1:2: $3" banned.sh
}
for call in malloc calloc realloc free abort exit signal setenv setlocale \
    printf fprintf puts perror sprintf strcpy strcat strtok atoi atof strtod \
    rand time; do
    banned libtrn/ops/b.c "int x = $call(0);" "banned call of $call"
done
banned backends/cpu/b.c 'free (p);' 'banned call of free'
banned kernels/k.c 'x = "a" + malloc(1);' 'banned call of malloc'
banned libtrn/context/memory.c 'abort();' 'banned call of abort'
banned tools/t.c 'strcpy(a, b);' 'banned call of strcpy'
banned tests/t.c '#if 0' 'code under #if 0'
banned tests/t.c '/* TODO: more */' 'TODO without an issue number'
banned tests/t.c '/* FIXME */' 'FIXME without an issue number'
banned tests/t.c '/* Author: N. N. */' 'author named'
banned tests/t.c '/* n.n@example.org */' 'author named'
tree
echo 'int x;' >tests/t.c
finds 'tests/t.c:1: no SPDX line' banned.sh
tree
echo 's->free(p); s.free(p); snprintf(a, b, c); /* TODO #7 */' |
    source_file libtrn/ops/b.c
passes banned.sh

# headers
tree
echo 'trn_lost x;' | source_file include/trn/x.h
finds 'include/trn/x.h: does not compile alone' headers.sh
tree
echo 'static inline int *trn_f(void *p) { return p; }' |
    source_file include/trn/x.h
finds 'include/trn/x.h: does not compile alone' headers.sh

# rows
tree
echo 'TRN_OP(2,   exp, UNARY)' >>include/trn/ops.def
finds 'row exp: no TRN_API declaration' docs_complete.sh
finds 'row exp: no TRN_CASE' cases_complete.sh
echo 'TRN_API double trn_exp(double x);' >>include/trn/types.h
finds 'row exp: no comment directly above' docs_complete.sh
tree
: >docs/ops.md
finds 'row sgd_update: no page' docs_complete.sh
tree
printf '%s\n' '## Rules' '### neg' '## Functions' '## Cost' '## What' \
    >docs/numerics.md
finds 'rule neg: no line in the table of costs' docs_complete.sh
tree
echo 'TRN_CASE(old, "[3]", "")' >>tests/cases.def
finds 'case old: no such row' cases_complete.sh

# row <class> <inputs> <shapes> ..: a tree with such a row and these cases
row() {
    tree
    echo "TRN_OP(10, add, $1, $2, 0)" >>include/trn/ops.def
    shift 2
    printf 'TRN_CASE(add, "%s", "")\n' "$@" >>tests/cases.def
}
odd='[3] [3]' one='[1,2] [1,2]' empty='[0] [0]' strided='[2,4] t[2,4]'
broadcast='[2] []'
row BINARY 2 "$odd" "$one" "$empty" "$strided" "$broadcast"
passes cases_complete.sh
row SPECIAL 2 "$odd" "$one" "$empty" "$strided"
passes cases_complete.sh
row RANDOM 0 ''
passes cases_complete.sh
row SPECIAL 2 "$one" "$empty" "$strided" "$broadcast"
finds 'row add: no case of the kind odd' cases_complete.sh
row SPECIAL 2 "$odd" '[11] [10]' "$empty" "$strided"
finds 'row add: no case of the kind size-1' cases_complete.sh
row SPECIAL 2 "$odd" "$one" '[30] [10]' "$strided"
finds 'row add: no case of the kind empty' cases_complete.sh
row SPECIAL 2 "$odd" "$one" "$empty"
finds 'row add: no case of the kind non-contiguous' cases_complete.sh
for class in BINARY COMPARE; do
    row $class 2 "$odd" "$one" "$empty" "$strided"
    finds 'row add: no case of the kind broadcast' cases_complete.sh
done

# the rules of the numerics and their mutations
rules() { # a tree with one rule, which passes
    tree
    mkdir -p tests
    echo 'static void negation_is_exact(void **state) {}' |
        source_file tests/test_neg.c
    cat >docs/numerics.md <<'END'
## Rules

### neg
- Tests: `test_neg` (negation_is_exact)
- Mutations: `neg-twice`
END
    cat >scripts/mutations.list <<'END'
mutation neg-twice: the sign stays
rule neg
test test_neg negation_is_exact
file libtrn/ops/neg.c
- return  -x;
+ return x;
END
}
rules
passes mutations.pl check
# rule <file> <sed command> <message>
rule() {
    rules
    sed "$2" "$1" >t && mv t "$1"
    finds "$3" mutations.pl check
}
rule tests/test_neg.c s/negation/other/ 'tests/ has no test_neg with negation_is_exact'
rule docs/numerics.md 's/### neg/### pos/' 'has no rule neg'
rule docs/numerics.md 's/`neg-twice`/none/' 'does not name its mutation neg-twice'
rule docs/numerics.md 's/neg-twice`/neg-twice`, `neg-never`/' 'has no mutation neg-never of it'
rule docs/numerics.md '/Tests/d' 'names no tests'
rule libtrn/ops/neg.c 's/-x/0 - x/' 'its text is 0 times in libtrn/ops/neg.c'
rule scripts/mutations.list 's/^+ .*/+ return  -x;/' 'changes nothing'
rule scripts/mutations.list '/^test/d' 'no rule, no test or no edit'
rules
printf '\n### abs\n- Tests: `test_neg` (negation_is_exact)\n' >>docs/numerics.md
finds 'rule abs: has no mutation' mutations.pl check

# object code <file> <code> <message> <script> <library> <flags>
code() {
    tree
    echo "$2" | source_file "$1"
    build "${6:-}"
    finds "$3" "$4" "$5"
}
code libtrn/ops/n.c 'int leak(void) { return 1; }' \
    'internal leak is not named' names.sh build/libtrn.a
code libtrn/ops/n.c 'int trn_x(void) { return 1; }' \
    'internal trn_x is not named' names.sh build/libtrn.a
code libtrn/ops/n.c \
    '__attribute__((visibility("default"))) int trn__x(void) { return 1; }' \
    'exported trn__x is not named' names.sh build/libtrn.a
code libtrn/ops/n.c \
    '__attribute__((visibility("default"))) int trn_x(void) { return 1; }' \
    'exports trn_x, which no public header' symbols.sh build/libtrn.so
code libtrn/ops/n.c 'int H5check_version(unsigned, unsigned, unsigned);
int trn__e(void) { return H5check_version(1, 10, 8); }' \
    'imports H5check_version, which may end' symbols.sh build/libtrn.so
tree
sed 's/trn_neg/trn_gone/' include/trn/types.h >t && mv t include/trn/types.h
sed '/trn.h/d' libtrn/ops/neg.c >t && mv t libtrn/ops/neg.c
build
finds 'declares trn_gone, which' symbols.sh build/libtrn.so
code libtrn/ops/n.c 'double exp(double);
double trn__e(double x) { return exp(x); }' \
    'imports exp; expected fma alone' instructions.sh build
code libtrn/ops/n.c 'float fmaf(float, float, float);
float trn__e(float x) { return fmaf(x, x, x); }' \
    'imports fmaf; expected fma alone' instructions.sh build
case $($CC -dumpmachine) in
x86_64-*)
    one='void trn__i(void) { __asm__("'
    code kernels/avx2/i.c "$one rcpps %xmm0, %xmm0\"); }" \
        'kernels/avx2/i.o: rcpps' instructions.sh build
    code kernels/avx2/i.c "$one vrsqrt14ps %zmm0, %zmm0\"); }" \
        'kernels/avx2/i.o: vrsqrt14ps' instructions.sh build
    code kernels/avx2/i.c "$one vdpbf16ps %zmm0, %zmm0, %zmm0\"); }" \
        'kernels/avx2/i.o: vdpbf16ps' instructions.sh build
    code kernels/generic/i.c \
        'double trn__i(double x) { return __builtin_fma(x, x, x); }' \
        'kernels/generic/i.o: vfmadd' instructions.sh build \
        '-mfma -fbuiltin'
    ;;
esac

# the summary of tests
mkdir -p "$top/logs"
program() {
    { echo '#!/bin/sh'; cat; } >"$top/test_x"
    chmod +x "$top/test_x"
}
run='[ RUN      ] a'
summary() { # summary <last line> <status>
    n=$((n + 1))
    sh "$scripts/run_tests.sh" "$top/logs" "$top/test_x" >"$top/log" 2>&1
    status=$?
    if [ $status -ne "$2" ] || [ "$(tail -n 1 "$top/log")" != "$1" ]; then
        echo "self-test: run_tests.sh: status $status; expected $2 and: $1"
        cat "$top/log"
        bad=1
    fi
}
printf 'echo "%s"; echo "[       OK ] a"\n' "$run" | program
summary '1 passed, 0 failed, 0 skipped' 0
printf 'echo "%s"; echo "[  FAILED  ] a"; exit 1\n' "$run" | program
summary '0 passed, 1 failed, 0 skipped' 1
printf 'echo "%s"; kill -SEGV $$\n' "$run" | program
summary '0 passed, 1 failed, 0 skipped' 1
printf 'echo "%s"; echo why; echo "[  SKIPPED ] a"\n' "$run" | program
summary '0 passed, 0 failed, 1 skipped' 0
printf 'echo "%s"; echo "[  SKIPPED ] a"\n' "$run" | program
summary '0 passed, 1 failed, 0 skipped' 1
echo 'exit 0' | program
summary '0 passed, 1 failed, 0 skipped' 1
printf 'echo "%s"; echo "[       OK ] a"; exit 3\n' "$run" | program
summary '1 passed, 1 failed, 0 skipped' 1

# runs of `trn verify`
mkdir -p "$top/matrix/tests"
cd "$top/matrix" || exit 1
echo 'mlp f32 aa bb' >tests/verify.digests
COMPILERS='gcc clang' LEVELS='1 2 3' SETS='generic generic+fma' ENGINES=pool
export COMPILERS LEVELS SETS ENGINES
matrix() { # matrix <status> <words for verify_matrix.sh>...
    n=$((n + 1))
    expected=$1
    shift
    sh "$scripts/verify_matrix.sh" "$@" >"$top/log" 2>&1
    status=$?
    if [ $status -ne "$expected" ]; then
        echo "self-test: verify_matrix.sh $*: status $status, not $expected"
        cat "$top/log"
        bad=1
    fi
}
sh "$scripts/verify_matrix.sh" list >pairs
matrix 0 covered pairs
sed 1d pairs >fewer
matrix 1 covered fewer
printed() { echo "$1" >printed; }
printed 'mlp f32 aa bb generic pool 3 cpu eager'
matrix 0 judge 'gcc 1 generic 3 pool eager' printed
matrix 1 judge 'gcc 1 generic 2 pool eager' printed
matrix 1 judge 'gcc 1 generic+fma 3 pool eager' printed
matrix 1 judge 'gcc 1 generic 3 openmp eager' printed
matrix 1 judge 'gcc 1 generic 3 pool captured' printed
matrix 1 judge 'gcc 1 generic 3 pool loop' printed
printed 'mlp f32 aa bc generic pool 3 cpu eager'
matrix 1 judge 'gcc 1 generic 3 pool eager' printed
printed '# nothing ran'
matrix 1 judge 'gcc 1 generic 3 pool eager' printed
printed 'mlp f32 aa bb generic - 0 loop captured'
matrix 0 judge 'gcc 1 generic 3 pool loop' printed

[ $bad -eq 0 ] && echo "self-test: $n faults and their absence are told apart"
exit $bad
