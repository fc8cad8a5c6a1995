/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions and products.
 */
#include <math.h>
#include <string.h>

#include "backends/hlo/hlo_lower.h"

/* The shape of the output is the reduced one, or has ones besides. */
static int32_t shaped(trn__hlo_lowering *l, int32_t x)
{
    const trn_arg y = trn__hlo_out_arg(l);
    return trn__hlo_reshape(&l->m, x, y.rank, y.shape);
}

static uint32_t axes_of(const trn__hlo_lowering *l)
{
    const trn_reduce_attrs *at = l->node.attrs;
    return at->axes;
}

static int32_t sum_over(trn__hlo_lowering *l, int32_t x)
{
    const uint32_t type = trn__hlo_shape_of(&l->m, x).type;
    return trn__hlo_reduce(&l->m, TRN__HLO_OP_ADD, x, axes_of(l),
                           trn__hlo_number(&l->m, type, 0.0));
}

int32_t trn__hlo_lower_sum(trn__hlo_lowering *l)
{
    const uint32_t to = trn__hlo_compute_type(trn__hlo_out_arg(l).dtype);
    if (trn__hlo_in(l, 0) == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    const int32_t x = trn__hlo_convert(&l->m, to, trn__hlo_in(l, 0));
    return trn__hlo_down(l, shaped(l, sum_over(l, x)));
}

/* How many elements become one. */
static double reduced_count(const trn__hlo_lowering *l)
{
    const trn_arg x = trn__hlo_in_arg(l, 0);
    double n = 1;
    for (uint32_t d = 0; d < x.rank; d++)
        n *= (axes_of(l) >> d) & 1u ? (double)x.shape[d] : 1.0;
    return n;
}

int32_t trn__hlo_lower_mean(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    if (trn__hlo_in(l, 0) == TRN__HLO_EMPTY) {
        const int32_t zero = trn__hlo_zeros(l);
        return trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, zero, zero);
    }
    const int32_t sum = shaped(l, sum_over(l, trn__hlo_up(l, 0)));
    const uint32_t type = trn__hlo_shape_of(m, sum).type;
    const double n = reduced_count(l);
    uint64_t bits = trn__hlo_round(
        n, type == TRN__HLO_F64 ? (uint32_t)TRN_F64 : (uint32_t)TRN_F32,
        TRN__HLO_NEAREST);
    const trn__hlo_shape s = trn__hlo_shape_of(m, sum);
    const int32_t count = trn__hlo_splat(m, trn__hlo_bits(m, type, bits), &s);
    return trn__hlo_down(l, trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, sum, count));
}

static int32_t lowest(trn__hlo_module *m, uint32_t type)
{
    const uint32_t bits = 8 * trn__hlo_type_bytes(type);
    if (type == TRN__HLO_F64)
        return trn__hlo_bits(m, type, 0xfff0000000000000ull);
    if (type == TRN__HLO_F32)
        return trn__hlo_bits(m, type, 0xff800000u);
    return trn__hlo_bits(m, type,
                         trn__hlo_is_signed(type) ? 1ull << (bits - 1) : 0);
}

/* Of what is not NaN; what else becomes of NaN is up to the device: some lose
 * it, in long reductions only. */
static int32_t largest_number(trn__hlo_module *m, int32_t x, uint32_t axes)
{
    const uint32_t type = trn__hlo_shape_of(m, x).type;
    return trn__hlo_reduce(m, TRN__HLO_OP_MAXIMUM, x, axes, lowest(m, type));
}

/* NaN if there is one, which is found by counting. */
static int32_t largest(trn__hlo_module *m, int32_t x, uint32_t axes)
{
    const uint32_t type = trn__hlo_shape_of(m, x).type;
    const int32_t most = largest_number(m, x, axes);
    if (!trn__hlo_is_float(type))
        return most;
    const int32_t is_nan = trn__hlo_compare(m, TRN__HLO_NE, x, x);
    const int32_t count =
        trn__hlo_reduce(m, TRN__HLO_OP_ADD, trn__hlo_convert(m, type, is_nan),
                        axes, trn__hlo_number(m, type, 0.0));
    const int32_t any =
        trn__hlo_compare(m, TRN__HLO_GT, count, trn__hlo_like(m, 0.0, count));
    const uint64_t nan =
        type == TRN__HLO_F64 ? 0x7ff8000000000000ull : (uint64_t)0x7fc00000u;
    const trn__hlo_shape s = trn__hlo_shape_of(m, most);
    return trn__hlo_select(
        m, any, trn__hlo_splat(m, trn__hlo_bits(m, type, nan), &s), most);
}

