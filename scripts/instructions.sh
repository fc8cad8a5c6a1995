#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks the object code for what would make bits depend on the machine:
# approximations whose bits the vendor chooses, contraction in the generic set
# (which must run, with the same bits, without hardware FMA), and mathematics
# of the C library, of which only fma is exact on every system.
#
# Usage: instructions.sh <build folder>
set -u
b=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
bad=0

find "$b/libtrn" "$b/kernels" "$b/backends" -name '*.o' 2>/dev/null |
    sort >"$dir/objects"
[ -s "$dir/objects" ] || { echo "$b: no objects of the library"; exit 1; }
while read -r object; do
    objdump -d --no-show-raw-insn "$object" | awk -v file="$object" '
    function complain(why) {
        if (!((why $2) in seen)) print file ": " $2 ": " why
        seen[why $2] = 1
        bad = 1
    }
    $1 !~ /:$/ { next }
    $2 ~ /^v?(rcp|rsqrt)(p|s)[sh]/ { complain("approximation by the vendor") }
    $2 ~ /^v(rcp|rsqrt)(14|28)/ { complain("approximation by the vendor") }
    $2 ~ /^vdpbf16ps/ { complain("order of additions by the vendor") }
    $2 ~ /^(bfdot|bfmmla|frecpe|frsqrte)/ { complain("bits by the vendor") }
    $2 ~ /^v?fn?m(add|sub)/ && file !~ /kernels\/(avx2|avx512|neon)\// {
        complain("fused outside the sets that have FMA")
    }
    END { exit bad }' || bad=1
done <"$dir/objects"

# The names of math.h, each also with f and l; classification is not there.
cat >"$dir/math" <<'END'
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp
exp10 exp2 expm1 fabs fdim floor fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp
lgamma lgamma_r llrint llround log log10 log1p log2 logb lrint lround modf
nearbyint nextafter nexttoward pow pow10 remainder remquo rint round roundeven
scalb scalbln scalbn significand sin sincos sinh sqrt tan tanh tgamma trunc y0
y1 yn drem gamma finite cexp clog cpow csqrt csin ccos ctan cabs carg
END
imports() {
    awk -v file="$1" '
    FNR == NR {
        for (i = 1; i <= NF; i++) {
            math[$i] = math[$i "f"] = math[$i "l"] = 1
            math["__" $i "_finite"] = math["__" $i "f_finite"] = 1
        }
        math["fmaf"] = math["fmal"] = 1
        next
    }
    {
        name = $NF
        sub(/@.*/, "", name)
        # libmvec: _ZGVbN4v_sinf
        if ((name in math || name ~ /^_ZGV/) && !(name in seen)) {
            print file ": imports " name "; expected fma alone"
            seen[name] = bad = 1
        }
    }
    END { exit bad }' "$dir/math" "$2"
}
for library in "$b/libtrn.so" "$b/libtrn.a"; do
    [ -f "$library" ] || continue
    case $library in *.so) dynamic=-D ;; *) dynamic= ;; esac
    # shellcheck disable=SC2086
    nm $dynamic --undefined-only "$library" 2>/dev/null | grep ' U ' >"$dir/nm"
    imports "$library" "$dir/nm" || bad=1
done
exit $bad
