#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Proves docs/add-an-op.md: its blocks, applied to a copy of the tree, give an op
# that passes the generated tests; without any one of them something fails and
# names the op.
#
# A block is what stands between ``` lines after a comment
#     <!-- file: PATH after: TEXT -->      (or before: TEXT)
# and goes after (before) the one line of PATH that begins with TEXT.
# Prints what a cmocka program prints, for scripts/run_tests.sh.
# CC is the compiler; the copy is built in a folder of its own at -O1.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
page=$root/docs/add-an-op.md
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 1' HUP INT TERM
tree=$top/tree
log=$top/log
unset MAKEFLAGS MFLAGS MAKELEVEL
failed=0

begin() {
    printf '[ RUN      ] %s\n' "$1"
    name=$1
}
end() { # end <status of the case>
    if [ "$1" -eq 0 ]; then
        printf '[       OK ] %s\n' "$name"
    else
        sed "s/^/  | /" "$log" | grep -Ev "^  \|   (CC|AR|LD) "
        printf '[  FAILED  ] %s\n' "$name"
        failed=1
    fi
}

# copy: the sources as they are now, new files too, without what git ignores.
copy() {
    mkdir -p "$tree" && cd "$root" || return 1
    parts='Makefile include libtrn kernels backends scripts docs tests'
    # shellcheck disable=SC2086
    {
        git ls-files -co --exclude-standard -- $parts 2>/dev/null | grep . ||
            find $parts -type f
    } | sort -u | while read -r f; do
        if [ -f "$f" ]; then echo "$f"; fi
    done >"$top/files"
    tar -cf - -T "$top/files" | tar -xf - -C "$tree"
}

# apply <n>: all blocks but block n (0: all of them) to the files they name,
# which start from the original.  Prints the number of blocks.
apply() {
    perl - "$page" "$root" "$tree" "$1" <<'END'
use strict;
my ($page, $root, $tree, $without) = @ARGV;
my (%text, $n, $file, $where, $anchor, $block);
sub slurp {
    my ($path) = @_;
    open(my $f, '<', $path) or die "$path: $!\n";
    local $/;
    return <$f>;
}
sub insert {
    my @lines = split /^/m, $text{$file} //= slurp("$root/$file");
    my @at = grep { $lines[$_] =~ /^\s*\Q$anchor\E/ } 0 .. $#lines;
    die "add-an-op.md: $file has ", scalar @at,
        " lines that begin with '$anchor'; expected 1\n" if @at != 1;
    splice @lines, $at[0] + ($where eq 'after'), 0, $block;
    $text{$file} = join '', @lines;
}
for (split /^/m, slurp($page)) {
    if (/^<!-- file: (\S+) (after|before): (.*) -->$/) {
        ($file, $where, $anchor, $block) = ($1, $2, $3, undef);
    } elsif (/^```/ && defined $file && !defined $block) {
        $block = '';
    } elsif (/^```/ && defined $file) {
        $n++;
        if ($n == $without) { $text{$file} //= slurp("$root/$file") }
        else { insert() }
        undef $file;
    } elsif (defined $block) {
        $block .= $_;
    }
}
die "add-an-op.md: no blocks\n" unless $n;
for my $path (sort keys %text) {
    next if -f "$tree/$path" && slurp("$tree/$path") eq $text{$path};
    open(my $f, '>', "$tree/$path") or die "$tree/$path: $!\n";
    print $f $text{$path};
    close $f or die "$tree/$path: $!\n";
}
print "$n\n";
END
}

# check: what a contributor would run, on the copy.  Of the other rows one case
# each is left, which keeps this short.
check() {
    cd "$tree" || return 1
    sh scripts/docs_complete.sh && sh scripts/cases_complete.sh || return 1
    perl -ni -e 'print if !/^TRN_CASE\((\w+)/ || !$seen{$1}++ || $1 eq "'"$op"'"' \
        tests/cases.def
    # shellcheck disable=SC2086
    make --no-print-directory CC="${CC:-cc}" OPT=-O1 LINKS=no \
        B=build/add-op $programs || return 1
    for p in $programs; do
        timeout 120 "$p" && continue
        echo "$p: exit status $?" # 124: too slow
        return 1
    done
}

begin the_page_gives_an_op_that_passes_all_generated_tests
{
    copy && n=$(apply 0)
} >"$log" 2>&1
status=$?
op=$(sed -n 's/^TRN_OP([0-9]*, *\([a-z0-9_]*\),.*/\1/p' "$page" | head -n 1)
programs=
for f in "$root"/tests/test_op_*.c; do
    programs="$programs build/add-op/tests/$(basename "$f" .c)"
done
if [ $status -eq 0 ]; then
    (check) >"$log" 2>&1
    status=$?
fi
end $status
[ $failed -eq 0 ] || exit 1

# The row comes last: putting it back and forth rebuilds everything.
i=2
while :; do
    begin "without_block_${i}_something_fails_and_names_the_op"
    if ! apply "$i" >"$log" 2>&1; then
        end 1
    elif (check) >"$log" 2>&1; then
        echo "without block $i nothing failed" >>"$log"
        end 1
    elif grep -q "$op" "$log"; then
        end 0
    else
        end 1
    fi
    [ "$i" -eq 1 ] && break
    i=$((i < n ? i + 1 : 1))
done
exit $failed