/* x, reduced over axes, where x was: each element of a group the same. */
static int32_t spread(trn__hlo_module *m, int32_t x, uint32_t axes,
                      const trn__hlo_shape *to)
{
    int64_t map[TRN__HLO_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < to->rank; d++) {
        if (!((axes >> d) & 1u))
            map[n++] = d;
    }
    return trn__hlo_broadcast(m, x, to->rank, to->dims, map);
}

/* The sum of squares of f32 in f64, which can hold every one of them. */
static int32_t norm_in_f64(trn__hlo_lowering *l, int32_t x)
{
    trn__hlo_module *m = &l->m;
    const int32_t wide = trn__hlo_convert(m, TRN__HLO_F64, x);
    const int32_t squares =
        sum_over(l, trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, wide, wide));
    const int32_t root = trn__hlo_unary(m, TRN__HLO_OP_SQRT, squares);
    return trn__hlo_convert(m, TRN__HLO_F32, root);
}

/* Scaled by the largest magnitude, so that no square overflows or vanishes. */
static int32_t norm_scaled(trn__hlo_lowering *l, int32_t x)
{
    trn__hlo_module *m = &l->m;
    const uint32_t axes = axes_of(l);
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    /* NaN is in the sum of the squares, whatever the scale is. */
    const int32_t most =
        largest_number(m, trn__hlo_unary(m, TRN__HLO_OP_ABS, x), axes);
    const int32_t zero = trn__hlo_like(m, 0.0, most);
    const int32_t infinite = trn__hlo_compare(
        m, TRN__HLO_NE, trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, most, most),
        zero);
    const int32_t plain =
        trn__hlo_binary(m, TRN__HLO_OP_OR, infinite,
                        trn__hlo_compare(m, TRN__HLO_EQ, most, zero));
    const int32_t scale =
        trn__hlo_select(m, plain, trn__hlo_like(m, 1.0, most), most);
    const int32_t y =
        trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, x, spread(m, scale, axes, &s));
    const int32_t squares =
        sum_over(l, trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, y, y));
    const int32_t root = trn__hlo_unary(m, TRN__HLO_OP_SQRT, squares);
    return trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, root, scale);
}

int32_t trn__hlo_lower_norm(trn__hlo_lowering *l)
{
    if (trn__hlo_in(l, 0) == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    const int32_t x = trn__hlo_up(l, 0);
    const bool has_f64 = (l->profile->types >> TRN__HLO_F64) & 1u;
    const bool narrow = trn__hlo_shape_of(&l->m, x).type == TRN__HLO_F32;
    const int32_t y = has_f64 && narrow ? norm_in_f64(l, x) : norm_scaled(l, x);
    return trn__hlo_down(l, shaped(l, y));
}

/* x less its first element along the axes: 0 everywhere if all are equal. */
static int32_t less_first(trn__hlo_module *m, int32_t x, uint32_t axes)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    int64_t start[TRN__HLO_MAX_RANK] = {0}, limit[TRN__HLO_MAX_RANK];
    int64_t stride[TRN__HLO_MAX_RANK], kept[TRN__HLO_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < s.rank; d++) {
        const bool reduced = (axes >> d) & 1u;
        limit[d] = reduced ? 1 : s.dims[d];
        stride[d] = 1;
        if (!reduced)
            kept[rank++] = s.dims[d];
    }
    const int32_t first = trn__hlo_reshape(
        m, trn__hlo_slice(m, x, start, limit, stride), rank, kept);
    return trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, x,
                           spread(m, first, axes, &s));
}

/* x / n, for a number n that may be rounded. */
static int32_t over(trn__hlo_module *m, int32_t x, double n)
{
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    const bool wide = s.type == TRN__HLO_F64;
    const uint64_t bits = trn__hlo_round(
        n, wide ? (uint32_t)TRN_F64 : (uint32_t)TRN_F32, TRN__HLO_NEAREST);
    const int32_t count = trn__hlo_splat(m, trn__hlo_bits(m, s.type, bits), &s);
    return trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, x, count);
}

