#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what a target needs and the machine lacks (Debian, Ubuntu).
#
# Usage: CC=... deps.sh demo | test | xla | check
# Without apt or the right to use it, prints what to install and goes on as
# long as there is a compiler: every library is optional in the build.
set -u
level=${1:-check}
compiler=${CC:-cc}
# OpenMP's part comes with gcc.
want='zlib1g-dev libhdf5-dev libprotobuf-c-dev protobuf-c-compiler'
command -v "${compiler%% *}" >/dev/null 2>&1 || want="gcc libc6-dev $want"
case $level in
demo) ;;
test) want="$want libcmocka-dev libmpfr-dev libjansson-dev libopenblas-dev cmake pkgconf g++" ;;
xla)
    want="$want libcmocka-dev libmpfr-dev libjansson-dev libopenblas-dev"
    # Only what xla_plugin.sh would miss.
    [ -n "${TRN_PJRT_PLUGIN:-}" ] ||
        python3 -m pip --version >/dev/null 2>&1 || want="$want python3-pip"
    ;;
check)
    want="$want libcmocka-dev libmpfr-dev libjansson-dev libopenblas-dev
        g++ clang clang-format clang-tidy cppcheck valgrind libomp-dev"
    ;;
*)
    echo "deps.sh: unknown level '$level'; expected demo, test, xla or check" >&2
    exit 2
    ;;
esac

works() {
    dir=$(mktemp -d) || return 1
    echo 'int main(void) { return 0; }' >"$dir/p.c"
    # shellcheck disable=SC2086
    $compiler -o "$dir/p" "$dir/p.c" 2>"$dir/log"
    status=$?
    [ $status -eq 0 ] || cat "$dir/log" >&2
    rm -rf "$dir"
    return $status
}
give_up() {
    echo "libtrn: $1; please install what is missing of:" >&2
    echo "   " $want "(names of Debian's packages)" >&2
    if works; then
        exit 0
    fi
    echo "libtrn: the compiler '$compiler' does not work" >&2
    exit 1
}

if ! command -v apt-get >/dev/null 2>&1 ||
    ! command -v dpkg-query >/dev/null 2>&1; then
    # A machine set up once by its owner should not be told so every time.
    [ -f build/deps-told-"$level" ] && works && exit 0
    mkdir -p build && : >build/deps-told-"$level"
    give_up 'not a Debian or Ubuntu system'
fi

missing=
for package in $want; do
    state=$(dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
        grep -x installed | head -n 1)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        want=$missing
        give_up 'not root, and there is no sudo'
    }
    as_root=sudo
fi
echo "libtrn: installing$missing"
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq \
        -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@" </dev/null
}
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if apt update >"$log" 2>&1 &&
    apt install -y --no-install-recommends $missing >>"$log" 2>&1; then
    rm -f build/config-*.mk # asked again, now that there is more to find
    exit 0
fi
tail -n 20 "$log" >&2
want=$missing
give_up 'apt-get failed'
