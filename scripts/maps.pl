#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Writes the map of each folder, <folder>/README.md: a line per file, from the
# first sentence of the file's head comment.
#
# Usage: maps.pl write | check       check: fails where a map is not current
use strict;
use warnings;

# What a folder is, and where to read on; a subfolder has a line of its own.
my %about = (
    'include' => 'Public headers, whose comments are the manual; `trn.h` pulls '
        . 'in all but those for devices. See the [reference](../docs/reference.md).',
    'include/trn' => '',
    'libtrn' => 'The core. Its folders stand in an order, and each may include '
        . 'only those before it: `context < tensor < graph < dispatch < ops < '
        . 'autograd < nn < optim < data < io`. See [architecture]'
        . '(../docs/architecture.md).',
    'libtrn/context' => 'options, error, memory, threads, counters',
    'libtrn/tensor' => 'descriptors, storages, scopes, data in and out',
    'libtrn/graph' => 'steps as graphs, their passes and plan; the tape as data',
    'libtrn/dispatch' => 'from a call to a device; devices in shared objects',
    'libtrn/ops' => 'the op table, the ops by family, the step: eager, traced, '
        . 'in flight',
    'libtrn/autograd' => 'walks over the tape',
    'libtrn/nn' => 'modules and layers',
    'libtrn/optim' => 'optimizers, schedules, clipping',
    'libtrn/data' => 'loaders, files, text, digests',
    'libtrn/io' => 'checkpoints: what is saved, the file, replacing a file',
    'kernels' => 'Loops over contiguous data, by instruction set. `generic` is '
        . 'complete; another set replaces what it does better, with the same '
        . 'bits. See [numerics](../docs/numerics.md).',
    'kernels/generic' => 'plain C, for every processor',
    'kernels/avx2' => 'x86-64 with AVX2, FMA and F16C',
    'backends' => 'Devices. None includes a header of `libtrn/`. See '
        . '[devices](../docs/devices.md).',
    'backends/cpu' => 'the CPU: walks operands, cuts work, calls kernels',
    'backends/hlo' => 'a graph as a module of XLA\'s HLO, for every device whose '
        . 'compiler takes that; `hlo.proto` describes the bytes',
    'backends/loop' => 'a test device for whole steps: its own shared object, '
        . 'asynchronous, out of the host\'s reach; fails on request',
    'backends/pjrt' => 'whole steps on any OpenXLA PJRT plug-in',
    'tools' => 'The `trn` program.',
    'examples' => 'Complete programs; `make` builds them in `build/examples/`. '
        . 'See [usage](../docs/usage.md).',
    'tests' => 'cmocka programs (`test_*.c`) and scripts (`*_test.sh`), found by '
        . 'wildcard. `make test T=name` runs `test_name.c` or `name_test.sh`. '
        . 'How ops are tested: [add an op](../docs/add-an-op.md).',
    'tests/math' => 'the functions of the kernels and what judges them; `make '
        . 'test-math`. See [numerics](../docs/numerics.md).',
    'tests/plugins' => 'devices that the tests load: an old, a smaller and a '
        . 'larger table, and broken ones',
    'bench' => 'The benchmark suite.',
    'scripts' => 'Checks, set-up and generators behind the Makefile; each says '
        . 'its rule in its head.',
);
my @folders = grep { !m{/} } sort keys %about;

sub slurp {
    my ($path) = @_;
    open(my $in, '<', $path) or return '';
    local $/;
    return scalar <$in>;
}

# The first sentence of the comment after the SPDX line.
sub sentence {
    my ($path) = @_;
    my (@words, $head);
    for (split /\n/, slurp($path)) {
        if (!$head) { $head = /SPDX-License-Identifier/; next }
        last unless m{^ ?[*#]};
        s{^ ?[*#]\s*}{};
        my $end = s{\*?/\s*$}{} || ($_ eq '' && @words);
        push @words, split;
        last if $end;
    }
    my $text = join ' ', @words;
    $text =~ s/(?<!\be\.g)\.(?:\s.*)?$//s;
    $text =~ s/([|<>*_])/\\$1/g;
    return $text;
}

sub files {
    my ($folder) = @_;
    my @files = grep { -f && /\.(c|h|def|sh|pl|mk)$/ } glob "$folder/*";
    return map { "| [" . s{.*/}{}r . "](TOP$_) | " . sentence($_) . " |\n" }
        sort @files;
}

sub map_of {
    my ($top) = @_;
    my $text = "# $top/\n\n$about{$top}\n\n<!-- Written by `make docs` from the"
        . " heads of the files. -->\n";
    my @rows = files($top);
    $text .= "\n| file | what |\n|---|---|\n" . join('', @rows) if @rows;
    my %place = (context => 1, tensor => 2, graph => 3, dispatch => 4, ops => 5,
                 autograd => 6, nn => 7, optim => 8, data => 9,
                 io => 10);
    my $rank = sub { $place{ $_[0] =~ s{.*/}{}r } // 0 };
    my @subs = sort { $rank->($a) <=> $rank->($b) || $a cmp $b }
        grep { -d } glob "$top/*";
    for my $sub (@subs) {
        my @rows = files($sub) or next;
        my $what = $about{$sub} // '';
        $text .= "\n## " . ($sub =~ s{.*/}{}r) . ($what ? ": $what" : '')
            . "\n\n| file | what |\n|---|---|\n" . join('', @rows);
    }
    return $text =~ s/\(TOP\Q$top\E\//(/gr;
}

my $bad = 0;
my $mode = $ARGV[0] // 'check';
for my $top (@folders) {
    next unless grep { -f } glob "$top/*.[chdps]* $top/*/*.[ch]";
    my ($path, $text) = ("$top/README.md", map_of($top));
    next if slurp($path) eq $text;
    if ($mode eq 'write') {
        open(my $out, '>', $path) or die "$path: $!\n";
        print $out $text;
        close $out or die "$path: $!\n";
    } else {
        print "$path: is not current; `make docs` writes it\n";
        $bad = 1;
    }
}
exit $bad;
