/* SPDX-License-Identifier: Apache-2.0
 *
 * The floating-point environment of a thread: save, set to default, restore.
 *
 * Writing a control register costs far more than reading it, so it is only
 * written when it would change.
 */
#include "libtrn/context/threads_fp.h"

#if defined(__SSE__)

#include <immintrin.h>

/* MXCSR: all exceptions masked; rounding, FTZ and DAZ bits zero. */
#define DEFAULT_CONTROL 0x1F80u
#define STATUS_BITS 0x3Fu

/* x87: all masked, 64 bits, nearest even.  We compute nothing there, but the C
 * library asks it how to round the numbers that it prints. */
#if defined(__x86_64__) || defined(__i386__)
#define DEFAULT_X87 0x037Fu

static unsigned x87_word(void)
{
    uint16_t word;
    __asm__ __volatile__("fnstcw %0" : "=m"(word));
    return word;
}

static void set_x87_word(unsigned value)
{
    const uint16_t word = (uint16_t)value;
    __asm__ __volatile__("fldcw %0" : : "m"(word));
}
#else
#define DEFAULT_X87 0u

static unsigned x87_word(void)
{
    return 0;
}

static void set_x87_word(unsigned value)
{
    (void)value;
}
#endif

void trn__fp_renew(void)
{
    unsigned now = _mm_getcsr();
    if ((now & ~STATUS_BITS) != DEFAULT_CONTROL)
        _mm_setcsr(DEFAULT_CONTROL | (now & STATUS_BITS));
    if (x87_word() != DEFAULT_X87)
        set_x87_word(DEFAULT_X87);
}

void trn__fp_enter(trn__fp_env *saved)
{
    saved->control = (uint64_t)x87_word() << 32 | _mm_getcsr();
    saved->status = 0; /* MXCSR holds both. */
    trn__fp_renew();
}

void trn__fp_leave(const trn__fp_env *saved)
{
    unsigned before = (unsigned)saved->control;
    unsigned x87 = (unsigned)(saved->control >> 32);
    if (_mm_getcsr() != before)
        _mm_setcsr(before);
    if (x87_word() != x87)
        set_x87_word(x87);
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

/* Volatile: a compiler knows nothing of modes, and would move plain arithmetic
 * out from between the two calls. */
double trn__fp_quotient(double a, double b)
{
    trn__fp_env saved;
    volatile double above = a, below = b, quotient;
    trn__fp_enter(&saved);
    quotient = above / below;
    trn__fp_leave(&saved);
    return quotient;
}

bool trn__fp_within(double x, double low, double high)
{
    trn__fp_env saved;
    volatile double value = x;
    volatile bool within;
    trn__fp_enter(&saved);
    const double v = value;
    within = v >= low && v <= high;
    trn__fp_leave(&saved);
    return within;
}
