/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows sin, cos, atan2, erf, gelu, sigmoid and gelu_tanh.
 *
 * HLO has no function by which the lower tail of the normal distribution keeps
 * its digits, and the profile neuron has no erf; both are composed here.
 */
#include "backends/hlo/hlo_lower.h"

int32_t trn__hlo_lower_sin(trn__hlo_lowering *l)
{
    const int32_t x = trn__hlo_up(l, 0);
    return trn__hlo_down(l, trn__hlo_unary(&l->m, TRN__HLO_OP_SIN, x));
}

int32_t trn__hlo_lower_cos(trn__hlo_lowering *l)
{
    const int32_t x = trn__hlo_up(l, 0);
    return trn__hlo_down(l, trn__hlo_unary(&l->m, TRN__HLO_OP_COS, x));
}

int32_t trn__hlo_lower_atan2(trn__hlo_lowering *l)
{
    const int32_t a = trn__hlo_up(l, 0), b = trn__hlo_up(l, 1);
    return trn__hlo_down(l, trn__hlo_binary(&l->m, TRN__HLO_OP_ATAN2, a, b));
}

static int32_t times(trn__hlo_module *m, int32_t a, int32_t b)
{
    return trn__hlo_binary(m, TRN__HLO_OP_MULTIPLY, a, b);
}

static int32_t scaled(trn__hlo_module *m, int32_t x, double factor)
{
    return times(m, x, trn__hlo_like(m, factor, x));
}

static int32_t shifted(trn__hlo_module *m, int32_t x, double summand)
{
    return trn__hlo_binary(m, TRN__HLO_OP_ADD, x, trn__hlo_like(m, summand, x));
}

/* Coefficients from the highest power on. */
static int32_t polynomial(trn__hlo_module *m, int32_t t, int n, const double *c)
{
    int32_t p = trn__hlo_like(m, c[0], t);
    for (int i = 1; i < n; i++)
        p = shifted(m, times(m, p, t), c[i]);
    return p;
}

/*
 * Phi(-a) for a >= 0 as q e: e = e^(-a^2/2), q = P(t) / (1 + sqrt(2/pi) a),
 * t = (a - k) / (a + k).  P interpolates at the Chebyshev nodes up to a = end,
 * from where on the exponential is 0; error of the fits 2^-29 and 2^-58.
 */
typedef struct tail_fit {
    double end, k, c;
    double grid; /* a cut to multiples of 1 / grid has an exact square */
    int n;
    double p[24];
} tail_fit;

static const tail_fit tail_f32 = {
    .end = 15.0,
    .k = 4.0,
    .c = 0x1.988454p-1,
    .grid = 16.0,
    .n = 11,
    .p =
        {
            -0x1.e4e752p-15,
            -0x1.0dfbcp-14,
            0x1.0ea28ep-11,
            -0x1.c60bdap-14,
            -0x1.fdc436p-9,
            0x1.9cc46ep-7,
            -0x1.3eb2dcp-6,
            0x1.10d7p-7,
            0x1.29719ep-5,
            -0x1.c91b36p-4,
            0x1.953926p-2,
        },
};

static const tail_fit tail_f64 = {
    .end = 39.0,
    .k = 5.0,
    .c = 0x1.9884533d43651p-1,
    .grid = 65536.0,
    .n = 24,
    .p =
        {
            -0x1.f1a9f3668d697p-33, -0x1.98d8325687c44p-35,
            0x1.c9b5b4edcccc8p-29,  0x1.5ca23141b858bp-29,
            -0x1.9991e1f6a69e2p-26, -0x1.7d6c587d1e564p-26,
            0x1.40cb8eddd2edep-23,  0x1.f5f396d9bfc9p-24,
            -0x1.0b02cc834c844p-20, -0x1.9cd545e3bf7fbp-23,
            0x1.d3e88fbbe19cap-18,  -0x1.b7c5383142869p-18,
            -0x1.652ca28995061p-15, 0x1.177bdd64d2791p-13,
            0x1.17cfff019a68dp-15,  -0x1.52ef93bda2093p-10,
            0x1.3586d51db98d1p-8,   -0x1.5115271568ebp-7,
            0x1.e673d9976e349p-7,   -0x1.7550b7eae152ep-7,
            -0x1.122ccea2ca85ep-7,  0x1.8b005f35040bfp-5,
            -0x1.a1f7fc8a83c1bp-4,  0x1.88fe64be84c1bp-2,
        },
};

typedef struct tail_parts {
    int32_t q, e;
} tail_parts;

