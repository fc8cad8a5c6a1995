/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules put together by hand, for tests of what is done with them: nothing is
 * inferred here, so that a test states every shape.
 */
#ifndef TRN_TESTS_HLO_MODULES_H
#define TRN_TESTS_HLO_MODULES_H

#include "harness.h"

#include <stdlib.h>

#include "backends/hlo/hlo_profile.h"

enum { MAX_INSTS = 512, MAX_OPERANDS = 1024, MAX_PARTS = 8 };

#define DIMS(...)                                              \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
        (const int64_t[])                                      \
    {                                                          \
        __VA_ARGS__                                            \
    }
#define LIST(...) list_of(DIMS(__VA_ARGS__))
#define SHAPE(type, ...) shape_of(TRN__HLO_##type, DIMS(__VA_ARGS__))
#define SCALAR(type) shape_of(TRN__HLO_##type, 0, NULL)
#define OPERANDS(...)                                          \
    (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), \
        (const int32_t[])                                      \
    {                                                          \
        __VA_ARGS__                                            \
    }
/* An instruction by its opcode's name; its number. */
#define PUT(w, op, shape, ...) \
    put(w, TRN__HLO_OP_##op, shape, OPERANDS(__VA_ARGS__))

typedef struct hlo_world {
    trn__hlo_module m;
    trn_host_services host;
    int64_t live;    /* allocations that are not freed */
    int64_t allowed; /* before one fails; -1: any number */
    trn__hlo_inst insts[MAX_INSTS];
    int32_t operands[MAX_OPERANDS];
    trn__hlo_helper helpers[MAX_PARTS];
    trn__hlo_alias aliases[MAX_PARTS];
} hlo_world;

/* Everything is in it. */
static const trn__hlo_profile all_of_it = {
    .name = "all",
    .ops = UINT64_MAX,
    .types = UINT32_MAX,
    .stores = UINT32_MAX,
    .max_size = INT32_MAX,
    .integer_dot = true,
    .integer_scatter = true,
};

static inline void *world_alloc(void *host, size_t bytes)
{
    hlo_world *w = host;
    if (w->allowed == 0)
        return NULL;
    w->allowed -= w->allowed > 0;
    w->live++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static inline void world_dealloc(void *host, void *memory)
{
    hlo_world *w = host;
    w->live -= memory != NULL;
    free(memory);
}

static inline void world_begin(hlo_world *w)
{
    memset(w, 0, sizeof *w);
    w->allowed = -1;
    w->host.host = w;
    w->host.alloc = world_alloc;
    w->host.dealloc = world_dealloc;
    w->m.host = &w->host;
    w->m.insts = w->insts;
    w->m.operands = w->operands;
    w->m.helpers = w->helpers;
    w->m.aliases = w->aliases;
}

static inline trn__hlo_list list_of(int n, const int64_t *numbers)
{
    trn__hlo_list list = {.n = n};
    memcpy(list.at, numbers, (size_t)n * sizeof *numbers);
    return list;
}

static inline trn__hlo_shape shape_of(uint32_t type, int rank,
                                      const int64_t *dims)
{
    trn__hlo_shape shape = {.type = type, .rank = (uint32_t)rank};
    for (int d = 0; d < rank; d++)
        shape.dims[d] = dims[d];
    return shape;
}

static inline int32_t put(hlo_world *w, uint32_t op, trn__hlo_shape shape,
                          int n, const int32_t *operands)
{
    trn__hlo_inst *inst = &w->insts[w->m.n_insts];
    *inst = (trn__hlo_inst){.op = op,
                            .shape = shape,
                            .first_operand = w->m.n_operands,
                            .n_operands = n,
                            .helper = -1,
                            .node = -1};
    for (int k = 0; k < n; k++)
        w->operands[w->m.n_operands++] = operands[k];
    return w->m.n_insts++;
}

static inline int32_t param(hlo_world *w, trn__hlo_shape shape)
{
    const int32_t i = put(w, TRN__HLO_OP_PARAMETER, shape, 0, NULL);
    w->insts[i].number = w->m.n_params++;
    return i;
}

static inline int32_t constant(hlo_world *w, uint32_t type, uint64_t bits)
{
    const int32_t i =
        put(w, TRN__HLO_OP_CONSTANT, shape_of(type, 0, NULL), 0, NULL);
    w->insts[i].literal = bits;
    return i;
}

static inline int32_t constant_f32(hlo_world *w, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return constant(w, TRN__HLO_F32, bits);
}

static inline int32_t helper(hlo_world *w, uint32_t op, uint32_t type)
{
    w->helpers[w->m.n_helpers] = (trn__hlo_helper){.op = op, .type = type};
    return w->m.n_helpers++;
}

static inline void take_over(hlo_world *w, int32_t result, int32_t parameter)
{
    w->aliases[w->m.n_aliases++] =
        (trn__hlo_alias){.result = result, .param = parameter};
}

/* The last instruction: a tuple of these. */
#define ROOT(w, ...)                                                \
    put(w, TRN__HLO_OP_TUPLE_OF, shape_of(TRN__HLO_TUPLE, 0, NULL), \
        OPERANDS(__VA_ARGS__))

/* Fails with the verifier's message unless the module is sound. */
static inline void world_is_sound(hlo_world *w)
{
    char message[256] = "";
    CHECK(trn__hlo_verify(&w->m, &all_of_it, message, sizeof message), "%s\n",
          message);
}

#endif
