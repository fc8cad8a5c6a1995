#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks for calls that the library may not make (allocation goes through the
# context's hook, nothing prints, ends the process or depends on the locale)
# and for what does not belong in a comment.
set -u
here=$(cd "$(dirname "$0")" && pwd)

memory='malloc|calloc|realloc|free|aligned_alloc|posix_memalign|strdup'
unsafe='sprintf|vsprintf|strcpy|strcat|strtok|atoi|atof|rand'
library="$unsafe|abort|exit|_exit|signal|setenv|putenv|setlocale|printf|fprintf"
library="$library|vprintf|vfprintf|puts|fputs|perror|strtod|time|alloca"

# calls <file> <pattern>: prints banned calls; a struct's field is no call.
calls() {
    perl "$here/strip_c.pl" "$1" | perl -ne '
        BEGIN { ($file, $names) = splice @ARGV, 0, 2 }
        while (/(?<![\w.])(?<!->)($names)\s*\(/g) {
            print "$file:$.: banned call of $1\n";
        }' "$1" "$2"
}

found=$(
    find include libtrn kernels backends tools examples tests bench \
        -name '*.[ch]' 2>/dev/null | sort | while read -r file; do
        case $file in
        libtrn/context/memory.c) calls "$file" "$library" ;;
        libtrn/* | kernels/* | backends/*) calls "$file" "$library|$memory" ;;
        *) calls "$file" "$unsafe" ;;
        esac
        perl -ne '
            BEGIN { $file = shift @ARGV }
            print "$file:$.: code under #if 0\n" if /^\s*#\s*if\s+0\b/;
            print "$file:$.: $1 without an issue number\n"
                if /\b(TODO|FIXME|XXX)\b/ && !/#\d+/;
            print "$file:$.: author named in the file\n"
                if /\@author|\bauthors?\s*:|written by\b|\bcopyright\b/i
                || /[\w.]+\@[\w-]+\.[a-z]{2,}/;
            print "$file:$.: no SPDX line\n"
                if $. == 1
                && !m{^/\* SPDX-License-Identifier: Apache-2\.0};
        ' "$file" <"$file"
    done
)
[ -z "$found" ] && exit 0
echo "$found"
exit 1
