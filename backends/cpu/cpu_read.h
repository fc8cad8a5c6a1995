/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a strided operand as a row-major sequence, a chunk at a time.
 *
 * A reader is an operand whose dimensions of size 1 are gone and whose
 * neighbours that lie without gaps are merged.  Chunks that already are
 * contiguous in memory are used in place; others are gathered.
 */
#ifndef TRN_BACKENDS_CPU_READ_H
#define TRN_BACKENDS_CPU_READ_H

#include "backends/cpu/cpu.h"

typedef struct trn__cpu_reader {
    char *base;
    uint32_t dtype;
    uint32_t size; /* bytes per element */
    int rank;      /* 0: a single element */
    int64_t dim[TRN_MAX_RANK];
    int64_t stride[TRN_MAX_RANK];
} trn__cpu_reader;

/* One chunk in any element type. */
typedef union trn__cpu_chunk {
    float f32[TRN__CPU_CHUNK];
    double f64[TRN__CPU_CHUNK];
    int64_t i64[TRN__CPU_CHUNK];
    int32_t i32[TRN__CPU_CHUNK];
    uint16_t u16[TRN__CPU_CHUNK];
    uint8_t u8[TRN__CPU_CHUNK];
} trn__cpu_chunk;

/* A place in the sequence: index along each dimension, offset in elements. */
typedef struct trn__cpu_cursor {
    int64_t index[TRN_MAX_RANK];
    int64_t offset;
} trn__cpu_cursor;

void trn__cpu_reader_init(trn__cpu_reader *r, const trn_arg *a);

/* The same from explicit dimensions and strides. */
void trn__cpu_reader_dims(trn__cpu_reader *r, const trn_arg *a, int rank,
                          const int64_t *dim, const int64_t *stride);

/* The address of element `first`. */
char *trn__cpu_locate(const trn__cpu_reader *r, int64_t first);

/*
 * Elements [first, first + n) in their own type: in place or gathered into
 * buf, which holds n elements.
 */
const void *trn__cpu_fetch(const trn__cpu_reader *r, int64_t first, int64_t n,
                           void *buf);

/* The same, always in buf. */
void trn__cpu_collect(const trn__cpu_reader *r, int64_t first, int64_t n,
                      void *buf);

/* Writes n contiguous elements to [first, first + n) of the operand. */
void trn__cpu_spread(const trn__cpu_reader *r, int64_t first, int64_t n,
                     const void *x);

/* Offsets in elements, from base, of [first, first + n). */
void trn__cpu_offsets(const trn__cpu_reader *r, int64_t first, int64_t n,
                      int64_t *offset);

/*
 * Elements in the compute type (f32 for bf16 and f16, else their own): in
 * place or in buf; at most TRN__CPU_CHUNK of them.
 */
const void *trn__cpu_load(const trn_device *dev, const trn__cpu_reader *r,
                          int64_t first, int64_t n, trn__cpu_chunk *buf);

/* From the compute type to a contiguous y of dtype; x may be y. */
void trn__cpu_store(const trn_device *dev, uint32_t dtype, int64_t n,
                    const void *x, void *y);

/* n 16-bit elements to f32. */
void trn__cpu_widen(const trn_device *dev, uint32_t dtype, int64_t n,
                    const uint16_t *x, float *y);

/* Integer elements of an index operand as i64. */
const int64_t *trn__cpu_load_index(const trn__cpu_reader *r, int64_t first,
                                   int64_t n, trn__cpu_chunk *buf);

#endif
