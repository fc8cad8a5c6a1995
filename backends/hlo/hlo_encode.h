/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of messages that a module becomes before it is bytes, and the arena
 * in which the tree lies.  For the files hlo_encode*.c of builds with
 * protobuf-c.
 *
 * A maker gives NULL when memory runs out and the arena remembers it, so a
 * caller may put the NULL into its own message: a tree with a hole is never
 * written.
 */
#ifndef TRN_BACKENDS_HLO_ENCODE_H
#define TRN_BACKENDS_HLO_ENCODE_H

#include "backends/hlo/hlo_names.h"
#include "backends/hlo/hlo.pb-c.h"

typedef struct trn__hlo_chunk trn__hlo_chunk;
typedef struct trn__hlo_arena {
    const trn_host_services *host;
    trn__hlo_chunk *chunks; /* the newest first */
    size_t left;            /* bytes of the newest that are free */
    unsigned char *at;
    bool failed;
} trn__hlo_arena;

/* Memory for `count` things of `size` bytes. */
void *trn__hlo_take(trn__hlo_arena *a, size_t count, size_t size);
void trn__hlo_arena_free(trn__hlo_arena *a);

char *trn__hlo_take_text(trn__hlo_arena *a, const char *text);
/* The list's numbers and, in *n, how many. */
int64_t *trn__hlo_take_list(trn__hlo_arena *a, const trn__hlo_list *list,
                            size_t *n);
int64_t *trn__hlo_take_number(trn__hlo_arena *a, int64_t number, size_t *n);

/* Instruction i's shape; a tuple's is made of its operands' shapes. */
Trn__Pb__ShapeProto *trn__hlo_shape_message(trn__hlo_arena *a,
                                            const trn__hlo_shape *shape);

/* Fills what belongs to the opcode: literal, number, lists, called helper. */
void trn__hlo_encode_attributes(trn__hlo_arena *a, const trn__hlo_inst *inst,
                                Trn__Pb__HloInstructionProto *p);

#endif
