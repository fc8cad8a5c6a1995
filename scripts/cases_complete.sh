#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every row of include/trn/ops.def has a case in tests/cases.def,
# that every case belongs to a row, and that a row which takes tensors has one
# of each kind of shape that breaks loops.  The kinds:
#   odd             a dimension of 3, 5, 7 or more
#   size-1          a dimension of 1
#   empty           a dimension of 0
#   non-contiguous  transposed, sliced or expanded memory
#   broadcast       inputs of different shapes, where the class is BINARY or
#                   COMPARE
# Rows without inputs have no shapes; no other row is excused.
set -u
rows=$(sed -n 's/^TRN_OP([0-9]*, *\([a-z0-9_]*\).*/\1/p' include/trn/ops.def)
[ -n "$rows" ] || { echo "include/trn/ops.def: no rows found"; exit 1; }
bad=0
for op in $rows; do
    grep -q "^TRN_CASE($op," tests/cases.def 2>/dev/null && continue
    echo "include/trn/ops.def: row $op: no TRN_CASE in tests/cases.def"
    bad=1
done
for op in $(sed -n 's/^TRN_CASE(\([a-z0-9_]*\),.*/\1/p' tests/cases.def \
    2>/dev/null | sort -u); do
    echo "$rows" | grep -qx "$op" && continue
    echo "tests/cases.def: case $op: no such row in include/trn/ops.def"
    bad=1
done

# Rows without any case were told above.
kinds=$(awk '
FILENAME == ARGV[1] && /^TRN_OP\(/ {
    split($0, f, / *, */)
    if (f[4] + 0 > 0)
        class[f[2]] = f[3]
    next
}
/^TRN_CASE\(/ {
    op = $0
    sub(/^TRN_CASE\(/, "", op)
    sub(/,.*/, "", op)
    split($0, q, "\"")
    cases[op] = 1
    n = split(q[2], shape, " ")
    for (i = 1; i <= n; i++) {
        if (shape[i] ~ /^[tse]/)
            has[op, "non-contiguous"] = 1
        gsub(/[^0-9,]/, "", shape[i])
        if (shape[i] != shape[1])
            has[op, "broadcast"] = 1
        m = split(shape[i], size, ",")
        for (j = 1; j <= m; j++)
            if (size[j] == 0)
                has[op, "empty"] = 1
            else if (size[j] == 1)
                has[op, "size-1"] = 1
            else if (size[j] % 2 == 1)
                has[op, "odd"] = 1
    }
}
function want(op, kind) {
    if (!((op, kind) in has))
        print "tests/cases.def: row " op ": no case of the kind " kind
}
END {
    for (op in class) {
        if (!(op in cases))
            continue
        want(op, "odd")
        want(op, "size-1")
        want(op, "empty")
        want(op, "non-contiguous")
        if (class[op] == "BINARY" || class[op] == "COMPARE")
            want(op, "broadcast")
    }
}' include/trn/ops.def tests/cases.def) || bad=1
[ -z "$kinds" ] || { echo "$kinds" | sort; bad=1; }
exit $bad
