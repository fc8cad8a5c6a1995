# SPDX-License-Identifier: Apache-2.0
#
# Prints a C file without the text of its comments, strings and characters,
# line by line as it was, so that checks match code alone.
#
# Usage: perl strip_c.pl [-s] <file>     -s keeps strings (for #include lines)
use strict;
use warnings;

my $keep_strings = @ARGV > 1 && $ARGV[0] eq '-s' && shift @ARGV;
local $/;
open my $in, '<', $ARGV[0] or die "$ARGV[0]: $!\n";
my $text = <$in>;

sub blank { # keeps the newlines
    my ($s) = @_;
    $s =~ s/[^\n]//g;
    return $s;
}

$text =~ s{
    ( /\* .*? (?: \*/ | \z ) )           # 1: a comment
  | ( // [^\n]* )                        # 2: a comment to the line's end
  | ( "  (?: \\. | [^"\\\n] )* " )       # 3: a string
  | ( '  (?: \\. | [^'\\\n] )* ' )       # 4: a character
}{
    defined $1 ? ' ' . blank($1)
  : defined $2 ? ''
  : defined $3 ? ($keep_strings ? $3 : '""' . blank($3))
  :              "' '"
}gsex;
print $text;
