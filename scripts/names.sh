#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks linkable names: exported ones start with trn_ and one underscore, all
# others with trn__, so that a leak shows and no user's name is taken.
#
# Usage: names.sh <libtrn.a>
set -u
table=$(readelf -sW "$1") || exit 1
printf '%s\n' "$table" | awk '
/^File: / { file = $2; next }
$5 == "GLOBAL" || $5 == "WEAK" || $5 == "UNIQUE" {
    if ($7 == "UND" || $8 == "") next
    n++
    name = $8
    if ($6 == "DEFAULT" && name !~ /^trn_[a-z]/) {
        print file ": exported " name " is not named trn_..."; bad = 1
    }
    if ($6 != "DEFAULT" && name !~ /^trn__[a-z]/) {
        print file ": internal " name " is not named trn__..."; bad = 1
    }
}
END {
    if (!n) { print "no symbols found"; bad = 1 }
    exit bad
}'