static tail_parts tail(trn__hlo_module *m, int32_t a)
{
    const bool wide = trn__hlo_shape_of(m, a).type == TRN__HLO_F64;
    const tail_fit *f = wide ? &tail_f64 : &tail_f32;
    const int32_t end = trn__hlo_like(m, f->end, a);
    const int32_t beyond = trn__hlo_compare(m, TRN__HLO_GT, a, end);
    const int32_t b = trn__hlo_select(m, beyond, end, a);
    const int32_t t = trn__hlo_binary(
        m, TRN__HLO_OP_DIVIDE, shifted(m, b, -f->k), shifted(m, b, f->k));
    tail_parts y;
    y.q = trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, polynomial(m, t, f->n, f->p),
                          shifted(m, scaled(m, b, f->c), 1.0));
    /* b^2 = h^2 + (b - h) (b + h): an error of the exponent is one of e. */
    const int32_t h =
        scaled(m, trn__hlo_unary(m, TRN__HLO_OP_FLOOR, scaled(m, b, f->grid)),
               1.0 / f->grid);
    const int32_t rest =
        times(m, trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, b, h),
              trn__hlo_binary(m, TRN__HLO_OP_ADD, b, h));
    y.e = times(
        m, trn__hlo_unary(m, TRN__HLO_OP_EXP, scaled(m, times(m, h, h), -0.5)),
        trn__hlo_unary(m, TRN__HLO_OP_EXP, scaled(m, rest, -0.5)));
    return y;
}

/*
 * x (1 - q e), or where x is negative (x q) e: q e would be lost below the
 * smallest normal number, where x q e need not be.  -inf 0 is NaN.
 */
int32_t trn__hlo_lower_gelu(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t x = trn__hlo_up(l, 0);
    const tail_parts p = tail(m, trn__hlo_unary(m, TRN__HLO_OP_ABS, x));
    const int32_t low = times(m, times(m, x, p.q), p.e);
    const int32_t rest = trn__hlo_binary(
        m, TRN__HLO_OP_SUBTRACT, trn__hlo_like(m, 1.0, x), times(m, p.q, p.e));
    const int32_t below =
        trn__hlo_compare(m, TRN__HLO_LT, x, trn__hlo_like(m, 0.0, x));
    return trn__hlo_down(l, trn__hlo_select(m, below, low, times(m, x, rest)));
}

/* e = e^-|x|;  1 / (1 + e), or e / (1 + e) where x < 0: nothing overflows, and
 * small results keep their digits. */
static int32_t sigmoid(trn__hlo_module *m, int32_t x)
{
    const int32_t a = trn__hlo_unary(m, TRN__HLO_OP_ABS, x);
    const int32_t e = trn__hlo_unary(m, TRN__HLO_OP_EXP,
                                     trn__hlo_unary(m, TRN__HLO_OP_NEGATE, a));
    const int32_t below =
        trn__hlo_compare(m, TRN__HLO_LT, x, trn__hlo_like(m, 0.0, x));
    const int32_t top = trn__hlo_select(m, below, e, trn__hlo_like(m, 1.0, x));
    return trn__hlo_binary(m, TRN__HLO_OP_DIVIDE, top, shifted(m, e, 1.0));
}

int32_t trn__hlo_lower_sigmoid(trn__hlo_lowering *l)
{
    return trn__hlo_down(l, sigmoid(&l->m, trn__hlo_up(l, 0)));
}

/* x sigmoid(z), z = 2 sqrt(2/pi) (x + 0.044715 x^3) */
int32_t trn__hlo_lower_gelu_tanh(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t x = trn__hlo_up(l, 0);
    const int32_t cubic = scaled(m, times(m, x, x), 0.07135481627260025);
    const int32_t z = times(m, x, shifted(m, cubic, 1.5957691216057308));
    return trn__hlo_down(l, times(m, x, sigmoid(m, z)));
}

/*
 * x + x P(x^2) where |x| < 1, else 1 - 2 Phi(-sqrt(2) |x|) with the sign of x;
 * error of the fit 2^-34.  In f32, as that profile has no f64.
 */
static int32_t composed_erf(trn__hlo_module *m, int32_t x)
{
    static const double p[] = {
        -0x1.4383dep-17, 0x1.d8268p-14, -0x1.bcbe96p-11, 0x1.5628eep-8,
        -0x1.b829a8p-6,  0x1.ce2f08p-4, -0x1.812746p-2,  0x1.06eba8p-3,
    };
    const int32_t a = trn__hlo_unary(m, TRN__HLO_OP_ABS, x);
    const int32_t one = trn__hlo_like(m, 1.0, x);
    const int32_t square = times(m, x, x);
    const int32_t near = trn__hlo_binary(
        m, TRN__HLO_OP_ADD, x, times(m, x, polynomial(m, square, 8, p)));
    const tail_parts p2 = tail(m, scaled(m, a, 0x1.6a09e6p+0));
    const int32_t size = trn__hlo_binary(m, TRN__HLO_OP_SUBTRACT, one,
                                         times(m, scaled(m, p2.q, 2.0), p2.e));
    const int32_t below =
        trn__hlo_compare(m, TRN__HLO_LT, x, trn__hlo_like(m, 0.0, x));
    const int32_t far = trn__hlo_select(
        m, below, trn__hlo_unary(m, TRN__HLO_OP_NEGATE, size), size);
    return trn__hlo_select(m, trn__hlo_compare(m, TRN__HLO_LT, a, one), near,
                           far);
}

int32_t trn__hlo_lower_erf(trn__hlo_lowering *l)
{
    trn__hlo_module *m = &l->m;
    const int32_t x = trn__hlo_up(l, 0);
    const bool native = (l->profile->ops >> TRN__HLO_OP_ERF) & 1u;
    return trn__hlo_down(l, native ? trn__hlo_unary(m, TRN__HLO_OP_ERF, x)
                                   : composed_erf(m, x));
}
