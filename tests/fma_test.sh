#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs test_vmath where the C library's fma may not use hardware: the generic
# set then computes f64 by software alone, and must still give the bits of the
# other sets.  Only glibc can be told so; elsewhere this is test_vmath again.
# Prints what a cmocka program prints, for scripts/run_tests.sh.
set -u
program=${TRN_BUILD:-build}/tests/test_vmath
name=f64_fma_in_software_gives_the_bits_of_hardware
echo '[==========] Running 1 test(s).'
echo "[ RUN      ] $name"
if [ ! -x "$program" ]; then
    echo "test_vmath is not built: make test builds it"
    echo "[  SKIPPED ] $name"
elif GLIBC_TUNABLES=glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2 "$program" >/dev/null; then
    echo "[       OK ] $name"
else
    echo "[  FAILED  ] $name"
    exit 1
fi
