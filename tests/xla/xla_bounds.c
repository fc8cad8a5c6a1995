/* SPDX-License-Identifier: Apache-2.0
 *
 * How far XLA may be from the CPU device; docs/xla.md has what was measured.
 */
#include <math.h>

#include "tests/xla/xla_batch.h"
#include "tests/xla/xla_bounds.h"

/* `small` is one unit of bf16 or f16 wherever a difference in f32 may turn a
 * rounding. */
#define MOVES         \
    {                 \
        .moves = true \
    }
#define EXACT          \
    {                  \
        .moves = false \
    }
#define ULPS(f32_, f64_)                                 \
    {                                                    \
        .ulp_f32 = f32_, .ulp_f64 = f64_, .ulp_small = 1 \
    }
#define SUM(units_, per_term_)                                           \
    {                                                                    \
        .ulp_f32 = 0.5, .ulp_f64 = 0.5, .ulp_small = 1, .units = units_, \
        .per_term = per_term_,                                           \
    }

const xla_bound xla_bounds[TRN_OP_LIMIT] = {
    [TRN_OP_neg] = EXACT,
    [TRN_OP_exp] = ULPS(2, 2),
    [TRN_OP_log] = ULPS(2, 2),
    [TRN_OP_tanh] = ULPS(5, 4), /* a quotient of polynomials */
    [TRN_OP_sqrt] = EXACT,
    [TRN_OP_relu] = EXACT,
    [TRN_OP_flush_subnormal] = EXACT,
    [TRN_OP_add] = EXACT,
    [TRN_OP_sub] = EXACT,
    [TRN_OP_mul] = EXACT,
    [TRN_OP_div] = ULPS(2, 2), /* x / broadcast(y) becomes x (1 / y) */
    [TRN_OP_pow] = ULPS(3, 3),
    [TRN_OP_maximum] = EXACT,
    [TRN_OP_greater] = EXACT,
    [TRN_OP_equal] = EXACT,
    [TRN_OP_where] = MOVES,
    [TRN_OP_add_scalar] = EXACT,
    [TRN_OP_mul_scalar] = EXACT,
    [TRN_OP_cast] = EXACT,
    [TRN_OP_copy] = MOVES,
    [TRN_OP_check_finite] = MOVES,
    [TRN_OP_reshape] = MOVES,
    [TRN_OP_permute] = MOVES,
    [TRN_OP_expand] = MOVES,
    [TRN_OP_slice] = MOVES,
    [TRN_OP_pad] = MOVES,
    /* Sums of n terms in the computing type, in any order: half a unit for
     * each term is what the order may cost on average, and more than it does */
    [TRN_OP_sum] = SUM(2, 0.5),
    [TRN_OP_mean] = SUM(2, 0.5),
    [TRN_OP_norm] = SUM(3, 0.5),
    [TRN_OP_max] = EXACT,
    [TRN_OP_argmax] = EXACT,
    [TRN_OP_matmul] = SUM(2, 0.5),
    [TRN_OP_embedding] = MOVES,
    [TRN_OP_embedding_grad] = EXACT, /* added in the order of the indices */
    [TRN_OP_gather] = MOVES,
    [TRN_OP_scatter_add] = EXACT,
    [TRN_OP_uniform] = EXACT,
    [TRN_OP_normal] = ULPS(1, 6), /* log, sine and cosine in f64 */
    [TRN_OP_full] = MOVES,
    [TRN_OP_dropout] = EXACT,
    [TRN_OP_softmax] = SUM(4, 0.5),
    [TRN_OP_log_softmax] = SUM(4, 0.5),
    [TRN_OP_cross_entropy] = SUM(4, 0.5),
    [TRN_OP_cross_entropy_grad] = SUM(4, 0.5),
    [TRN_OP_cross_entropy_weighted] = SUM(6, 0.5),
    [TRN_OP_soft_cross_entropy] = SUM(6, 0.5),
    [TRN_OP_assign] = MOVES,
    [TRN_OP_concat] = MOVES,
    [TRN_OP_flip] = MOVES,
    [TRN_OP_index_select] = MOVES,
    [TRN_OP_one_hot] = EXACT,
    [TRN_OP_randint] = MOVES, /* the host's */
    [TRN_OP_permutation] = MOVES,
    /* a b + c is one operation where the processor has it */
    [TRN_OP_sgd_update] = SUM(3, 0),
    [TRN_OP_sgd_momentum_update] = SUM(4, 0),
    [TRN_OP_adamw_update] = SUM(3, 0),
    [TRN_OP_abs] = EXACT,
    [TRN_OP_sign] = EXACT,
    [TRN_OP_floor] = EXACT,
    [TRN_OP_ceil] = EXACT,
    [TRN_OP_round] = EXACT,
    [TRN_OP_rsqrt] = ULPS(3, 3), /* a root and a quotient */
    [TRN_OP_minimum] = EXACT,
    [TRN_OP_less] = EXACT,
    [TRN_OP_less_equal] = EXACT,
    [TRN_OP_greater_equal] = EXACT,
    [TRN_OP_not_equal] = EXACT,
    [TRN_OP_min] = EXACT,
    [TRN_OP_var] = SUM(4, 0.5),
    [TRN_OP_logsumexp] = SUM(4, 0.5),
    [TRN_OP_mse_loss] = SUM(4, 0.5),
    [TRN_OP_sigmoid] = ULPS(4, 4),
    [TRN_OP_silu] = ULPS(4, 4),
    [TRN_OP_gelu_tanh] = SUM(6, 0),
    [TRN_OP_sin] = ULPS(4, 4),
    [TRN_OP_cos] = ULPS(4, 4),
    [TRN_OP_erf] = ULPS(6, 4),
    [TRN_OP_atan2] = ULPS(4, 4),
    [TRN_OP_trunc] = EXACT,
    [TRN_OP_gelu] = ULPS(6, 6),
};

