/* SPDX-License-Identifier: Apache-2.0
 *
 * Data: batches of samples from tensors, IDX files and text.
 *
 * A loader hands out one batch after the other until the data end; the next
 * call after the end begins a new pass (epoch).  Its position follows the
 * success of steps: a batch whose step fails is handed out again.
 *
 * Functions that return an object give NULL and leave the error in the context.
 */
#ifndef TRN_DATA_H
#define TRN_DATA_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* A batch.  Its tensors belong to the loader and are valid until the second
 * next call of trn_data_next; retain them to keep them longer. */
typedef struct trn_batch {
    trn_tensor *inputs;  /* [size, ...] */
    trn_tensor *targets; /* [size, ...] */
    int64_t size;        /* samples in this batch */
    int64_t epoch;       /* number of this pass, from 0 */
    int64_t index;       /* number of this batch in its pass, from 0 */
} trn_batch;

typedef struct trn_loader_options {
    uint32_t size;
    bool shuffle;    /* a new order in each pass, from the seed; default true */
    bool drop_last;  /* leave out a last batch that is smaller; default false */
    uint64_t stream; /* of the order's generator; default 0x10ad */
    int64_t first;   /* samples to use: [first, first + count) */
    int64_t count;   /* default -1: to the end */
    uint32_t dtype;  /* of inputs made from bytes or text; default TRN_F32 */
} trn_loader_options;

#define TRN_LOADER_INIT                                                   \
    {                                                                     \
        (uint32_t)sizeof(trn_loader_options), true, false, 0x10ad, 0, -1, \
            TRN_F32                                                       \
    }

/* Samples along the first axis of two tensors, which the loader copies. */
TRN_API trn_loader *trn_data_tensors(trn_context *c, trn_tensor *inputs,
                                     trn_tensor *targets, int64_t batch_size,
                                     const trn_loader_options *options);

/*
 * Images and labels from IDX files (plain or .gz).
 *
 * u8 images become value / 255 in options.dtype, flattened to [n, product of
 * the other dimensions]; other types are cast.  Labels become i32. Errors:
 * TRN_ERR_IO, TRN_ERR_FORMAT with path, offset, found and expected;
 *         TRN_ERR_SHAPE if the counts differ.
 */
TRN_API trn_loader *trn_data_idx(trn_context *c, const char *images,
                                 const char *labels, int64_t batch_size,
                                 const trn_loader_options *options);

/*
 * The next batch into *out.  Returns 1; 0 at the end of the data, and whenever
 * an error is pending (*out is empty then).
 */
TRN_API int trn_data_next(trn_loader *l, trn_batch *out);

/* Starts at the first batch of pass `epoch`. */
TRN_API trn_status trn_data_seek(trn_loader *l, int64_t epoch, int64_t batch);

/* Samples in a pass, and batches. */
TRN_API int64_t trn_data_samples(const trn_loader *l);
TRN_API int64_t trn_data_batches(const trn_loader *l);

/* ---- text ---- */

typedef struct trn_text trn_text;

/*
 * Reads files as one text of bytes.  The vocabulary is the set of bytes that
 * occur, in increasing order, or that of `vocabulary` (then a byte outside it
 * becomes the nearest byte value inside).  The text belongs to the context.
 */
TRN_API trn_text *trn_text_read(trn_context *c, int n_paths,
                                const char *const *paths,
                                const trn_text *vocabulary);
/* The same from memory, which is copied. */
TRN_API trn_text *trn_text_from(trn_context *c, const char *bytes, size_t n,
                                const trn_text *vocabulary);
/* Number of characters; size of the vocabulary; the characters as indices into
 * the vocabulary; index of a byte (-1 if none), byte of an index. */
TRN_API int64_t trn_text_length(const trn_text *t);
TRN_API int trn_text_vocabulary(const trn_text *t);
TRN_API const int32_t *trn_text_indices(const trn_text *t);
TRN_API int trn_text_index_of(const trn_text *t, char byte);
TRN_API char trn_text_byte_of(const trn_text *t, int index);
/* The SHA-256 of the bytes read, as 64 hexadecimal digits. */
TRN_API const char *trn_text_sha256(const trn_text *t);

/*
 * Windows of a text: `context` characters in, the next one as target.
 * inputs: i32 [n, context], targets: i32 [n]
 *
 * A sample is each position that has a whole window before it.
 */
TRN_API trn_loader *trn_data_text(trn_context *c, const trn_text *text,
                                  int context, int64_t batch_size,
                                  const trn_loader_options *options);

/* ---- digests ---- */

/* The SHA-256 of data, as 64 hexadecimal digits and a 0.   out: 65 bytes */
TRN_API void trn_sha256(const void *data, size_t n, char out[65]);

/*
 * The SHA-256 of all parameters of a module: name, type, shape and
 * little-endian values of each, in order; NaNs count as one value.   out: 65
 * bytes
 */
TRN_API trn_status trn_digest(trn_module *m, char out[65]);

TRN_END_DECLS

#endif