/* The mean of the squares of x - mean, where both are less the first element.
 */
int32_t trn__hlo_lower_var(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const trn_var_attrs *at = l->node.attrs;
    const trn_arg arg = trn__hlo_in_arg(l, 0);
    double n = 1;
    for (uint32_t d = 0; d < arg.rank; d++)
        n *= (at->axes >> d) & 1u ? (double)arg.shape[d] : 1.0;
    if (n <= (double)at->correction) {
        const int32_t zero = trn__hlo_zeros(l);
        return trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, zero, zero);
    }
    const int32_t x = less_first(m, trn__hlo_up(l, 0), at->axes);
    const trn__hlo_shape s = trn__hlo_shape_of(m, x);
    const int32_t start = trn__hlo_number(m, s.type, 0.0);
    const int32_t mean =
        over(m, trn__hlo_reduce(m, TRN__HLO_OP_ADD, x, at->axes, start), n);
    const int32_t d = trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, x,
                                      spread(m, mean, at->axes, &s));
    const int32_t sum = trn__hlo_reduce(
        m, TRN__HLO_OP_ADD, trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, d, d),
        at->axes, start);
    return trn__hlo_down(l,
                         shaped(l, over(m, sum, n - (double)at->correction)));
}

int32_t trn__hlo_lower_max(trn__hlo_lowering *l)
{
    return trn__hlo_down(
        l, shaped(l, largest(&l->m, trn__hlo_up(l, 0), axes_of(l))));
}

/* The lowest place whose element is the largest, or NaN. */
int32_t trn__hlo_lower_argmax(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const trn_axis_attrs *at = l->node.attrs;
    const int32_t x = trn__hlo_in(l, 0) < 0 ? -1 : trn__hlo_up(l, 0);
    trn__hlo_shape s = trn__hlo_shape_of(m, x);
    const uint32_t axes = 1u << at->axis;
    const int32_t most = spread(m, largest(m, x, axes), axes, &s);
    int32_t hit = trn__hlo_compare(m, TRN__HLO_EQ, x, most);
    if (trn__hlo_is_float(s.type))
        hit = trn__hlo_binary(m, TRN__HLO_OP_OR, hit,
                              trn__hlo_compare(m, TRN__HLO_NE, x, x));
    const int32_t place =
        trn__hlo_iota(m, TRN__HLO_S32, s.rank, s.dims, at->axis);
    const int32_t behind = trn__hlo_bits(m, TRN__HLO_S32, INT32_MAX);
    s.type = TRN__HLO_S32;
    const int32_t candidate =
        trn__hlo_select(m, hit, place, trn__hlo_splat(m, behind, &s));
    return shaped(
        l, trn__hlo_reduce(m, TRN__HLO_OP_MINIMUM, candidate, axes, behind));
}

/* ---- matmul ---- */

typedef struct product {
    int32_t a, b;       /* [batch.., M, K] or transposed; likewise */
    uint32_t batch;     /* number of leading axes that both have */
    int64_t contract_a; /* the axes of K */
    int64_t contract_b;
} product;

/* x with the batch axes of the output. */
static int32_t with_batch(trn__hlo_lowering *l, int k, int32_t x)
{
    const trn_arg arg = trn__hlo_in_arg(l, k), y = trn__hlo_out_arg(l);
    int64_t dims[TRN_MAX_RANK], small[TRN_MAX_RANK], map[TRN_MAX_RANK];
    const uint32_t front = y.rank - arg.rank;
    uint32_t n = 0;
    for (uint32_t d = 0; d < y.rank; d++)
        dims[d] = y.shape[d];
    dims[y.rank - 2] = arg.shape[arg.rank - 2];
    dims[y.rank - 1] = arg.shape[arg.rank - 1];
    for (uint32_t d = 0; d < arg.rank; d++) {
        if (d + 2 < arg.rank && arg.shape[d] == 1 && dims[d + front] != 1)
            continue;
        small[n] = arg.shape[d];
        map[n++] = d + front;
    }
    return trn__hlo_broadcast(&l->m, trn__hlo_reshape(&l->m, x, n, small),
                              y.rank, dims, map);
}

