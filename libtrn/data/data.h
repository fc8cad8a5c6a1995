/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside a loader: two columns of samples in host memory, an order, a position
 * that follows the success of steps, and rings of tensors to hand out.
 */
#ifndef TRN_LIBTRN_DATA_H
#define TRN_LIBTRN_DATA_H

#include "libtrn/ops/randoms.h"
#include "libtrn/tensor/tensor.h"
#include "trn/data.h"

/* The samples of one side of the batches. */
typedef struct trn__column {
    uint32_t dtype;
    uint32_t rank; /* of one sample: one less than that of a batch */
    int64_t shape[TRN_MAX_RANK - 1];
    size_t bytes;      /* of one sample */
    size_t pitch;      /* bytes from one sample to the next */
    const char *first; /* the first sample to use */
    void *memory;      /* where they lie if that is the loader's, else NULL */
} trn__column;

/* Tensors for batches of one size.  A batch stays valid for two more calls, so
 * two pairs would do; the third spares a copy while a step still holds one. */
#define TRN__RING_SIZE 3

typedef struct trn__batch_ring {
    trn_tensor *inputs[TRN__RING_SIZE], *targets[TRN__RING_SIZE];
    int turn; /* the pair to use next */
} trn__batch_ring;

struct trn_loader {
    trn__owned owned; /* first */
    trn_context *c;
    /* Calls of trn_data_next since the start of pass 0; a pass has one more
     * than its batches, that which returned 0. */
    trn__counter position;
    trn__column inputs, targets;
    int64_t n_samples, batch_size, n_batches;
    trn_generator *generator; /* NULL: samples in their own order */
    int64_t *order;           /* of pass order_epoch, if there is a generator */
    int64_t order_epoch;      /* -1: none yet */
    trn__batch_ring full, last; /* last: smaller than batch_size */
    char *stage;                /* one side of one batch, in host memory */
};

struct trn_text {
    trn__owned owned; /* first */
    trn_context *c;
    int64_t length;
    int32_t *indices;
    int n_vocabulary;
    uint8_t byte_of[256];
    int16_t index_of[256]; /* -1: not in the vocabulary */
    char sha256[65];
};

/* Checks batch_size and options (NULL: the defaults) and copies them to *out.
 */
trn_status trn__loader_check(trn_context *c, const char *what,
                             int64_t batch_size,
                             const trn_loader_options *options,
                             trn_loader_options *out);
/* Checks first and count against n samples; count becomes the number used. */
trn_status trn__loader_select(trn_context *c, const char *what, int64_t n,
                              trn_loader_options *o);
/* A loader of o->count samples.  Takes over the columns' memory, also when it
 * fails: NULL, with the error raised. */
trn_loader *trn__loader_new(trn_context *c, const char *what,
                            int64_t batch_size, const trn_loader_options *o,
                            const trn__column *inputs,
                            const trn__column *targets);

#endif
