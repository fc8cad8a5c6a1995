/* SPDX-License-Identifier: Apache-2.0
 *
 * Lowering: what the functions for single ops share.
 *
 * The table of ops says which functions there are: trn__hlo_lower_<op> for each
 * PRIM row.  Composites are never seen here; the host decomposes them.
 */
#ifndef TRN_BACKENDS_HLO_LOWER_H
#define TRN_BACKENDS_HLO_LOWER_H

#include "backends/hlo/hlo_build.h"
#include "backends/hlo/hlo_profile.h"

/* How a host double becomes an element. */
typedef enum trn__hlo_rounding {
    TRN__HLO_NEAREST, /* floats: to nearest */
    TRN__HLO_ODD,     /* to f32, to odd: a later rounding to 16 bits is right */
    TRN__HLO_WRAP,    /* integers: to i64, saturating, then wrapped */
    TRN__HLO_SATURATE, /* integers: truncated, saturating */
    TRN__HLO_TRUTH     /* 1 where it is not 0 */
} trn__hlo_rounding;

typedef struct trn__hlo_scalar {
    int32_t number; /* of the graph's scalar */
    uint32_t rounding;
} trn__hlo_scalar;

/* The scalars that are used in one type: one parameter. */
typedef struct trn__hlo_vector {
    uint32_t dtype;
    int32_t inst, param; /* -1: not there */
    trn__hlo_scalar *list;
    int32_t n, room;
} trn__hlo_vector;
enum { TRN__HLO_N_VECTORS = 6 };

/* A value of which the device finds out whether it is good. */
typedef struct trn__hlo_watch {
    int32_t node;
    uint32_t kind; /* enum trn_report_kind */
    uint32_t input;
    int64_t limit;
    int32_t operand;  /* the instruction that is checked */
    int32_t position; /* a scalar: the lowest bad position */
    int32_t found;    /* a pred: is there one? */
    int32_t value;    /* a scalar: the value there; -1: of no interest */
} trn__hlo_watch;

/* Attributes of the rows whose draws the host may make. */
typedef union trn__hlo_random_attrs {
    trn_random_attrs random;
    trn_randint_attrs randint;
    trn_permutation_attrs permutation;
} trn__hlo_random_attrs;

/* A draw that the host makes: its call, but for key, number and memory. */
typedef struct trn__hlo_random {
    uint32_t op;
    int32_t draw;
    trn__hlo_random_attrs attrs;
    uint32_t attrs_size;
    trn_arg out;
} trn__hlo_random;

/* What fill and read_check need to know. */
struct trn__hlo_detail {
    trn__hlo_vector vectors[TRN__HLO_N_VECTORS];
    trn__hlo_watch *checks;
    int32_t n_checks, room_checks;
    trn__hlo_random *randoms;
    int32_t n_randoms, room_randoms;
    int32_t n_draws;
    bool wide; /* positions and values are s64, else s32 */
};

typedef struct trn__hlo_lowering {
    const trn_host_services *host;
    const trn_graph *graph;
    const trn__hlo_profile *profile;
    trn__hlo_program *program;
    struct trn__hlo_detail *detail;
    trn__hlo_module m;
    trn_graph_info info;
    trn_graph_node node; /* the one at hand */
    int32_t node_number;
    int32_t *value;     /* of each value of the graph its instruction; EMPTY */
    int32_t draws;      /* the parameter's instruction, -1: not there yet */
    int32_t *param_of;  /* of each input of the graph, -1: it has no elements */
    bool *is_result;    /* of each instruction, while results are made */
    int32_t *replaces;  /* of each value the parameter whose memory it takes
                           over, -1: none */
    bool *guarded;      /* of each value: it is the old one if not `good` */
    int32_t last_check; /* node that checks something; -1: none does */
    int32_t n_checked;  /* checks in the vector and in `good`, 0: not made */
    int32_t vector, good;
    int32_t room_params;
} trn__hlo_lowering;

/* A value without elements has no instruction. */
#define TRN__HLO_EMPTY (-2)

