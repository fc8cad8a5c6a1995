/* SPDX-License-Identifier: Apache-2.0
 *
 * The tile instruction TDPBF16PS itself, by which bf16 products are defined.
 */
#ifndef TRN_TESTS_AMX_TILE_H
#define TRN_TESTS_AMX_TILE_H

#include <stdint.h>

/* NULL if this process may use the instruction, else why not. */
const char *amx_missing(void);

/*
 * c[16,16] += a b by one instruction     a: [16,32] bf16
 *
 * b: [16,16,2], the pair of places 2p and 2p + 1 along k of each column.
 */
void amx_block(const uint16_t *a, const uint16_t *b, float *c);

#endif