long double xla_tiny(trn_dtype dtype)
{
    return dtype == TRN_F64 ? 0x1p-1022L : 0x1p-126L;
}

void xla_flush_inputs(case_args *a)
{
    if (xla_bounds[a->tc->op].moves)
        return;
    for (int i = 0; i < a->n_in; i++) {
        case_input *x = &a->in[i];
        for (int64_t j = 0; dtype_is_float(x->dtype) && j < x->n; j++) {
            if (fabsl(x->v[j]) < xla_tiny(x->dtype))
                x->v[j] = copysignl(0, x->v[j]);
        }
    }
}

static long double unit_of(trn_dtype dtype)
{
    return dtype == TRN_F64 ? 0x1p-53L : 0x1p-24L;
}

static double ulps_allowed(const xla_bound *b, trn_dtype dtype)
{
    return dtype == TRN_F64   ? b->ulp_f64
           : dtype == TRN_F32 ? b->ulp_f32
                              : b->ulp_small;
}

static double larger(double old, long double now)
{
    return now > old ? (double)now : old;
}

/* Is element i near enough?  All of them count for the worst. */
static bool near(const case_args *a, const oracle_result *r,
                 const oracle_tensor *y, long double want, long double got,
                 int64_t i, xla_worst *worst)
{
    const xla_bound *b = &xla_bounds[a->tc->op];
    if (want == got || (isnan(want) && isnan(got)))
        return true;
    if (!isfinite(want) || !isfinite(got) || !dtype_is_float(y->dtype))
        return false;
    long double off = fabsl(want - got);
    long double ulp = dtype_ulp(y->dtype, want);
    long double unit = unit_of(a->dtype) * y->size[i];
    long double bound = ulps_allowed(b, y->dtype) * ulp +
                        (b->units + b->per_term * (double)r->length) * unit;
    /* There it is e^(b ln a), and an error of the exponent one of the power. */
    if (xla_is_neuron() && a->tc->op == TRN_OP_pow)
        bound += (2 * fabsl(logl(fabsl(want))) + 2) * unit;
    if (off <= xla_tiny(y->dtype))
        return true;
    worst->ulps = larger(worst->ulps, off / ulp);
    worst->units = larger(worst->units, unit > 0 ? off / unit : 0);
    if (bound > 0)
        worst->share = larger(worst->share, off / bound);
    return off <= bound;
}

int64_t xla_too_far(const case_args *a, const oracle_result *r,
                    const oracle_tensor *y, const void *want, const void *got,
                    xla_worst *worst)
{
    int64_t first = -1;
    worst->seen = true;
    if (xla_bounds[a->tc->op].moves)
        return dtype_differ(y->dtype, want, got, y->n);
    for (int64_t i = 0; i < y->n; i++) {
        bool good = near(a, r, y, dtype_get(y->dtype, want, i),
                         dtype_get(y->dtype, got, i), i, worst);
        if (!good && first < 0)
            first = i;
    }
    return first;
}
