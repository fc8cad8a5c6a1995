#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every row of include/trn/ops.def has a case in tests/cases.def,
# and that every case belongs to a row.
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
exit $bad
