#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
#
# Breaks one rule of docs/numerics.md at a time, as mutations.list says, in a
# copy of the sources under build/, and runs the tests that are named for it: a
# rule whose violation no test sees is not tested.
#
# Usage: mutations.pl check          patterns apply, page and tests agree
#        mutations.pl run [word]...  all mutations, or those whose name, rule or
#                                    file holds one of the words
# `run` ends with the number of killed mutations and the names of survivors,
# fails if there are any, and, given no words, writes docs/logs/mutations.txt.
# What does not compile is no proof, nor is a test that fails without mutation:
# both are errors.
use strict;
use warnings;
use File::Find qw(find);
use File::Path qw(make_path);
use POSIX qw(strftime);
use Time::HiRes qw(stat utime);

my ($list, $page) = ('scripts/mutations.list', 'docs/numerics.md');
my $log = 'docs/logs/mutations.txt';
my ($tree, $clean) = ('build/mutations/tree', 'build/mutations/clean');
my $limit = 300; # seconds for one test
my $cc = $ENV{CC} || 'cc';
my $bad = 0;
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL)}; # the copy's make is one of its own

sub complain { print "$_[0]\n"; $bad = 1; return }

sub slurp {
    my ($path) = @_;
    open(my $in, '<', $path) or return undef;
    local $/;
    return scalar <$in>;
}

sub spill {
    my ($path, $text) = @_;
    open(my $out, '>', $path) or die "$path: $!\n";
    print $out $text;
    close($out) or die "$path: $!\n";
}

# ---- the list ---------------------------------------------------------------

