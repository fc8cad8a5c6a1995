/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of an op, and the tape: what is kept of calls for gradients.
 *
 * The records here are data; autograd/ walks them.  A record holds a reference
 * to the records of its inputs, never to its own output tensor (which holds the
 * record), so there are no cycles.
 */
#ifndef TRN_LIBTRN_TAPE_H
#define TRN_LIBTRN_TAPE_H

#include "libtrn/tensor/tensor.h"
#include "trn/attrs.h"

#define TRN__MAX_IN 4
#define TRN__MAX_VALUES 8
#define TRN__MAX_ATTRS 96

/* Which parts of a call the tape keeps: bit i input i, and the output. */
#define TRN__SAVE_OUT 0x80u

/* One call of an op, as rules see it. */
typedef struct trn__call {
    trn_context *c;
    uint32_t op;
    int n_in, n_values;
    trn_tensor *in[TRN__MAX_IN]; /* a shape only, where nothing was kept */
    trn_tensor *out;
    const void *attrs;
    uint32_t attrs_size;
    double values[TRN__MAX_VALUES];
    uint64_t key, draw; /* RANDOM rows */
    bool sourced; /* while traced: scalar and draw_no are another call's */
    bool foreign; /* scalar and draw_no are those of a trace that has ended */
    int32_t scalar[TRN__MAX_VALUES], draw_no;
    bool counted; /* UPDATE rows: the writes count in the versions already */
    /* The struct is used for one call after the other with the same values:
     * in a trace they are the same scalars.  numbered: in which trace `scalar`
     * was numbered. */
    bool repeated;
    uint64_t numbered;
} trn__call;

typedef struct trn__record {
    int32_t refs;
    uint32_t op;
    uint64_t seq; /* order of recording: inputs come before outputs */
    uint8_t n_in, n_values;
    bool consumed; /* backward has freed what was saved */
    struct trn__record *parent[TRN__MAX_IN]; /* how an input was computed, */
    trn_tensor *leaf[TRN__MAX_IN];           /* or the leaf that it is */
    trn_tensor *saved[TRN__MAX_IN];
    uint64_t saved_version[TRN__MAX_IN];
    trn__desc in_desc[TRN__MAX_IN];
    trn_arg out; /* shape always; memory if out_storage is set */
    trn__storage *out_storage;
    uint64_t out_version;
    uint64_t attrs[TRN__MAX_ATTRS / 8];
    uint32_t attrs_size;
    double values[TRN__MAX_VALUES];
    uint64_t key, draw;
    int32_t scalar[TRN__MAX_VALUES], draw_no; /* while traced, */
    uint64_t trace_step;                      /* in this step */
    /* scratch of a walk */
    trn_tensor *grad;
    uint64_t walk;
    struct trn__record *next; /* free list, or records about to be freed */
} trn__record;

typedef struct trn__tape {
    bool off;        /* inside a no-grad region, a walk, or a decomposition */
    uint32_t inside; /* the op whose decomposition runs; 0: none */
    int no_grad_depth;
    uint64_t seq;
    uint64_t walks;
    trn__record *free_records;
    trn__record *dying; /* freed one after the other: chains may be long */
    bool reaping;
} trn__tape;

extern const trn__layer trn__tape_layer;

/* Records call k with output k->out; saves: TRN__SAVE_ bits of its row. */
trn_status trn__tape_record(const trn__call *k, uint32_t saves);
void trn__record_ref(trn__record *r);
void trn__record_unref(trn_context *c, trn__record *r);
/* Frees what the record saved; a later walk reports it as consumed. */
void trn__record_consume(trn_context *c, trn__record *r);

#endif
