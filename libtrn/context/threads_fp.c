/* SPDX-License-Identifier: Apache-2.0
 *
 * The floating-point environment of a thread: save, set to default, restore.
 *
 * Writing the control register costs far more than reading it, so it is only
 * written when it would change.
 */
#include "libtrn/context/threads_fp.h"

#if defined(__SSE__)

#include <immintrin.h>

/* MXCSR: all exceptions masked; rounding, FTZ and DAZ bits zero. */
#define DEFAULT_CONTROL 0x1F80u
#define STATUS_BITS 0x3Fu

void trn__fp_renew(void)
{
    unsigned now = _mm_getcsr();
    if ((now & ~STATUS_BITS) != DEFAULT_CONTROL)
        _mm_setcsr(DEFAULT_CONTROL | (now & STATUS_BITS));
}

void trn__fp_enter(trn__fp_env *saved)
{
    saved->control = _mm_getcsr();
    saved->status = 0; /* MXCSR holds both. */
    trn__fp_renew();
}

void trn__fp_leave(const trn__fp_env *saved)
{
    unsigned before = (unsigned)saved->control;
    if (_mm_getcsr() != before)
        _mm_setcsr(before);
}

bool trn__fp_is_default(void)
{
    return (_mm_getcsr() & ~STATUS_BITS) == DEFAULT_CONTROL;
}

#elif defined(__aarch64__)

static uint64_t read_fpcr(void)
{
    uint64_t value;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(value));
    return value;
}

static uint64_t read_fpsr(void)
{
    uint64_t value;
    __asm__ __volatile__("mrs %0, fpsr" : "=r"(value));
    return value;
}

/* FPCR 0 is nearest even, no flush to zero, no traps, no alternate modes. */
void trn__fp_renew(void)
{
    if (read_fpcr() != 0)
        __asm__ __volatile__("msr fpcr, %0" : : "r"(UINT64_C(0)) : "memory");
}

void trn__fp_enter(trn__fp_env *saved)
{
    saved->control = read_fpcr();
    saved->status = read_fpsr();
    trn__fp_renew();
}

void trn__fp_leave(const trn__fp_env *saved)
{
    if (read_fpcr() != saved->control)
        __asm__ __volatile__("msr fpcr, %0" : : "r"(saved->control) : "memory");
    if (read_fpsr() != saved->status)
        __asm__ __volatile__("msr fpsr, %0" : : "r"(saved->status) : "memory");
}

bool trn__fp_is_default(void)
{
    return read_fpcr() == 0;
}

#else

void trn__fp_renew(void)
{
}

void trn__fp_enter(trn__fp_env *saved)
{
    saved->control = 0;
    saved->status = 0;
}

void trn__fp_leave(const trn__fp_env *saved)
{
    (void)saved;
}

bool trn__fp_is_default(void)
{
    return true;
}

#endif
