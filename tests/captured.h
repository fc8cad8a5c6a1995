/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of captured steps share: contexts on every way to run a step, and
 * a small model that they train.
 *
 * A context's memory is counted; captured_close() fails the test unless all of
 * it came back.
 */
#ifndef TRN_TESTS_CAPTURED_H
#define TRN_TESTS_CAPTURED_H

#include "harness.h"

/* A way to run steps. */
typedef struct captured_way {
    const char *name;
    const char *device;
    trn_exec exec;
} captured_way;

/* The CPU eagerly, the CPU captured, the loop device. */
extern const captured_way captured_ways[3];
enum { EAGER, CAPTURED, LOOP, N_WAYS };

/* Options for a way, with counted memory; device NULL: the way's own. */
trn_options captured_options(int way, const char *device);
/* Opens; the test fails if it does not. */
trn_context *captured_open(int way, const char *device);
trn_context *captured_open_options(const trn_options *o);
/* Closes c, which may have an error pending; all its memory must be back. */
void captured_close(trn_context *c);

/* The block that follows runs on each way, with a context c of its own. */
#define ON_EACH_WAY(c)                                             \
    for (int way = 0; way < N_WAYS; way++)                         \
        for (trn_context *c = captured_open(way, NULL); c != NULL; \
             captured_close(c), c = NULL)

/* Bytes held; calls of the memory hook so far. */
int64_t captured_bytes(void);
int64_t captured_allocations(void);
/* Lets allocation number n from now (1: the next one) fail; `ever`: and all
 * after it.  0: none fails. */
void captured_fail_at(int64_t n, bool ever);
/* Has that allocation been asked for? */
bool captured_failed(void);

/* The counters of a context. */
trn_capture_info captured_info(trn_context *c);

/* embedding, flatten, linear, relu, dropout, linear; AdamW with a schedule;
 * a loader of 4 indices per sample, `batch` samples at a time of `samples`. */
typedef struct captured_net {
    trn_context *c;
    trn_tensor *inputs, *targets;
    trn_loader *data;
    trn_module *net, *drop;
    trn_optim *optim;
} captured_net;

captured_net captured_build(trn_context *c, int samples, int batch);
/* Forward and loss of the next batch. */
trn_tensor *captured_loss(captured_net *m);
/* One step of the usual loop, with clipping; false with an error pending. */
bool captured_train(captured_net *m);
bool captured_train_steps(captured_net *m, int n);
/* The parameters' digest, 64 digits. */
const char *captured_digest(trn_module *m, char out[65]);

/* A hash of all that a failed step must not change: parameters, moments,
 * gradients, draws of the default generator, updates of the optimizer, the
 * number of steps.  The context must have no error pending. */
uint64_t captured_state(captured_net *m);

#endif
