#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every row of include/trn/ops.def is documented: a comment that
# ends directly above the declaration of trn_<op>.  Rows without a function of
# their own are used by gradients and optimizers; a page of docs/ names them.
# The bounds of tests/math/math_bounds.def are those of docs/numerics.md, and each
# rule of that page has a line in its table of costs.
set -u
internal=' embedding_grad cross_entropy_grad cross_entropy_weighted
soft_cross_entropy flush_subnormal sgd_update
sgd_momentum_update adamw_update '

rows=$(sed -n 's/^TRN_OP([0-9]*, *\([a-z0-9_]*\).*/\1/p' include/trn/ops.def)
[ -n "$rows" ] || { echo "include/trn/ops.def: no rows found"; exit 1; }
bad=0
for op in $rows; do
    case " $(echo $internal) " in
    *" $op "*)
        grep -qw "$op" docs/*.md 2>/dev/null && continue
        echo "include/trn/ops.def: row $op: no page of docs/ names it"
        bad=1
        continue
        ;;
    esac
    cat include/trn/*.h | awk -v op="$op" '
    $0 ~ "^TRN_API .*trn_" op "\\(" {
        found = 1
        if (above ~ /\*\/$/) documented = 1
    }
    # A declaration may be broken after its type.
    $0 ~ "^ *\\**trn_" op "\\(" && above ~ /^TRN_API/ {
        found = 1
        if (two_above ~ /\*\/$/) documented = 1
    }
    { two_above = above; above = $0 }
    END { exit documented ? 0 : found ? 3 : 4 }'
    case $? in
    0) ;;
    3)
        echo "include/trn/ops.def: row $op: no comment directly above trn_$op"
        bad=1
        ;;
    *)
        echo "include/trn/ops.def: row $op: no TRN_API declaration of trn_$op"
        bad=1
        ;;
    esac
done

page=docs/numerics.md
if [ -f "$page" ]; then
    sed -n '/^## Rules/,/^## Functions/s/^### //p' "$page" >"${TMPDIR:-/tmp}/rules.$$"
    while read -r rule; do
        sed -n '/^## Cost/,/^## What/p' "$page" | grep -qF "| $rule | " && continue
        echo "$page: rule $rule: no line in the table of costs"
        bad=1
    done <"${TMPDIR:-/tmp}/rules.$$"
    rm -f "${TMPDIR:-/tmp}/rules.$$"
fi

bounds=tests/math/math_bounds.def
[ -f "$bounds" ] || exit $bad
sed -n 's/^MATH(\([a-z0-9]*\), [12], [a-z]*, \([0-9.]*\), \([0-9.]*\))$/\1 \2 \3/p' \
    "$bounds" >"${TMPDIR:-/tmp}/bounds.$$"
while read -r name f32 f64; do
    grep -q "^| $name | $f32 | [^|]* | $f64 | " docs/numerics.md && continue
    echo "docs/numerics.md: bounds of $name are not those of $bounds"
    bad=1
done <"${TMPDIR:-/tmp}/bounds.$$"
rm -f "${TMPDIR:-/tmp}/bounds.$$"
exit $bad
