/* SPDX-License-Identifier: Apache-2.0
 *
 * A step: the scope of what a pass of the training loop makes, and the boundary
 * of its errors.  Functions return trn_status unless they say otherwise.
 */
#ifndef TRN_STEP_H
#define TRN_STEP_H

#include "trn/types.h"

TRN_BEGIN_DECLS

/* Opens a step.  Errors: a pending one; TRN_ERR_STATE if one is open. */
TRN_API trn_status trn_step_begin(trn_context *c);

/*
 * Ends the step: applies the optimizers' updates, frees what the step made.
 *
 * On a device that runs steps while the host goes on, what the device finds
 * wrong with a step is returned by the first later trn_step_end(), read or
 * trn_sync(); that step and those behind it have not happened then.
 *
 * If an error is pending, the step has not happened: parameters, optimizer
 * state, accumulated gradients, schedules, generators and loaders are as they
 * were before, and the error is returned.
 */
TRN_API trn_status trn_step_end(trn_context *c);

/* The number of steps that succeeded. */
TRN_API int64_t trn_step_index(const trn_context *c);

/* The last root of trn_backward(), as a double; of several elements the first;
 * NaN before the first one, or with an error pending. */
TRN_API double trn_step_loss(trn_context *c);

/* Waits for all steps in flight; returns the error of the first that failed. */
TRN_API trn_status trn_sync(trn_context *c);

/* How often what happened while steps were captured. */
typedef struct trn_capture_info {
    uint32_t size;
    uint64_t traces;       /* steps whose calls were recorded anew */
    uint64_t matches;      /* steps that repeated a trace to its end */
    uint64_t compilations; /* programs compiled */
    uint64_t replays;      /* programs executed */
    uint64_t early_reads;  /* values read inside an open step */
    uint64_t fallbacks;    /* ops that a device left to the host */
    uint64_t plan_bytes;   /* memory that the last program takes while it runs,
                              beside inputs and results */
    /* Of tensors, by read and write of the device, since trn_open(), in every
     * way to run: what programs do in the device's memory is not counted. */
    uint64_t bytes_to_host;
    uint64_t bytes_to_device;
} trn_capture_info;

#define TRN_CAPTURE_INFO_INIT                                         \
    {                                                                 \
        (uint32_t)sizeof(trn_capture_info), 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

TRN_API trn_status trn_capture(const trn_context *c, trn_capture_info *out);

/* Why the last step that was traced anew did not match: "call 17, matmul: input
 * 0 f32[64,784] became f32[16,784]"; "" if none was. */
TRN_API const char *trn_capture_reason(const trn_context *c);

/* Takes text piece by piece. */
typedef void (*trn_put_fn)(void *user, const char *text);

/*
 * The graph of the last captured step, a line per node with shapes, FLOPs and
 * bytes; or as a drawing in the DOT language of Graphviz.
 *
 * prepared: as the device compiled it, after all passes; else as it was traced.
 * Errors: TRN_ERR_STATE if no step was captured.
 */
TRN_API trn_status trn_capture_print(trn_context *c, bool prepared, bool dot,
                                     trn_put_fn put, void *user);

/*
 * The last captured step as an HLO module in text, on every device.
 *
 * profile: for whose compiler: "xla", all that we use of HLO, or "neuron", what
 * the Neuron compiler is known to take.  Nothing is compiled.
 * Errors: TRN_ERR_ARG (no such profile, put NULL), TRN_ERR_STATE if no step was
 *         captured, TRN_ERR_UNSUPPORTED (an op that cannot be lowered for its
 *         types).
 */
TRN_API trn_status trn_capture_print_hlo(trn_context *c, const char *profile,
                                         trn_put_fn put, void *user);

TRN_END_DECLS

#endif