/* The instruction of the node's output 0. */
typedef int32_t trn__hlo_lower_fn(trn__hlo_lowering *l);

#define PRIM(name) trn__hlo_lower_fn trn__hlo_lower_##name;
#define COMP(name)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    kind(nm)
#include "trn/ops.def"
#undef PRIM
#undef COMP

/* Input k of the node: its instruction (TRN__HLO_EMPTY: no elements), its shape
 * and type as the graph has them; and the output's. */
int32_t trn__hlo_in(const trn__hlo_lowering *l, int k);
trn_arg trn__hlo_in_arg(const trn__hlo_lowering *l, int k);
trn_arg trn__hlo_out_arg(const trn__hlo_lowering *l);
/* The output's shape with another type; its own. */
trn__hlo_shape trn__hlo_out_shape(const trn__hlo_lowering *l);
int64_t trn__hlo_arg_numel(const trn_arg *arg);

uint32_t trn__hlo_type_of(uint32_t dtype);
/* f32 for bf16 and f16: arithmetic is done in f32 and rounded once. */
uint32_t trn__hlo_compute_type(uint32_t dtype);
/* Input k in its compute type; x rounded to the output's type. */
int32_t trn__hlo_up(trn__hlo_lowering *l, int k);
int32_t trn__hlo_down(trn__hlo_lowering *l, int32_t x);
int32_t trn__hlo_zeros(trn__hlo_lowering *l);
/* As another type, by the rules of cast. */
int32_t trn__hlo_cast(trn__hlo_module *m, uint32_t to, int32_t x);

/* hlo_scalars.c: VALUE attribute k of the node as a scalar of that dtype. */
int32_t trn__hlo_value(trn__hlo_lowering *l, int k, uint32_t dtype,
                       trn__hlo_rounding rounding);
uint64_t trn__hlo_round(double value, uint32_t dtype, uint32_t rounding);

/* hlo_check.c.  `bad`: pred, of x's shape; both in row-major order of input. */
int32_t trn__hlo_check_index(trn__hlo_lowering *l, int32_t index,
                             int64_t limit);
void trn__hlo_check_bad(trn__hlo_lowering *l, uint32_t kind, uint32_t input,
                        int32_t bad, int32_t value, int64_t limit);
/* The vector of checks, and a pred that tells that all is good; false: there
 * are no checks. */
bool trn__hlo_check_vector(trn__hlo_lowering *l, int32_t *vector,
                           int32_t *good);

/* hlo_state.c.  The parameter of that input; -1: there is none. */
int32_t trn__hlo_state_param(const trn__hlo_lowering *l, int32_t input);
/* Before nodes are lowered, with inputs as parameters. */
void trn__hlo_find_states(trn__hlo_lowering *l);
/* The node's output is `now`; what to take for it. */
int32_t trn__hlo_new_state(trn__hlo_lowering *l, int32_t now);
/* After all nodes: states as results, the vector of checks and `good`. */
void trn__hlo_finish_states(trn__hlo_lowering *l);

/* hlo_lower_outputs.c: the root.  roots: room for all results */
void trn__hlo_lower_outputs(trn__hlo_lowering *l, int32_t *roots);

/* Type and shape of a value of the graph. */
trn_arg trn__hlo_value_arg(const trn__hlo_lowering *l, int32_t value);
/* Cleared memory of host->alloc's; NULL after a failure. */
void *trn__hlo_cleared(trn__hlo_lowering *l, size_t bytes);
/* hlo_uniform.c: sets plain_products. */
void trn__hlo_find_plain_products(trn__hlo_lowering *l);
/* hlo_prune.c: takes away what the root does not need. */
void trn__hlo_prune(trn__hlo_lowering *l);

/* A new parameter of the module, and its entry in the program's table. */
int32_t trn__hlo_new_param(trn__hlo_lowering *l, uint32_t source, int32_t index,
                           uint32_t dtype, uint32_t rank, const int64_t *shape);
/* Grows a list of host->alloc's; NULL after a failure. */
void *trn__hlo_grow(trn__hlo_lowering *l, void *list, int32_t used,
                    int32_t *room, size_t size);

#endif
