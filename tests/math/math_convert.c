/* SPDX-License-Identifier: Apache-2.0
 *
 * All f32 to bf16 and f16, in every set and by trn__convert, against the
 * nearest number of the format, ties to even.
 *
 * Inputs come in the order of their bits, so the number below a magnitude is
 * found by going on from the one before.
 */
#include "math_job.h"
#include "../format16.h"
#include "kernels/integer_kernels.h"

static float x[MATH_PART];
static uint16_t got[MATH_PART];

static void check(const format16 *f, const char *way, math_found *found)
{
    uint32_t low = 0; /* f->size[low] <= |x| */
    for (int i = 0; i < MATH_PART; i++) {
        const double size = fabs((double)x[i]);
        const uint32_t sign = signbit(x[i]) ? 0x8000u : 0u;
        uint32_t want = f->infinity | 1u;
        if (!isnan(x[i])) {
            if (i == 0)
                low = place16(f, (long double)size);
            while (low < f->infinity && size >= f->size[low + 1])
                low++;
            want = low;
            if (low < f->infinity) {
                const double middle = f->size[low] / 2 + f->size[low + 1] / 2;
                want += size > middle || (size == middle && (low & 1u));
            }
        }
        if (!same16(f, got[i], (uint16_t)(sign | want)))
            math_bad(found, "%s: %a to %s: %04x, nearest %04x", way,
                     (double)x[i], f == &f16 ? "f16" : "bf16", got[i],
                     sign | want);
    }
}

void math_convert_part(const math_job *job, uint64_t part, math_found *found)
{
    static trn__kernel_set sets[MAX_SETS];
    static int n_sets;
    (void)job;
    if (n_sets == 0) {
        n_sets = kernel_sets(sets);
        fill_sizes(&bf16);
        fill_sizes(&f16);
    }
    for (uint32_t i = 0; i < MATH_PART; i++) {
        const uint32_t bits = (uint32_t)part * MATH_PART + i;
        memcpy(&x[i], &bits, sizeof bits);
    }
    for (int k = 0; k < n_sets; k++) {
        sets[k].bf16_from_f32(MATH_PART, x, got);
        check(&bf16, sets[k].name, found);
        sets[k].f16_from_f32(MATH_PART, x, got);
        check(&f16, sets[k].name, found);
    }
    trn__convert(TRN_F32, TRN_BF16, MATH_PART, x, got);
    check(&bf16, "convert", found);
    trn__convert(TRN_F32, TRN_F16, MATH_PART, x, got);
    check(&f16, "convert", found);
}
