/* SPDX-License-Identifier: Apache-2.0
 *
 * Drawing the inputs of a case, and laying them out in memory.
 */
#include <math.h>
#include <stdlib.h>

#include "case_build.h"

void case_draw(case_args *a);

static uint64_t hash_of(const op_case *tc)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const char *parts[3] = {tc->name, tc->shapes, tc->attrs};
    for (int i = 0; i < 3; i++) {
        for (const char *p = parts[i]; *p != '\0'; p++)
            h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
    }
    return h;
}

/* A value of the row's domain for input i.  PAIRS: multiples of 0.1 for input
 * 0, halves between them for input 1, so no two meet.  BETWEEN: 0.1 to 0.4
 * above a multiple of 1/2. */
static double draw_value(const char *domain, int i, uint64_t *state)
{
    double u = harness_uniform(state, 0.0, 1.0);
    if (strcmp(domain, "POSITIVE") == 0)
        return 0.5 + 1.5 * u;
    if (strcmp(domain, "NONZERO") == 0)
        return (harness_random(state) & 1 ? 1.0 : -1.0) * (0.25 + 1.75 * u);
    if (strcmp(domain, "PAIRS") == 0)
        return 0.1 * floor(40.0 * u - 20.0) + (i == 1 ? 0.05 : 0.0) +
               0.01 * harness_uniform(state, -1.0, 1.0);
    if (strcmp(domain, "BETWEEN") == 0)
        return 0.5 * floor(10.0 * u - 5.0) + harness_uniform(state, 0.1, 0.4);
    return 4.0 * u - 2.0;
}

/* Different values in random order: a permutation of steps in [-2, 2]. */
static void draw_distinct(case_input *x, uint64_t *state)
{
    for (int64_t i = 0; i < x->n; i++)
        x->v[i] = -2.0 + 4.0 * ((double)i + 0.5) / (double)x->n;
    for (int64_t i = x->n - 1; i > 0; i--) {
        int64_t j = (int64_t)(harness_random(state) % (uint64_t)(i + 1));
        long double t = x->v[i];
        x->v[i] = x->v[j];
        x->v[j] = t;
    }
}

static long double draw_integer(const case_args *a, int i, uint64_t *state)
{
    static const int64_t awkward[] = {
        INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -1, 0, 1, 255};
    uint64_t r = harness_random(state);
    int64_t v = (int64_t)(harness_random(state) % 201) - 100;
    if ((r & 7) == 0)
        v = awkward[r >> 8 & 7];
    else if ((r & 7) == 1)
        v = (int64_t)harness_random(state);
    long double w = dtype_round(a->dtype, (long double)v);
    return a->tc->op == TRN_OP_div && i == 1 && w == 0 ? 3 : w;
}

/* NaN, infinities, zeros of both signs, the largest and the smallest. */
static long double special_value(trn_dtype dtype, uint64_t *state)
{
    static const int emax[] = {
        [TRN_F64] = 1023, [TRN_F32] = 127, [TRN_BF16] = 127, [TRN_F16] = 15};
    static const int emin[] = {[TRN_F64] = -1070,
                               [TRN_F32] = -146,
                               [TRN_BF16] = -132,
                               [TRN_F16] = -23};
    switch (harness_random(state) % 10) {
    case 0:
        return (long double)NAN;
    case 1:
        return (long double)INFINITY;
    case 2:
        return -(long double)INFINITY;
    case 3:
        return -0.0L;
    case 4:
        return 0.0L;
    case 5:
        return ldexpl(1.5L, emax[dtype]);
    case 6:
        return -ldexpl(1.5L, emin[dtype]);
    case 7:
        return 1.0L;
    default:
        return (long double)harness_uniform(state, -100.0, 100.0);
    }
}

/* Moments of AdamW; weights of classes, probabilities. */
static bool is_never_negative(uint32_t op, int i)
{
    return (op == TRN_OP_adamw_update && i == 3) ||
           (op == TRN_OP_cross_entropy_weighted && i == 2) ||
           (op == TRN_OP_soft_cross_entropy && i > 0);
}

static void draw_values(case_args *a, int i, uint64_t *state)
{
    case_input *x = &a->in[i];
    const char *domain = trn__ops[a->tc->op].domain;
    double scale = attr_real(a->tc, "scale", 1.0);
    bool special = attr_has(a->tc, "special");
    bool equal = attr_has(a->tc, "equal");
    bool positive = is_never_negative(a->tc->op, i);
    bool floats = dtype_is_float(a->dtype);
    if (positive && a->tc->op != TRN_OP_adamw_update)
        scale = 1.0; /* of the logits alone */
    if (floats && strcmp(domain, "DISTINCT") == 0) {
        draw_distinct(x, state);
    } else {
        for (int64_t j = 0; j < x->n; j++)
            x->v[j] = floats ? (long double)draw_value(domain, i, state)
                             : draw_integer(a, i, state);
    }
    for (int64_t j = 0; floats && j < x->n; j++) {
        long double v = x->v[j] * scale;
        if (special && harness_random(state) % 3 == 0)
            v = special_value(a->dtype, state);
        if (equal)
            v = (long double)attr_real(a->tc, "equal", 0.0);
        x->v[j] = dtype_round(a->dtype, positive ? fabsl(v) : v);
    }
}

