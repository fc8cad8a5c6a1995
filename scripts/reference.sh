#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the reference, as Markdown, from the table of ops and the comments of
# the public headers, which are the only places where its facts are written.
set -u

cat <<'END'
# Reference

Written by `make docs` from `include/trn/ops.def` and the public headers; edit
those, not this page.

## Ops

- **class**: which shape rule and which loop serve the row. A row of class VIEW
  moves nothing; one of class UPDATE overwrites inputs and has no output.
- **kind**: *primitive*: every device knows it. *composite*: it has a
  decomposition into primitives, and perhaps a fused kernel with the same bits.
- **attributes**: *static* ones shape the program; *value* ones are doubles,
  rounded once to the type of the computation, without a gradient.
- **gradient**: of any order, or none; and what the tape keeps of a call for it.

| id | op | class | inputs | attributes | kind | gradient | formula |
|---|---|---|---|---|---|---|---|
END
awk '
BEGIN {
    keeps["NODIFF"] = "none"
    keeps["DIFF_N"] = "keeps shapes"
    keeps["DIFF_X"] = "keeps inputs"
    keeps["DIFF_X0"] = "keeps input 0"
    keeps["DIFF_X1"] = "keeps input 1"
    keeps["DIFF_Y"] = "keeps the output"
    keeps["DIFF_XY"] = "keeps inputs and output"
}
/^TRN_ATTRS\(/ { sub(/^TRN_ATTRS\(/, ""); inside = 1; text = "" }
inside {
    text = text " " $0
    if ($0 ~ /\)\)$/ || $0 ~ /, *\)$/) {
        inside = 0
        name = text
        sub(/,.*/, "", name)
        gsub(/[ \t]/, "", name)
        sub(/^[^,]*, */, "", text)
        sub(/\)$/, "", text)
        list = ""
        while (match(text, /(STATIC|VALUE)\([^)]*\)/)) {
            part = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            kind = part ~ /^VALUE/ ? " (value)" : " (static)"
            sub(/^[A-Z]*\(([^,]*, *)?/, "", part)
            sub(/\)$/, "", part)
            list = list (list == "" ? "" : ", ") "`" part "`" kind
        }
        attrs[name] = list
    }
}
/^TRN_OP\(/ {
    formula = $0
    sub(/^[^"]*"/, "", formula)
    sub(/"[^"]*$/, "", formula)
    gsub(/\|/, "\\|", formula)
    row = $0
    sub(/^TRN_OP\(/, "", row)
    split(row, f, / *, */)
    # id name class inputs writes attributes kind gradient domain formula
    printf "| %s | `%s` | %s | %s | %s | %s | %s | %s |\n", f[1], f[2], f[3],
        f[4], attrs[f[6]], f[7] == "PRIM" ? "primitive" : "composite",
        keeps[f[8]], formula
}' include/trn/ops.def

for path in include/trn.h include/trn/*.h; do
    [ -f "$path" ] || continue
    printf '\n## %s\n\n' "${path#include/}"
    perl -0777 -ne '
        # The head paragraph is prose, all else is shown as it stands.
        my ($head) = m{\A/\*(.*?)\*/}s;
        s{\A/\*.*?\*/\s*}{}s;
        $head =~ s/^ ?\*? ?//mg;
        $head =~ s/\A.*?SPDX-License-Identifier: \S+\s*//s;
        $head =~ s/\s+\z//;
        print "$head\n";
        # Include guard, includes and attribute macros are not reference.
        s/^#(?:ifndef|define) TRN_\w*_?H\n//mg;
        s/^#endif\s*\z//m;
        s/^#include.*\n//mg;
        s/^TRN_(?:BEGIN|END)_DECLS\n//mg;
        s/^TRN_API //mg;
        s/\n{3,}/\n\n/g;
        s/\A\s+|\s+\z//g;
        print "\n```c\n$_\n```\n" if length;
    ' "$path"
done
