/* SPDX-License-Identifier: Apache-2.0
 *
 * From a graph to a serialized HloModuleProto, for every device whose compiler
 * takes XLA's HLO.  This is all that such a device includes of backends/hlo/.
 *
 * The whole graph is one module.  Its parameters are, in this order: the
 * graph's inputs, the scalars that vary (one vector for each type in which they
 * are used), keys and numbers of draws, and random values where the profile has
 * them made on the host.  Its result is a tuple: the graph's outputs, and one
 * vector that tells whether a value that only the device sees was bad.
 * Inputs and outputs without elements are left out.
 */
#ifndef TRN_BACKENDS_HLO_H
#define TRN_BACKENDS_HLO_H

#include "trn/backend.h"

/* What a compiler may be given: opcodes, types, and what is made on the host.
 * "xla": all that we use; "neuron": what the Neuron compiler is known to take.
 */
typedef struct trn__hlo_profile trn__hlo_profile;

/* NULL: there is none of that name. */
const trn__hlo_profile *trn__hlo_profile_named(const char *name);

/* Can this build write modules?  Not without protobuf-c. */
bool trn__hlo_available(void);

/* Has this profile a lowering for the call?  Answers trn_backend.supports, the
 * host's question about a type included. */
bool trn__hlo_supports(const trn__hlo_profile *profile,
                       const trn_op_call *call);

typedef enum trn__hlo_source {
    TRN__HLO_INPUT = 0,   /* input `index` of the graph */
    TRN__HLO_SCALARS = 1, /* a vector of scalars, each rounded to dtype once */
    TRN__HLO_DRAWS = 2,   /* u32[n,4]: low and high words of key and draw */
    TRN__HLO_RANDOM = 3   /* the values of a draw, made by the host */
} trn__hlo_source;

typedef struct trn__hlo_param {
    uint32_t source; /* enum trn__hlo_source */
    uint32_t dtype;  /* enum trn_dtype */
    uint32_t rank;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    int32_t index; /* INPUT: the graph's; RANDOM: of the node */
    int32_t alias; /* the result that takes over its memory, -1: none */
} trn__hlo_param;

typedef struct trn__hlo_result {
    uint32_t dtype;
    uint32_t rank;
    int64_t shape[TRN_MAX_RANK];
    uint64_t bytes;
    int32_t index; /* output of the graph, -1: the vector of checks */
    int32_t alias; /* the parameter whose memory it takes over, -1: none */
} trn__hlo_result;

typedef struct trn__hlo_program {
    void *bytes; /* HloModuleProto */
    size_t n_bytes;
    int32_t n_params;
    int32_t n_results;
    trn__hlo_param *params;
    trn__hlo_result *results;
    int32_t check; /* which result tells of bad values, -1: nothing is checked.
                      If a value is bad, aliased results keep the old values. */
    bool plain_products; /* no factor of a product is a broadcast, as far as
                            the form of the module tells */
    struct trn__hlo_detail *detail;
} trn__hlo_program;

/* Lowers a graph.  On failure *out is NULL and the host has the message:
 * TRN_ERR_UNSUPPORTED, TRN_ERR_NOMEM, TRN_ERR_INTERNAL (the module did not pass
 * our own verifier).  The bytes depend on graph and profile alone. */
int32_t trn__hlo_lower(const trn_host_services *host, const trn_graph *graph,
                       const trn__hlo_profile *profile, trn__hlo_program **out);
void trn__hlo_free(const trn_host_services *host, trn__hlo_program *program);

/* Writes what parameter `param`, which is no INPUT, is in this execution:
 * params[param].bytes bytes at `out`. */
int32_t trn__hlo_fill(const trn_host_services *host,
                      const trn__hlo_program *program, int32_t param,
                      const trn_execution *e, void *out);

/* Reads the vector of checks (results[check].bytes bytes): TRN_OK, or the
 * status, with node and report of the first bad value in *outcome. */
int32_t trn__hlo_read_check(const trn__hlo_program *program, const void *vector,
                            trn_outcome *outcome);

/* The module of a graph as HLO text, piece by piece. */
typedef void (*trn__hlo_put)(void *user, const char *text);
int32_t trn__hlo_print(const trn_host_services *host, const trn_graph *graph,
                       const trn__hlo_profile *profile, trn__hlo_put put,
                       void *user);

#endif
