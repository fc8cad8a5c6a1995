/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs that start with their size, from callers older or newer than this
 * library: options are taken over defaults, answers are given as far as they
 * fit.
 *
 * A struct grows only at its end.  Its first version ended with the field named
 * below; a caller's size may be anything from there on.  What a shorter struct
 * lacks keeps its default, what a longer one has beyond ours is not looked at
 * and not written.  A field that is added starts behind the padding at the old
 * end, where an older caller has no defined bytes but counts them.
 */
#ifndef TRN_LIBTRN_STRUCT_SIZE_H
#define TRN_LIBTRN_STRUCT_SIZE_H

#include "trn/backend.h"
#include "trn/types.h"

/* The size of a struct up to and with that field. */
#define TRN__SIZE_WITH(type, field) \
    (offsetof(type, field) + sizeof(((type *)0)->field))

/* Type, last field of its first version (never changed), its initialiser. */
#define TRN__SIZED_STRUCTS(X)                                            \
    X(trn_options, plan_limit, "TRN_OPTIONS_INIT")                       \
    X(trn_memory_info, blocks_asked, "TRN_MEMORY_INFO_INIT")             \
    X(trn_capture_info, plan_bytes, "TRN_CAPTURE_INFO_INIT")             \
    X(trn_cross_entropy_options, ignore_index, "TRN_CROSS_ENTROPY_INIT") \
    X(trn_grad_options, zeros, "TRN_GRAD_INIT")                          \
    X(trn_sgd_options, nesterov, "TRN_SGD_INIT")                         \
    X(trn_adamw_options, weight_decay, "TRN_ADAMW_INIT")                 \
    X(trn_loader_options, dtype, "TRN_LOADER_INIT")                      \
    X(trn_op_call, report, "its size")

typedef enum trn__sized {
#define X(type, last, init) TRN__SIZED_##type,
    TRN__SIZED_STRUCTS(X)
#undef X
} trn__sized;

/* Copies what the caller's struct has over the defaults in *to, whose size is
 * ours then; `from` NULL: there is nothing to copy.  False, and nothing has
 * changed, if the caller's is smaller than the first version. */
bool trn__struct_take(trn__sized kind, void *to, const void *from);

/* Raises what trn__struct_take found wrong with `from`. */
trn_status trn__struct_refuse(trn_context *c, const char *what, trn__sized kind,
                              const void *from);

/* Both: takes options or raises the error. */
trn_status trn__options_take(trn_context *c, const char *what, trn__sized kind,
                             void *to, const void *from);

/* Has the caller's struct for an answer at least the first version? */
bool trn__struct_holds(trn__sized kind, const void *to);

/* Copies as much of the answer as the caller's struct holds, which keeps its
 * size.  It must be one that trn__struct_holds. */
void trn__struct_give(trn__sized kind, void *to, const void *answer);

#endif