/* Dimensions for the dot; a plain b serves all batches of a at once. */
static trn__hlo_dot_dims dims_of(const product *p)
{
    trn__hlo_dot_dims d;
    memset(&d, 0, sizeof d);
    for (uint32_t i = 0; i < p->batch; i++)
        d.lhs_batch.at[i] = d.rhs_batch.at[i] = i;
    d.lhs_batch.n = d.rhs_batch.n = (int32_t)p->batch;
    d.lhs_contracting.n = d.rhs_contracting.n = 1;
    d.lhs_contracting.at[0] = p->contract_a;
    d.rhs_contracting.at[0] = p->contract_b;
    return d;
}

/* A factor over [batch.., M, N, K]: its rows go to axis `at`, and k, which is
 * its axis `contract`, to the end. */
static int32_t widen(trn__hlo_module *m, int32_t x, int64_t contract,
                     int64_t at, const trn__hlo_shape *to)
{
    int64_t perm[TRN__HLO_MAX_RANK], map[TRN__HLO_MAX_RANK];
    const int64_t k = to->rank - 1;
    for (int64_t d = 0; d < k; d++)
        perm[d] = map[d] = d;
    if (contract == k - 2) { /* it stands before the rows */
        perm[k - 2] = k - 1;
        perm[k - 1] = k - 2;
    }
    map[k - 2] = at;
    map[k - 1] = k;
    return trn__hlo_broadcast(m, trn__hlo_transpose(m, x, perm), to->rank,
                              to->dims, map);
}

/* The sum of products of integers, for compilers without integer dot. */
static int32_t product_by_sum(trn__hlo_lowering *l, const product *p)
{
    trn__hlo_module *m = &l->m;
    const trn_arg y = trn__hlo_out_arg(l);
    const trn__hlo_shape a = trn__hlo_shape_of(m, p->a);
    trn__hlo_shape s = trn__hlo_array(a.type, y.rank + 1, y.shape);
    const int64_t k = y.rank;
    s.dims[k] = a.dims[p->contract_a];
    const int32_t wide_a = widen(m, p->a, p->contract_a, k - 2, &s);
    const int32_t wide_b = widen(m, p->b, p->contract_b, k - 1, &s);
    return trn__hlo_reduce(
        m, TRN__HLO_OP_ADD,
        trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, wide_a, wide_b), 1u << k,
        trn__hlo_number(m, s.type, 0.0));
}

static int32_t multiply(trn__hlo_lowering *l, product *p, uint32_t type)
{
    const trn_arg a = trn__hlo_in_arg(l, 0), b = trn__hlo_in_arg(l, 1);
    const bool by_sum = !trn__hlo_is_float(type) && !l->profile->integer_dot;
    if (!by_sum && b.rank == 2) {
        const trn__hlo_dot_dims d = dims_of(p);
        return trn__hlo_dot(&l->m, type, p->a, p->b, &d);
    }
    const trn_arg y = trn__hlo_out_arg(l);
    p->a = with_batch(l, 0, p->a);
    p->b = with_batch(l, 1, p->b);
    p->contract_a += y.rank - a.rank;
    p->contract_b += y.rank - b.rank;
    p->batch = y.rank - 2;
    const trn__hlo_dot_dims d = dims_of(p);
    return by_sum ? product_by_sum(l, p)
                  : trn__hlo_dot(&l->m, type, p->a, p->b, &d);
}

int32_t trn__hlo_lower_matmul(trn__hlo_lowering *l)
{
    const trn_matmul_attrs *at = l->node.attrs;
    const trn_arg a = trn__hlo_in_arg(l, 0), b = trn__hlo_in_arg(l, 1);
    product p = {
        .a = trn__hlo_in(l, 0),
        .b = trn__hlo_in(l, 1),
        .contract_a = (int64_t)a.rank - (at->trans_a ? 2 : 1),
        .contract_b = (int64_t)b.rank - (at->trans_b ? 1 : 2),
    };
    if (p.a == TRN__HLO_EMPTY || p.b == TRN__HLO_EMPTY)
        return trn__hlo_zeros(l);
    uint32_t type = trn__hlo_compute_type(a.dtype);
    if (a.dtype == TRN_U8) /* wide enough; what wraps is cut at the end */
        type = TRN__HLO_S32;
    if (a.dtype != TRN_BF16) { /* bf16 goes in as it is, f32 comes out */
        p.a = trn__hlo_convert(&l->m, type, p.a);
        p.b = trn__hlo_convert(&l->m, type, p.b);
    }
    return trn__hlo_down(l, multiply(l, &p, type));
}