/* How far the indices of the case go. */
static int64_t index_limit(const case_args *a)
{
    const case_input *x = &a->in[0];
    switch (a->tc->op) {
    case TRN_OP_embedding:
        return x->dim[0];
    case TRN_OP_embedding_grad:
        return attr_int(a->tc, "rows", 1);
    case TRN_OP_one_hot:
        return attr_int(a->tc, "classes", 1);
    case TRN_OP_gather:
    case TRN_OP_index_select:
        return x->dim[attr_axis(a->tc, x->rank)];
    case TRN_OP_scatter_add:
        return attr_int(a->tc, "size", 1);
    default:
        return x->dim[1];
    }
}

static void draw_indices(case_args *a, int i, uint64_t *state)
{
    case_input *x = &a->in[i];
    int64_t limit = index_limit(a);
    for (int64_t j = 0; j < x->n; j++) {
        uint64_t r = harness_random(state);
        bool ignored = attr_has(a->tc, "ignore") &&
                       (attr_has(a->tc, "all_ignored") || (r >> 40) % 3 == 0);
        CHECK(limit > 0 || ignored, "%s: no index fits\n", case_text(a));
        x->v[j] = ignored ? (long double)attr_int(a->tc, "ignore", 0)
                          : (long double)(r % (uint64_t)limit);
    }
}

void case_draw(case_args *a)
{
    uint64_t state = hash_of(a->tc);
    for (int i = 0; i < a->n_in; i++) {
        case_input *x = &a->in[i];
        x->v = malloc((size_t)(x->n + 1) * sizeof *x->v);
        assert_non_null(x->v);
        if (x->kind == KIND_VALUES)
            draw_values(a, i, &state);
        else if (x->kind == KIND_INDICES)
            draw_indices(a, i, &state);
        for (int64_t j = 0; x->kind == KIND_CONDITION && j < x->n; j++)
            x->v[j] = (long double)(harness_random(&state) & 1);
        int64_t row =
            x->layout == LAYOUT_EXPANDED && x->n > 0 ? x->n / x->dim[0] : x->n;
        for (int64_t j = row; j < x->n; j++)
            x->v[j] = x->v[j - row];
    }
}

/* ---- memory ---- */

/* What lies between the elements of a slice: it must not be read. */
static long double junk_of(const case_input *x)
{
    if (dtype_is_float(x->dtype))
        return (long double)NAN;
    return x->dtype == TRN_BOOL ? 1 : 1000000;
}

/* Where element (i_0, ..) of the transposed or sliced tensor lies. */
static int64_t place_of(const case_input *x, case_layout layout, int64_t flat)
{
    if (layout == LAYOUT_SLICED) {
        int64_t last = x->dim[x->rank - 1];
        return flat / last * (2 * last + 1) + 1 + 2 * (flat % last);
    }
    int64_t at = 0;
    int64_t index[TRN_MAX_RANK] = {0};
    for (int d = x->rank; d-- > 0;) {
        index[d] = flat % x->dim[d];
        flat /= x->dim[d];
    }
    for (int d = x->rank; d-- > 0;)
        at = at * x->dim[d] + index[d];
    return at;
}

static trn_tensor *view_of(trn_tensor *base, const case_input *x,
                           case_layout layout)
{
    int reversed[TRN_MAX_RANK];
    for (int d = 0; d < x->rank; d++)
        reversed[d] = x->rank - 1 - d;
    switch (layout) {
    case LAYOUT_TRANSPOSED:
        return trn_permute(base, reversed);
    case LAYOUT_SLICED:
        return trn_slice(base, -1, 1, 2 * x->dim[x->rank - 1], 2);
    case LAYOUT_EXPANDED:
        return trn_expand(base, x->rank, x->dim);
    case LAYOUT_AS_GIVEN:
    case LAYOUT_PLAIN:
    default:
        return base;
    }
}

trn_tensor *case_tensor(trn_context *c, const case_input *x, case_layout layout)
{
    if (x->rank == 0 || (layout == LAYOUT_TRANSPOSED && x->rank == 1))
        layout = LAYOUT_PLAIN;
    int64_t dim[TRN_MAX_RANK];
    int64_t n = x->n;
    memcpy(dim, x->dim, sizeof dim);
    if (layout == LAYOUT_SLICED) {
        dim[x->rank - 1] = 2 * dim[x->rank - 1] + 1;
        n = 1;
        for (int d = 0; d < x->rank; d++)
            n *= dim[d];
    } else if (layout == LAYOUT_EXPANDED) {
        n = dim[0] == 0 ? 0 : n / dim[0];
        dim[0] = dim[0] == 0 ? 0 : 1;
    }
    for (int d = 0; layout == LAYOUT_TRANSPOSED && d < x->rank; d++)
        dim[d] = x->dim[x->rank - 1 - d];
    char *data = malloc((size_t)(n + 1) * trn_dtype_size(x->dtype));
    assert_non_null(data);
    for (int64_t i = 0; layout == LAYOUT_SLICED && i < n; i++)
        dtype_put(x->dtype, data, i, junk_of(x));
    bool moved = layout == LAYOUT_SLICED || layout == LAYOUT_TRANSPOSED;
    for (int64_t i = 0; i < (moved ? x->n : n); i++)
        dtype_put(x->dtype, data, moved ? place_of(x, layout, i) : i, x->v[i]);
    trn_tensor *t = trn_tensor_from(c, x->dtype, x->rank, dim, data);
    free(data);
    t = view_of(t, x, layout);
    harness_ok(c);
    assert_non_null(t);
    return t;
}

void case_tensors(trn_context *c, const case_args *a, case_layout layout,
                  trn_tensor **in)
{
    for (int i = 0; i < a->n_in; i++)
        in[i] = case_tensor(
            c, &a->in[i], layout == LAYOUT_AS_GIVEN ? a->in[i].layout : layout);
}
