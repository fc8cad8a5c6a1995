#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs `trn verify` over all combinations of compilers, optimisation levels,
# kernel sets, threads, engines and ways to run, or over few that hold each pair
# of these: all must give the kept digests, by what was asked for.
#
# Usage: verify_matrix.sh all | pairs      build, run, print one line per run
#        verify_matrix.sh list             the combinations of `pairs`
#        verify_matrix.sh covered <file>   do its lines hold each pair?
#        verify_matrix.sh judge '<combination>' <file>   is it what it prints?
#
# A combination is a line "gcc 3 generic 1 pool eager".  Sets: "generic" is
# compiled without hardware FMA and runs with a C library that is told to have
# none; "generic+fma" is a build with -mfma.
# COMPILERS, LEVELS, SETS, THREADS, ENGINES and WAYS narrow the matrix.
set -u
LC_ALL=C
export LC_ALL
kept=tests/verify.digests
: "${COMPILERS:=gcc clang}" "${LEVELS:=1 2 3}" "${THREADS:=1 2 3 7}"
: "${WAYS:=eager captured loop}" "${JOBS:=$(nproc 2>/dev/null || echo 2)}"
made='gcc 3 plain;clang 3 plain' # builds that `make check` makes anyway

# The words after `make` that choose the build "gcc 3 plain" or "gcc 3 fma".
build() {
    set -- $1
    set -- CC="$1" OPT="-O$2" ${3:+$([ "$3" = fma ] && echo CFLAGS=-mfma)}
    "${MAKE:-make}" "$@" WERROR=1 LINKS=no verify-build
}

# What this processor and the gcc build can run, unless the caller says.
find_levels() {
    info=$("$1/trn" info)
    has() { echo "$info" | grep "^$1 .* $2\\( \\|\$\\)" >/dev/null; }
    if [ -z "${SETS:-}" ]; then
        SETS=generic
        has 'CPU features' fma && SETS="$SETS generic+fma"
        has 'CPU features' avx2 && has 'CPU features' fma && SETS="$SETS avx2"
    fi
    if [ -z "${ENGINES:-}" ]; then
        ENGINES=pool
        has 'parts present' openmp && ENGINES="$ENGINES openmp"
    fi
}

# awk with the levels of the six factors in level[f, i], i from 1 to n[f].
with_levels() {
    program=$1
    shift
    awk -v all="$COMPILERS|$LEVELS|$SETS|$THREADS|$ENGINES|$WAYS" -v made="$made" '
    function load(    parts, words, f, i) {
        split(all, parts, "|")
        for (f = 1; f <= 6; f++) {
            n[f] = split(parts[f], words, " ")
            for (i = 1; i <= n[f]; i++) level[f, i] = words[i]
        }
        split("compiler level set threads engine way", name, " ")
    }
    # row[1..6] number r of all, counted like an odometer
    function combination(r,    f) {
        for (f = 6; f >= 1; f--) {
            row[f] = level[f, r % n[f] + 1]
            r = int(r / n[f])
        }
    }
    function n_all(    f, product) {
        product = 1
        for (f = 1; f <= 6; f++) product *= n[f]
        return product
    }
    function text(    f, t) {
        t = row[1]
        for (f = 2; f <= 6; f++) t = t " " row[f]
        return t
    }
    function build_of() {
        return row[1] " " row[2] " " (row[3] == "generic+fma" ? "fma" : "plain")
    }'"$program" "$@"
}

list_all() {
    with_levels 'BEGIN { load(); for (r = 0; r < n_all(); r++) {
        combination(r); print text() } }'
}

