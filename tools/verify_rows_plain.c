/* SPDX-License-Identifier: Apache-2.0
 *
 * `trn verify`: rows that work element by element, move elements, or draw
 * them.
 */
#include <stdio.h>

#include "tools/verify_rows.h"

typedef trn_tensor *unary_fn(trn_tensor *x);
typedef trn_tensor *binary_fn(trn_tensor *a, trn_tensor *b);

static const struct {
    const char *name;
    unary_fn *fn;
    bool positive, second; /* domain; does the gradient depend on x? */
} unaries[] = {
    {"neg", trn_neg, false, false},   {"exp", trn_exp, false, true},
    {"log", trn_log, true, true},     {"tanh", trn_tanh, false, true},
    {"sqrt", trn_sqrt, true, true},   {"relu", trn_relu, false, false},
    {"copy", trn_copy, false, false}, {"abs", trn_abs, false, false},
    {"sign", trn_sign, false, false}, {"floor", trn_floor, false, false},
    {"ceil", trn_ceil, false, false}, {"round", trn_round, false, false},
    {"rsqrt", trn_rsqrt, true, true}, {"sigmoid", trn_sigmoid, false, true},
    {"silu", trn_silu, false, true},  {"gelu_tanh", trn_gelu_tanh, false, true},
    {"sin", trn_sin, false, true},    {"cos", trn_cos, false, true},
    {"erf", trn_erf, false, true},    {"trunc", trn_trunc, false, false},
    {"gelu", trn_gelu, false, true},
};

static const struct {
    const char *name;
    binary_fn *fn;
    bool positive, second;
    int n_gradients;
} binaries[] = {
    {"add", trn_add, false, false, 2},
    {"sub", trn_sub, false, false, 2},
    {"mul", trn_mul, false, true, 2},
    {"div", trn_div, true, true, 2},
    {"pow", trn_pow, true, true, 2},
    {"maximum", trn_maximum, false, false, 2},
    {"greater", trn_greater, false, false, 0},
    {"equal", trn_equal, false, false, 0},
    {"minimum", trn_minimum, false, false, 2},
    {"less", trn_less, false, false, 0},
    {"less_equal", trn_less_equal, false, false, 0},
    {"greater_equal", trn_greater_equal, false, false, 0},
    {"not_equal", trn_not_equal, false, false, 0},
    {"atan2", trn_atan2, false, true, 2},
};

enum {
    N_UNARIES = (int)(sizeof unaries / sizeof unaries[0]),
    N_BINARIES = (int)(sizeof binaries / sizeof binaries[0]),
};

/* Rows of both tables.  Those of `later` come behind all families, so that what
 * was drawn for the others, and their digests, stay. */
typedef struct part {
    int unary, unary_end, binary, binary_end;
} part;

static const part earlier = {0, 16, 0, 13};
static const part later = {16, N_UNARIES, 13, N_BINARIES};

/* Zeros, infinities, NaN, limits and subnormals of the formats, and where
 * functions change their method. */
static trn_tensor *special_values(verify_sink *s)
{
    static const double inf = 1e300 * 1e10;
    const double v[] = {
        0.0,    -0.0,   inf,    -inf,   inf - inf, 1.0,    -1.0,     0.5,
        -0.5,   2.0,    3.0,    1e-3,   -1e-3,     1e-8,   1e-38,    -1e-38,
        1e-40,  1e-45,  6e-5,   6e-8,   3e38,      -3e38,  65504.0,  65520.0,
        88.7,   -87.3,  -87.34, -103.9, 709.7,     -708.3, -708.4,   -745.1,
        1e-308, 5e-324, 1e308,  -1e308, 0.1,       10.0,   16777217, 1e10,
        -1e10,  3e9,    -3e9,   1e19,   255.5,     256.0,  -128.7,   0.70711,
    };
    int64_t n = (int64_t)(sizeof v / sizeof v[0]);
    return trn_cast(trn_tensor_from(s->c, TRN_F64, 1, &n, v), s->dtype);
}

