/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers of the generic set; philox.h says what each element is.
 *
 * A range may begin and end inside a block: each loop starts at the position of
 * `first` within its block and makes every block once.
 */
#include "kernels/philox.h"
#include "kernels/scalar.h"
#include "kernels/generic/generic_kernels.h"

void trn__generic_uniform_f32(int64_t n, uint64_t key, uint64_t draw,
                              uint64_t first, float *y)
{
    uint64_t block = first / 4;
    uint64_t part = first % 4;
    int64_t i = 0;
    while (i < n) {
        const trn__philox_block b = trn__philox_of(key, draw, block++);
        for (; part < 4 && i < n; part++)
            y[i++] = (float)(b.w[part] >> 8) * 0x1p-24f;
        part = 0;
    }
}

void trn__generic_uniform_f64(int64_t n, uint64_t key, uint64_t draw,
                              uint64_t first, double *y)
{
    uint64_t block = first / 2;
    uint64_t part = first % 2;
    int64_t i = 0;
    while (i < n) {
        const trn__philox_block b = trn__philox_of(key, draw, block++);
        for (; part < 2 && i < n; part++) {
            const uint64_t bits =
                trn__philox_53(b.w[2 * part], b.w[2 * part + 1]);
            y[i++] = (double)bits * 0x1p-53;
        }
        part = 0;
    }
}

/* Box-Muller: the two normal numbers of a block */
static void normal_pair(const trn__philox_block *b, double *z)
{
    const uint64_t bits1 = trn__philox_53(b->w[0], b->w[1]) + 1;
    const uint64_t bits2 = trn__philox_53(b->w[2], b->w[3]);
    const double u1 = (double)bits1 * 0x1p-53;
    const double u2 = (double)bits2 * 0x1p-53;
    const double r = trn__sqrt(-2.0 * trn__log(u1));
    const double t = 6.283185307179586 * u2;
    z[0] = r * trn__cos(t);
    z[1] = r * trn__sin(t);
}

void trn__generic_normal_f32(int64_t n, uint64_t key, uint64_t draw,
                             uint64_t first, float *y)
{
    uint64_t block = first / 2;
    uint64_t part = first % 2;
    int64_t i = 0;
    while (i < n) {
        const trn__philox_block b = trn__philox_of(key, draw, block++);
        double z[2];
        normal_pair(&b, z);
        for (; part < 2 && i < n; part++)
            y[i++] = (float)z[part];
        part = 0;
    }
}

void trn__generic_normal_f64(int64_t n, uint64_t key, uint64_t draw,
                             uint64_t first, double *y)
{
    uint64_t block = first / 2;
    uint64_t part = first % 2;
    int64_t i = 0;
    while (i < n) {
        const trn__philox_block b = trn__philox_of(key, draw, block++);
        double z[2];
        normal_pair(&b, z);
        for (; part < 2 && i < n; part++)
            y[i++] = z[part];
        part = 0;
    }
}
