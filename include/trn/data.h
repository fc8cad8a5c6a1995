/* SPDX-License-Identifier: Apache-2.0
 *
 * Data: batches of samples from tensors, IDX files and text.
 *
 * A loader hands out one batch after the other until the data end; the next
 * call after the end begins a new pass (epoch).  Its position follows the
 * success of steps: a batch whose step fails is handed out again.  Precisely:
 * a step that fails takes the loader back to before the first batch asked for
 * in it, and before the one that was last handed out when it began.
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
    uint32_t dtype;  /* of images: TRN_F32 (default) or TRN_F64 */
} trn_loader_options;

#define TRN_LOADER_INIT                                                   \
    {                                                                     \
        (uint32_t)sizeof(trn_loader_options), true, false, 0x10ad, 0, -1, \
            TRN_F32                                                       \
    }

/*
 * Samples along the first axis of two tensors of any types, which the loader
 * copies.   inputs: [n, ...], targets: [n, ...]
 *
 * All memory that batches need is taken here, so that a loop takes none.
 * Errors: TRN_ERR_SHAPE (n differs, or rank 0), TRN_ERR_ARG (batch_size below
 *         1, first or count beyond n, options.size), TRN_ERR_NOMEM.
 */
TRN_API trn_loader *trn_data_tensors(trn_context *c, trn_tensor *inputs,
                                     trn_tensor *targets, int64_t batch_size,
                                     const trn_loader_options *options);

/*
 * Images and labels from IDX files (plain or .gz).
 *
 * u8 images become value / 255 in options.dtype, flattened to [n, product of
 * the other dimensions]; other types are cast.  Labels (rank 1, of an integer
 * type) become i32.
 *
 * Errors: TRN_ERR_IO, TRN_ERR_FORMAT with path, offset, found and expected;
 *         TRN_ERR_SHAPE if the counts differ or labels are not of rank 1;
 *         TRN_ERR_DTYPE (options.dtype, labels); as trn_data_tensors.
 */
TRN_API trn_loader *trn_data_idx(trn_context *c, const char *images,
                                 const char *labels, int64_t batch_size,
                                 const trn_loader_options *options);

/*
 * The next batch into *out.  Returns 1; 0 at the end of the data, and whenever
 * an error is pending (*out is empty then).
 */
TRN_API int trn_data_next(trn_loader *l, trn_batch *out);

/*
 * Makes `batch` of pass `epoch`, both from 0, the next one, at once: no step
 * takes it back.  batch may be trn_data_batches(l): the end of that pass.
 * Errors: TRN_ERR_ARG (outside of that).
 */
TRN_API trn_status trn_data_seek(trn_loader *l, int64_t epoch, int64_t batch);

/* Samples in a pass (those of first and count), and batches; 0 for NULL. */
TRN_API int64_t trn_data_samples(const trn_loader *l);
TRN_API int64_t trn_data_batches(const trn_loader *l);

/* ---- text ---- */

typedef struct trn_text trn_text;

/*
 * Reads files as one text of bytes.  The vocabulary is the set of bytes that
 * occur, in increasing order, or that of `vocabulary` (then a byte outside it
 * becomes the nearest byte value inside, of two the smaller).  The text
 * belongs to the context.
 *
 * Errors: TRN_ERR_IO with path and reason; TRN_ERR_ARG (no paths, or the
 *         vocabulary of an empty text); TRN_ERR_NOMEM.
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
 * A sample is each position that has a whole window before it: n is the
 * length less `context`.
 * Errors: TRN_ERR_ARG (the text has no whole window and a next character);
 *         as trn_data_tensors.
 */
TRN_API trn_loader *trn_data_text(trn_context *c, const trn_text *text,
                                  int context, int64_t batch_size,
                                  const trn_loader_options *options);

/* ---- digests ---- */

/* The SHA-256 of data, as 64 hexadecimal digits and a 0; "" for data NULL.
 * out: 65 bytes */
TRN_API void trn_sha256(const void *data, size_t n, char out[65]);

/*
 * The SHA-256 of all parameters of a module: name, type, shape and
 * little-endian values of each, in order; NaNs count as one value.
 * out: 65 bytes
 *
 * Errors: TRN_ERR_ARG (NULL), TRN_ERR_NOMEM; out is then "".
 */
TRN_API trn_status trn_digest(trn_module *m, char out[65]);

TRN_END_DECLS

#endif
