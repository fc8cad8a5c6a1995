#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a PJRT plug-in for the CPU, the one that `make test-xla`
# judges by; fetches it once.
#
# Usage: xla_plugin.sh [<folder>]                             default: build/xla
# TRN_PJRT_PLUGIN, if set, is used as it is.  Else a pinned package is
# downloaded by pip and unpacked in <folder>, where it stays; nothing is
# installed.  Wheel and plug-in must have the checksums that stand here.
# Exit status: 0; 75 where no plug-in can be had, with the reason on standard
# error; 1 where one is there and is not what it should be.
set -u
folder=${1:-build/xla}

# <package> <version> <sha256 of the wheel> <plug-in in it> <sha256 of that>;
# the second is for where the first cannot be had.
packages='
lammps-jax-pjrt-cpu 0.11.2
1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1
lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
ad1309ac822b1b24d51b7f9947c7c9fa9ef5d67f390584cbc3d1fa2428fed9c2
fastatomstruct-xla-cpu 2026.6.23
88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9
fastatomstruct_xla_cpu/libpjrt_cpu.so
0a0fe56ca17be9efc7b942e89e534e5e0ad4a0f1e369b66d27b62184509015b9
'

cannot() {
    echo "no PJRT plug-in: $1" >&2
    exit 75
}
wrong() {
    echo "xla_plugin.sh: $1" >&2
    exit 1
}
has_sum() { # has_sum <sha256> <file>
    echo "$1  $2" | sha256sum --check --status
}

if [ -n "${TRN_PJRT_PLUGIN:-}" ]; then
    [ -f "$TRN_PJRT_PLUGIN" ] ||
        wrong "TRN_PJRT_PLUGIN: there is no file $TRN_PJRT_PLUGIN"
    printf '%s\n' "$TRN_PJRT_PLUGIN"
    exit 0
fi
case $(uname -s)-$(uname -m) in
Linux-x86_64) ;;
*) cannot "none is known for $(uname -s) on $(uname -m)" ;;
esac
mkdir -p "$folder" || wrong "cannot make the folder $folder"
folder=$(cd "$folder" && pwd)

# What lies under its final name has been checked before it got there.
# shellcheck disable=SC2086
set -- $packages
while [ $# -gt 0 ]; do
    if [ -f "$folder/$1-$2/$4" ]; then
        printf '%s\n' "$folder/$1-$2/$4"
        exit 0
    fi
    shift 5
done

python3 -m pip --version >/dev/null 2>&1 ||
    cannot 'python3 with pip, which downloads it, is not there'
find "$folder" -maxdepth 1 -name 'part.*' -mmin +60 -exec rm -rf {} +
temp=$(mktemp -d "$folder/part.XXXXXX") || wrong "cannot write to $folder"
trap 'rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT TERM

# fetch <the five words>: into $temp, checked; 1: it cannot be had.
fetch() {
    echo "libtrn: downloading $1 $2 (about 60 MB)" >&2
    timeout 240 python3 -m pip download --no-deps --only-binary :all: \
        --disable-pip-version-check --no-input --quiet --timeout 20 \
        --retries 2 --dest "$temp/wheel" "$1==$2" >"$temp/log" 2>&1 </dev/null ||
        return 1
    wheel=$(find "$temp/wheel" -name '*.whl' | head -n 1)
    has_sum "$3" "$wheel" || wrong "$1 $2: the wheel has another checksum"
    python3 -m zipfile -e "$wheel" "$temp/files" >"$temp/log" 2>&1 ||
        wrong "$1 $2: the wheel cannot be unpacked"
    has_sum "$5" "$temp/files/$4" ||
        wrong "$1 $2: the plug-in has another checksum"
}

# shellcheck disable=SC2086
set -- $packages
while [ $# -gt 0 ]; do
    if fetch "$@"; then
        # Another run may have been faster, with the same files.
        mv -T "$temp/files" "$folder/$1-$2" 2>/dev/null ||
            [ -f "$folder/$1-$2/$4" ] || wrong "cannot write $folder/$1-$2"
        printf '%s\n' "$folder/$1-$2/$4"
        exit 0
    fi
    rm -rf "$temp/wheel" "$temp/files"
    shift 5
done
cannot "the packages cannot be downloaded: $(grep . "$temp/log" | tail -n 1)"
