/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing of a strided factor into the panels that the matmul tiles read.
 *
 * Either factor is packed by the same loops: rows of a, columns of b are both
 * "rows" here, and k is the other direction.
 */
#include "backends/cpu/cpu_matmul.h"

#include <string.h>

#define STEPS 8 /* places along k that are transposed together */
#define MAX_WIDTH 32

/* Rows lie side by side: each place along k is one short copy. */
static void pack_side_by_side(size_t size, const char *x, int64_t inner,
                              int64_t k, int width, char *y)
{
    const size_t bytes = (size_t)width * size;
    const int64_t step = inner * (int64_t)size;
    if (bytes == 64)
        for (int64_t p = 0; p < k; p++)
            memcpy(y + p * 64, x + p * step, 64);
    else if (bytes == 24)
        for (int64_t p = 0; p < k; p++)
            memcpy(y + p * 24, x + p * step, 24);
    else
        for (int64_t p = 0; p < k; p++)
            memcpy(y + (size_t)p * bytes, x + p * step, bytes);
}

#define PACK_TRANSPOSED(name, type)                                          \
    static void name(const void *from, int64_t outer, int64_t inner,         \
                     int64_t m, int64_t k, int width, void *to)              \
    {                                                                        \
        const type *x = from;                                                \
        type *y = to;                                                        \
        int64_t p = 0;                                                       \
        for (; p + STEPS <= k; p += STEPS)                                   \
            for (int64_t i = 0; i < m; i++)                                  \
                for (int q = 0; q < STEPS; q++)                              \
                    y[(p + q) * width + i] = x[i * outer + (p + q) * inner]; \
        for (; p < k; p++)                                                   \
            for (int64_t i = 0; i < m; i++)                                  \
                y[p * width + i] = x[i * outer + p * inner];                 \
    }

PACK_TRANSPOSED(pack_16, uint16_t)
PACK_TRANSPOSED(pack_32, uint32_t)
PACK_TRANSPOSED(pack_64, uint64_t)

/* One panel of m <= width rows. */
static void pack_panel(size_t size, const trn__cpu_factor *x, int64_t m,
                       int64_t k, int width, char *y)
{
    if (m < width)
        memset(y, 0, (size_t)(k * width) * size);
    if (m == width && x->outer == 1)
        pack_side_by_side(size, x->x, x->inner, k, width, y);
    else if (size == 4)
        pack_32(x->x, x->outer, x->inner, m, k, width, y);
    else if (size == 8)
        pack_64(x->x, x->outer, x->inner, m, k, width, y);
    else
        pack_16(x->x, x->outer, x->inner, m, k, width, y);
}

void trn__cpu_pack(const trn_device *dev, const trn__cpu_factor *x, int64_t m,
                   int64_t k, int width, void *panels)
{
    const size_t size = trn__cpu_size(x->dtype);
    const size_t to_size = trn__cpu_size(trn__cpu_compute(x->dtype));
    uint16_t raw[TRN__CPU_KC_MOST * MAX_WIDTH];
    char *y = panels;
    for (int64_t i = 0; i < m; i += width) {
        const trn__cpu_factor from = trn__cpu_factor_from(x, i, 0);
        const int64_t rows = trn__i64_min(m - i, width);
        if (size == to_size) {
            pack_panel(size, &from, rows, k, width, y);
        } else {
            pack_panel(size, &from, rows, k, width, (char *)raw);
            trn__cpu_widen(dev, x->dtype, k * width, raw, (float *)(void *)y);
        }
        y += (size_t)(k * width) * to_size;
    }
}