# Greedily: builds until compiler, level and set meet in pairs, those that exist
# first, less those that turn out to be superfluous; then, of these builds, runs
# until all factors do.  The first of equals.
list_pairs() {
    with_levels '
    # Pairs of the first `last` factors of row[] that seen[] has not; by > 0:
    # each is counted in seen[], by < 0: taken from it.
    function gain(last, by,    f, h, key, g) {
        g = 0
        for (f = 1; f < last; f++)
            for (h = f + 1; h <= last; h++) {
                key = f " " row[f] " " h " " row[h]
                g += seen[key] + 0 == 0
                seen[key] += by
            }
        return g
    }
    # The same for a build, which has one row for each of its sets.
    function build_gain(b, by,    r, g) {
        g = 0
        for (r = 0; r < n_all(); r += n[4] * n[5] * n[6]) {
            combination(r)
            if (build_of() == b) g += gain(3, by)
        }
        return g
    }
    function superfluous(b) {
        build_gain(b, -1)
        if (build_gain(b, 0) == 0) return 1
        build_gain(b, 1)
        return 0
    }
    function choose_builds(    i, r, best, g, n_builds, order) {
        n_builds = split(made, order, ";")
        for (i = 1; i <= n_builds; i++) build_gain(order[i], 1)
        do {
            best = 0
            for (r = 0; r < n_all(); r += n[4] * n[5] * n[6]) {
                combination(r)
                b = build_of()
                g = build_gain(b, 0)
                combination(r)
                if (g > best) { best = g; choice = b }
            }
            if (best > 0) {
                order[++n_builds] = choice
                build_gain(choice, 1)
            }
        } while (best > 0)
        for (i = 1; i <= n_builds; i++)
            if (i <= split(made, exists, ";") || !superfluous(order[i]))
                build[order[i]] = 1
    }
    BEGIN {
        load()
        choose_builds()
        split("", seen)
        do {
            best = 0
            for (r = 0; r < n_all(); r++) {
                combination(r)
                if (!(build_of() in build)) continue
                g = gain(6, 0)
                if (g > best) { best = g; choice = r }
            }
            if (best > 0) { combination(choice); gain(6, 1); print text() }
        } while (best > 0)
    }'
}

# Counts anew, by the lines alone.
covered() {
    with_levels '
    BEGIN { load() }
    NF >= 6 {
        for (f = 1; f < 6; f++)
            for (h = f + 1; h <= 6; h++) seen[f, $f, h, $h] = 1
    }
    END {
        for (f = 1; f < 6; f++)
            for (h = f + 1; h <= 6; h++) {
                for (i = 1; i <= n[f]; i++)
                    for (j = 1; j <= n[h]; j++) {
                        total++
                        if ((f, level[f, i], h, level[h, j]) in seen) { found++; continue }
                        print "no run has " name[f] " " level[f, i] \
                            " and " name[h] " " level[h, j]
                    }
            }
        print "pairs: " found + 0 " of " total + 0 " are in these runs"
        exit found != total
    }' "$1"
}

# Does the output name what was asked for, and hold the kept digests?
judge() {
    awk -v asked="$1" '
    BEGIN {
        split(asked, a, " ")
        loop = a[6] == "loop"
        wanted = a[3] " " (loop ? "- 0" : a[5] " " a[4]) " " \
            (loop ? "loop captured" : "cpu " a[6])
    }
    /^#/ { next }
    FNR == NR { kept[++n] = $0; next }
    {
        if ($1 " " $2 " " $3 " " $4 != kept[++found]) {
            print "digests: " $1 " " $2 " " $3 " " $4 "; kept: " kept[found]
            bad = 1
        }
        if ($5 " " $6 " " $7 " " $8 " " $9 != wanted) {
            print $1 " " $2 " ran as " $5 " " $6 " " $7 " " $8 " " $9 \
                "; asked for " wanted
            bad = 1
        }
    }
    END {
        if (n == 0 || found != n) {
            print found + 0 " digests, but " n + 0 " are kept"
            bad = 1
        }
        exit bad
    }' "$kept" "$2"
}