# A mutation: name, what, rule, tests [program, function], edits, touched files.
sub read_list {
    my ($m, $edit, @all, %seen);
    my $n = 0;
    open(my $in, '<', $list) or die "$list: $!\n";
    while (my $line = <$in>) {
        $n++;
        chomp $line;
        next if $line =~ /^\s*(#|$)/;
        if ($line =~ /^mutation ([a-z0-9-]+): (.+)$/) {
            $m = {name => $1, what => $2, tests => [], edits => [], touch => []};
            complain("$list:$n: $1 is there twice") if $seen{$1}++;
            push @all, $m;
            $edit = undef;
        } elsif (!$m) {
            complain("$list:$n: belongs to no mutation");
        } elsif ($line =~ /^rule (.+)$/) {
            $m->{rule} = $1;
        } elsif ($line =~ /^test (\S+) (.+)$/) {
            push @{$m->{tests}}, [$1, $2];
        } elsif ($line =~ /^touch (\S+)$/) {
            push @{$m->{touch}}, $1;
        } elsif ($line =~ /^file (\S+)$/) {
            push @{$m->{edits}}, $edit = {file => $1, times => 1};
        } elsif ($edit && $line =~ /^(?:times (\d+)|([-+])(?: (.*))?)$/) {
            my ($times, $side, $text) = ($1, $2, defined $3 ? $3 : '');
            # Old text after new text: another edit of the same file.
            if ((defined $times || $side eq '-') && defined $edit->{'+'}) {
                $edit = {file => $edit->{file}, times => 1};
                push @{$m->{edits}}, $edit;
            }
            if (defined $times) {
                $edit->{times} = $times;
            } else {
                $edit->{$side} = defined $edit->{$side}
                    ? "$edit->{$side}\n$text" : $text;
            }
        } else {
            complain("$list:$n: not understood: $line");
        }
    }
    for my $each (@all) {
        complain("$list: $each->{name}: no rule, no test or no edit")
            unless $each->{rule} && @{$each->{tests}} && @{$each->{edits}};
    }
    return @all;
}

# Old text as a pattern: white space is any white space, as a line may be broken.
sub pattern {
    my ($text) = @_;
    return join '\s+', map { quotemeta } split ' ', $text;
}

# The mutated text of a mutation's files, from the folder `from`.
sub mutate {
    my ($m, $from) = @_;
    my %text;
    for my $e (@{$m->{edits}}) {
        my $file = $e->{file};
        $text{$file} = slurp("$from/$file") unless defined $text{$file};
        if (!defined $text{$file}) {
            complain("$list: $m->{name}: there is no $file");
            return undef;
        }
        if (!defined $e->{'-'} || !defined $e->{'+'} || $e->{'-'} eq $e->{'+'}) {
            complain("$list: $m->{name}: an edit of $file changes nothing");
            return undef;
        }
        my $old = pattern($e->{'-'});
        my $found = () = $text{$file} =~ /$old/g;
        if ($found != $e->{times}) {
            complain("$list: $m->{name}: its text is $found times in $file, "
                . "expected $e->{times}: " . (split /\n/, $e->{'-'})[0]);
            return undef;
        }
        $text{$file} =~ s/$old/$e->{'+'}/g;
    }
    return \%text;
}

# ---- check: the list, the page and the tests agree --------------------------

sub has_function {
    my ($program, $function) = @_;
    if ($program =~ /\.sh$/) {
        my $script = slurp("tests/$program");
        return defined $script && $script =~ /\b\Q$function\E\b/;
    }
    my $path = (grep { -f } "tests/$program.c", "tests/xla/$program.c")[0];
    return defined $path && slurp($path) =~ /^[^\n]*\b\Q$function\E\(/m;
}

# The page's rules: headings of level 3 below "## Rules".
sub read_page {
    my $text = slurp($page);
    my %rules;
    if (!defined $text) {
        complain("$page: is not there");
        return \%rules;
    }
    while ($text =~ /`(test_\w+|\w+_test\.sh)`\s+\(([^)]*)\)/g) {
        my ($program, $functions) = ($1, $2);
        for my $f (split /[,\s]+/, $functions) {
            complain("$page: tests/ has no $program with $f")
                unless has_function($program, $f);
        }
    }
    my ($part) = $text =~ /^## Rules\b(.*?)(?=^## |\z)/ms;
    my @parts = split /^### /m, defined $part ? $part : '';
    shift @parts;
    for my $rule (@parts) {
        my ($name, $body) = $rule =~ /^([^\n]*)\n(.*)/s;
        my ($tests) = $body =~ /^- Tests: (.*?)(?=^- |\z)/ms;
        my ($names) = $body =~ /^- Mutations: (.*?)(?=^- |\z)/ms;
        complain("$page: rule $name: names no tests") unless $tests;
        $rules{$name} = {
            tests => defined $tests ? $tests : '',
            mutations => {map { $_ => 1 } ($names || '') =~ /`([a-z0-9-]+)`/g},
        };
    }
    return \%rules;
}

sub check_rule {
    my ($m, $rules) = @_;
    my $rule = $rules->{$m->{rule}};
    if (!$rule) {
        complain("$list: $m->{name}: $page has no rule $m->{rule}");
        return;
    }
    complain("$page: rule $m->{rule}: does not name its mutation $m->{name}")
        unless delete $rule->{mutations}{$m->{name}};
    $rule->{n}++;
    for my $t (@{$m->{tests}}) {
        my ($program, $function) = @$t;
        if ($program eq 'instructions') {
            complain("$page: rule $m->{rule}: does not name `make instructions`")
                unless $rule->{tests} =~ /`make instructions`/;
            next;
        }
        complain("$list: $m->{name}: tests/ has no $program with $function")
            unless has_function($program, $function);
        complain("$page: rule $m->{rule}: does not name the test $function")
            unless $rule->{tests} =~ /\b\Q$function\E\b/;
    }
}

sub check {
    my @mutations = @_;
    my $rules = read_page();
    for my $m (@mutations) {
        check_rule($m, $rules);
        mutate($m, '.');
    }
    for my $name (sort keys %$rules) {
        complain("$page: rule $name: has no mutation") unless $rules->{$name}{n};
        complain("$page: rule $name: $list has no mutation $_ of it")
            for sort keys %{$rules->{$name}{mutations}};
    }
}

# ---- run --------------------------------------------------------------------

# Brings the copy up to date, without touching what is the same.
sub copy_sources {
    my %keep;
    my $copy = sub {
        (my $path = $_) =~ s{^\./}{};
        return unless -f $_ && !-l $_;
        my ($text, $to) = (slurp($_), "$tree/$path");
        $keep{$path} = 1;
        my $have = slurp($to);
        return if defined $have && $have eq $text;
        (my $folder = $to) =~ s{/[^/]*$}{};
        make_path($folder);
        spill($to, $text);
        chmod((stat $_)[2] & 07777, $to);
    };
    find({wanted => $copy, no_chdir => 1}, 'Makefile', 'include', 'libtrn',
        'kernels', 'backends', 'tools', 'examples', 'tests', 'bench', 'scripts');
    my $drop = sub {
        if ($_ eq "$tree/build") { $File::Find::prune = 1; return }
        (my $path = $_) =~ s{^\Q$tree\E/}{};
        unlink $_ if -f $_ && !$keep{$path};
    };
    find({wanted => $drop, no_chdir => 1}, $tree);
}

# Builds these programs in the copy; the build folder's name, or undef.
sub build {
    my @programs = @_;
    my $make = $ENV{MAKE} || 'make';
    my %names = map { $_ => 1 } grep { /^test_/ } @programs;
    my %parts = ('libtrn.a' => 1, 'trn-loop.so' => 1);
    for (@programs) {
        $names{test_vmath} = 1 if $_ eq 'fma_test.sh';
        $parts{'libtrn.so'} = 1 if $_ eq 'instructions';
        $parts{trn} = 1 if $_ eq 'test_verify' || $_ eq 'test_trn_program';
    }
    my $t = join ' ', map { s/^test_//r } sort keys %names;
    my $p = join ' ', sort keys %parts;
    my $out = qx(cd $tree && $make --no-print-directory mutation-build LINKS=no \\
        CC="$cc" MUTATE="$t" PARTS="$p" 2>../build.txt);
    return undef if $? != 0;
    return $out =~ /^build-folder: (\S+)$/m ? $1 : die "no build folder\n";
}

# path => size and time of change, finer than a second
sub files_below {
    my ($folder) = @_;
    my %files;
    find({no_chdir => 1, wanted => sub {
        return if -l $_ || !-f $_;
        my @s = stat $_;
        $files{substr $_, 1 + length $folder} = "$s[7] $s[9]";
    }}, $folder) if -d $folder;
    return \%files;
}

# Makes the files of the folder `to` those of `from`, times included.
sub mirror {
    my ($from, $to) = @_;
    my ($want, $have) = (files_below($from), files_below($to));
    for my $path (keys %$have) {
        unlink "$to/$path" unless $want->{$path};
    }
    for my $path (keys %$want) {
        next if defined $have->{$path} && $have->{$path} eq $want->{$path};
        (my $folder = "$to/$path") =~ s{/[^/]*$}{};
        make_path($folder);
        system('cp', '-p', "$from/$path", "$to/$path") == 0
            or die "$to/$path: not copied\n";
    }
}

# Runs one test: '' if it passed, else the first line of its message; undef if
# it did neither.
sub fails {
    my ($b, $program, $function) = @_;
    my ($out, $err) = ('build/mutations/out.txt', 'build/mutations/err.txt');
    my $cd = "cd $tree && export TRN_BUILD=\$PWD/$b TRN_LOOP_PATH=\$PWD/$b/trn-loop.so";
    my $to = '>../out.txt 2>../err.txt </dev/null';
    if ($program eq 'instructions') {
        system("$cd && timeout $limit sh scripts/instructions.sh $b $to");
        my @found = grep { index($_, $function) >= 0 } split /\n/, slurp($out);
        return @found ? $found[0] : '';
    }
    if ($program =~ /\.sh$/) {
        system("$cd && CC='$cc' timeout $limit sh tests/$program $to");
    } else {
        system("$cd && TRN_ONE_TEST=$function "
            . "LD_PRELOAD=\$PWD/../one_test.so timeout $limit $b/tests/$program $to");
    }
    my ($said, $how) = (slurp($err), slurp($out));
    return '' if $how =~ /^\[       OK \] \Q$function\E$/m;
    # ERROR: what was to be tidied up after the failure was not.
    return undef
        if "$how$said" !~ /^\[  (?:FAILED|ERROR ) +\] \Q$function\E$/m;
    $said = $how if $program =~ /\.sh$/;
    for my $line (split /\n/, $said) {
        $line =~ s/^\[  ERROR   \] --- //;
        next if $line =~ /^\s*$/ || $line =~ /^\[/ || $line =~ /: [0-9.]+ s$/;
        return $line;
    }
    return 'failed';
}

# cmocka can run one test of a program, but only if the program says so.
sub make_filter {
    spill('build/mutations/one_test.c', <<'END');
#include <stdlib.h>
void cmocka_set_test_filter(const char *name) __attribute__((weak));
__attribute__((constructor)) static void one_test(void)
{
    if (cmocka_set_test_filter)
        cmocka_set_test_filter(getenv("TRN_ONE_TEST"));
}
END
    system("$cc -shared -fPIC -o build/mutations/one_test.so "
        . 'build/mutations/one_test.c') == 0 or die "one_test.c: not built\n";
}

sub baseline {
    my @mutations = @_;
    my (%programs, %tests);
    for my $m (@mutations) {
        for my $t (@{$m->{tests}}) {
            $programs{$t->[0]} = 1;
            $tests{"@$t"} = $t;
        }
    }
    my $b = build(sort keys %programs);
    die slurp('build/mutations/build.txt') . "the sources do not build\n"
        unless defined $b;
    for my $key (sort keys %tests) {
        my $failed = fails($b, @{$tests{$key}});
        next if defined $failed && $failed eq '';
        complain("without a mutation, $key: "
            . (defined $failed ? $failed : 'neither passes nor fails'));
    }
    mirror("$tree/$b", $clean);
    return $b;
}

# Applies m, tests, takes it back.  The line of the log; dies if it proves
# nothing.
sub try_mutation {
    my ($m, $b) = @_;
    my $text = mutate($m, $tree) or return undef;
    my (%before, @result);
    for my $file (keys %$text, @{$m->{touch}}) {
        $before{$file} = [slurp("$tree/$file"), (stat "$tree/$file")[9]];
        my $new = defined $text->{$file} ? $text->{$file} : $before{$file}[0];
        spill("$tree/$file", $new);
    }
    my $built = build(map { $_->[0] } @{$m->{tests}});
    if (!defined $built) {
        my @errors = grep { /error|undefined/ }
            split /\n/, slurp('build/mutations/build.txt');
        complain("$m->{name}: does not compile: " . ($errors[0] || '?'));
    } else {
        @result = map { [@$_, scalar fails($built, @$_)] } @{$m->{tests}};
    }
    for my $file (keys %before) {
        spill("$tree/$file", $before{$file}[0]);
        utime($before{$file}[1], $before{$file}[1], "$tree/$file");
    }
    mirror($clean, "$tree/$b");
    return defined $built ? \@result : undef;
}

sub head_of_log {
    my ($compiler) = split /\n/, qx($cc --version);
    return strftime("%Y-%m-%d\n", gmtime) . "$compiler\n\n";
}

sub run {
    my ($words, @mutations) = @_;
    if (@$words) {
        @mutations = grep {
            my $m = $_;
            my $all = join ' ', $m->{name}, $m->{rule},
                map { $_->{file} } @{$m->{edits}};
            grep { index($all, $_) >= 0 } @$words;
        } @mutations;
    }
    my (@survivors, $text);
    my ($killed, $start) = (0, time);
    mutate($_, '.') for @mutations; # a pattern that is lost is known at once
    exit 1 if $bad || !@mutations;
    make_path($tree);
    copy_sources();
    make_filter();
    my $b = baseline(@mutations);
    exit 1 if $bad;
    $text = head_of_log();
    $| = 1;
    for my $m (@mutations) {
        my $at = time;
        my $result = try_mutation($m, $b) or next;
        my $files = join ' ', do {
            my %s; grep { !$s{$_}++ } map { $_->{file} } @{$m->{edits}} };
        my $report = "$m->{name}: $m->{what}\n  rule $m->{rule}; $files\n";
        my $survives = 0;
        for my $r (@$result) {
            my ($program, $function, $message) = @$r;
            my $ok = defined $message && $message ne '';
            $survives = 1 unless $ok;
            $message = !defined $message ? 'NEITHER PASSED NOR FAILED'
                : $ok ? $message : 'PASSED';
            $report .= sprintf "  %s %s: %s\n", $program, $function,
                length $message > 120 ? substr($message, 0, 117) . '...' : $message;
        }
        $survives ? push(@survivors, $m->{name}) : $killed++;
        print $report, sprintf("  %d s%s\n", time - $at,
            $survives ? ', SURVIVES' : '');
        $text .= $report;
    }
    my $end = sprintf "%d mutations, %d killed, %d survivors%s\n",
        scalar @mutations, $killed, scalar @survivors,
        @survivors ? ": @survivors" : '';
    $end .= sprintf "%d minutes\n", (time - $start + 59) / 60;
    print $end;
    $bad = 1 if $killed != @mutations;
    spill($log, "$text\n$end") unless @$words || $bad;
}

my ($command, @words) = @ARGV;
$command = '' unless defined $command;
die "usage: mutations.pl check | run [word]...\n" if $command !~ /^(check|run)$/;
my @mutations = read_list();
exit 1 if $bad;
$command eq 'check' ? check(@mutations) : run(\@words, @mutations);
exit $bad;