static void special_rows(verify_sink *s, trn_tensor *x, part p)
{
    char name[64];
    const int64_t n = trn_tensor_numel(x);
    trn_tensor *column = trn_reshape(x, 2, (int64_t[]){n, 1});
    for (int i = p.unary; i < p.unary_end; i++) {
        snprintf(name, sizeof name, "%s/special", unaries[i].name);
        verify_put(s, name, unaries[i].fn(x));
    }
    for (int i = p.binary; i < p.binary_end; i++) {
        snprintf(name, sizeof name, "%s/special", binaries[i].name);
        verify_put(s, name, binaries[i].fn(column, x));
    }
}

static void drawn_rows(verify_sink *s, part p)
{
    const int64_t shape[] = {3, 1367}, row[] = {1367};
    for (int i = p.unary; i < p.unary_end; i++) {
        trn_tensor *x = unaries[i].positive
                            ? verify_positive(s, 2, shape, 3.0, 0.01)
                            : verify_uniform(s, 2, shape, 3.0);
        verify_put_all(s, unaries[i].name, unaries[i].fn(x), 1, &x,
                       unaries[i].second);
    }
    for (int i = p.binary; i < p.binary_end; i++) {
        trn_tensor *in[2];
        in[0] = binaries[i].positive ? verify_positive(s, 2, shape, 2.0, 0.1)
                                     : verify_uniform(s, 2, shape, 2.0);
        in[1] = binaries[i].positive ? verify_positive(s, 1, row, 2.0, 0.1)
                                     : verify_uniform(s, 1, row, 2.0);
        verify_put_all(s, binaries[i].name, binaries[i].fn(in[0], in[1]),
                       binaries[i].n_gradients, in, binaries[i].second);
    }
}

void verify_rows_elementwise(verify_sink *s)
{
    const int64_t shape[] = {3, 1367};
    trn_tensor *in[2];
    drawn_rows(s, earlier);
    in[0] = verify_uniform(s, 2, shape, 2.0);
    in[1] = verify_uniform(s, 2, shape, 2.0);
    trn_tensor *which = trn_greater(in[0], in[1]);
    verify_put_all(s, "where", trn_where(which, in[0], in[1]), 2, in, false);
    verify_put_all(s, "add_scalar", trn_add_scalar(in[0], 0.1), 1, in, false);
    verify_put_all(s, "mul_scalar", trn_mul_scalar(in[0], 0.1), 1, in, false);
    verify_put_all(s, "check_finite", trn_check_finite(in[0]), 1, in, false);
#define X(NAME, code, text, bytes) \
    verify_put(s, "cast/" text, trn_cast(in[0], TRN_##NAME));
    TRN_DTYPE_LIST(X)
#undef X
    trn_tensor *special = special_values(s);
    special_rows(s, special, earlier);
#define X(NAME, code, text, bytes) \
    verify_put(s, "cast/special/" text, trn_cast(special, TRN_##NAME));
    TRN_DTYPE_LIST(X)
#undef X
}

void verify_rows_functions(verify_sink *s)
{
    drawn_rows(s, later);
    special_rows(s, special_values(s), later);
}

void verify_rows_shape(verify_sink *s)
{
    const int64_t shape[] = {7, 1, 33}, wide[] = {7, 19, 33};
    const int64_t flat[] = {33, -1};
    const int order[] = {2, 0, 1};
    trn_tensor *x = verify_uniform(s, 3, shape, 1.0);
    trn_tensor *y = trn_permute(x, order);
    verify_put_all(s, "permute", y, 1, &x, false);
    verify_put_all(s, "reshape", trn_reshape(y, 2, flat), 1, &x, false);
    verify_put_all(s, "expand", trn_expand(x, 3, wide), 1, &x, false);
    verify_put_all(s, "slice", trn_slice(x, 2, 3, -2, 4), 1, &x, false);
    verify_put_all(s, "pad", trn_pad(x, 2, 3, 1, 2), 1, &x, false);
}

void verify_rows_random(verify_sink *s)
{
    const int64_t shape[] = {3, 9001};
    verify_put(s, "uniform", trn_uniform(s->g, s->dtype, 2, shape));
    verify_put(s, "normal", trn_normal(s->g, s->dtype, 1, (int64_t[]){4099}));
    verify_put(s, "full", trn_full(s->c, s->dtype, 2, shape, 0.1));
    trn_tensor *x = verify_uniform(s, 2, shape, 1.0);
    verify_put_all(s, "dropout", trn_dropout(x, 0.3, s->g), 1, &x, false);
}
