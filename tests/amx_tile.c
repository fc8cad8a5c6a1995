/* SPDX-License-Identifier: Apache-2.0
 *
 * The tile instruction TDPBF16PS: asking for it, and one block of a product.
 *
 * The file is compiled with the flags of tiles where the compiler has them; the
 * processor and the system are asked before anything else here runs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* for syscall */
#endif
#include "amx_tile.h"

#if defined(TRN_HAVE_AMX) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <unistd.h>

enum {
    ARCH_PRCTL = 158,             /* the system call, on x86-64 */
    ARCH_REQ_XCOMP_PERM = 0x1023, /* asks for a part of the state */
    XFEATURE_XTILEDATA = 18,      /* the part: the tiles */
    AMX_BF16 = 1 << 22,           /* of leaf 7, register edx */
    AMX_TILE = 1 << 24,
};

const char *amx_missing(void)
{
    unsigned a, b, c, d = 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
        (d & (unsigned)AMX_BF16) == 0 || (d & (unsigned)AMX_TILE) == 0)
        return "this processor has no AMX tiles of bf16";
    if (syscall(ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) != 0)
        return "the system does not let this process use AMX tiles";
    return 0;
}

/* Palette 1: three tiles of 16 rows of 64 bytes. */
void amx_block(const uint16_t *a, const uint16_t *b, float *c)
{
    uint8_t config[64] = {1};
    for (int tile = 0; tile < 3; tile++) {
        config[16 + 2 * tile] = 64;
        config[48 + tile] = 16;
    }
    _tile_loadconfig(config);
    _tile_loadd(0, c, 64);
    _tile_loadd(1, a, 64);
    _tile_loadd(2, b, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, c, 64);
    _tile_release();
}
#else
const char *amx_missing(void)
{
    return "this compiler or system has no AMX tiles";
}

void amx_block(const uint16_t *a, const uint16_t *b, float *c)
{
    (void)a;
    (void)b;
    (void)c;
}
#endif