# Runs a combination in its build and prints its line.
one() { # one <number> <folder of builds> <combination>
    number=$1
    where=$2
    shift 2
    kind=plain
    [ "$3" = generic+fma ] && kind=fma
    folder=$(cat "$where/$1-$2-$kind")
    set -- "$1" "$2" "$3" "$4" "$5" "$6"
    [ "$3" = generic ] && GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2 &&
        export GLIBC_TUNABLES
    how="cpu --exec $6"
    [ "$6" = loop ] && how=loop
    out=$where/$number.out
    # shellcheck disable=SC2086
    TRN_CPU_ISA=${3%+fma} TRN_NUM_THREADS=$4 TRN_ENGINE=$5 \
        OMP_WAIT_POLICY=passive "$folder/trn" verify --device $how \
        >"$out" 2>"$out.err"
    status=$?
    if [ $status -eq 0 ] && judge "$*" "$out" >"$out.why"; then
        echo "$number $* equal"
    else
        echo "$number $* DIFFERS (status $status):" \
            "$(head -n 3 "$out.why" "$out.err" 2>/dev/null | tr '\n' ' ')"
        return 1
    fi
}

# Makes the builds of the combinations in $dir/rows; says what they hold.
make_builds() {
    awk '{ print $1, $2, $3 == "generic+fma" ? "fma" : "plain" }' "$dir/rows" |
        sort -u >"$dir/builds"
    while read -r compiler level kind; do
        folder=$(build "$compiler $level $kind" 2>"$dir/err" </dev/null |
            tail -n 1)
        [ -x "$folder/trn" ] || { cat "$dir/err"; return 1; }
        echo "$folder" >"$dir/$compiler-$level-$kind"
        fused=$(objdump -d --no-show-raw-insn "$folder"/kernels/generic/*.o |
            grep -c '[[:space:]]vfn\{0,1\}m\(add\|sub\)')
        echo "build: $compiler -O$level $kind: $fused fused instructions in" \
            "the generic set"
        case $kind-$fused in
        plain-0) ;;
        plain-* | fma-0) echo "build: that is not $kind"; return 1 ;;
        esac
    done <"$dir/builds"
}

header() {
    echo "make verify-$1" | sed s/all/matrix/
    date -u '+%Y-%m-%d, %H:%M UTC'
    echo "system: $(uname -s) $(uname -m), $(nproc 2>/dev/null) CPUs," \
        "C library $(getconf GNU_LIBC_VERSION 2>/dev/null || echo unknown)"
    for compiler in $COMPILERS; do
        echo "compiler: $("$compiler" --version | head -n 1)"
    done
    echo "processor: $(sed -n '/^flags/{s/.*: //p;q;}' /proc/cpuinfo 2>/dev/null |
        tr ' ' '\n' | grep -E '^(sse4_2|avx|fma|f16c|amx)' | tr '\n' ' ')"
    commit=$(git rev-parse --short HEAD 2>/dev/null) && echo "commit: $commit"
    cat "$kept"
}

run() { # run all | pairs
    dir=$(mktemp -d) || exit 1
    trap 'rm -rf "$dir"' EXIT
    header "$1"
    first=$(build "${COMPILERS%% *} 3 plain" 2>"$dir/err" | tail -n 1)
    [ -x "$first/trn" ] || { cat "$dir/err"; exit 1; }
    find_levels "$first"
    for factor in COMPILERS LEVELS SETS THREADS ENGINES WAYS; do
        eval "echo \"levels of $factor: \$$factor\""
    done
    "list_$1" >"$dir/rows"
    make_builds || exit 1
    n=$(wc -l <"$dir/rows")
    awk '{ print NR, $0 }' "$dir/rows" |
        xargs -P "$JOBS" -L 1 sh "$0" one "$dir" >"$dir/lines"
    sort -n "$dir/lines" | cut -d' ' -f2- >"$dir/sorted"
    cat "$dir/sorted"
    grep ' equal$' "$dir/sorted" | covered - || exit 1
    equal=$(grep -c ' equal$' "$dir/sorted")
    echo "$equal of $n combinations give the kept digests"
    [ "$equal" -eq "$n" ]
}

case ${1:-} in
all | pairs) run "$1" ;;
one) where=$2 && number=$3 && shift 3 && one "$number" "$where" "$@" ;;
list) list_pairs ;;
covered) covered "$2" ;;
judge) judge "$2" "$3" ;;
*) echo "usage: verify_matrix.sh all | pairs | list | covered | judge" >&2
    exit 2 ;;
esac
