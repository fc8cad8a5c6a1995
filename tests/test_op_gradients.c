/* SPDX-License-Identifier: Apache-2.0
 *
 * Gradients of every row in f64 against central differences.
 *
 * First order: trn_grad of y with a random seed v against differences of
 * sum(v y).  Second order: trn_grad of S = sum_i w_i gx_i (gx recorded, w
 * random) against differences of S, where every gx in S is an analytic first
 * gradient; with respect to the inputs and to v.  Domains of the rows keep the
 * inputs ten steps away from kinks and ties.
 */
#include <math.h>
#include <stdlib.h>

#include "case_build.h"
#include "tolerances.h"

enum { MAX_PROBES = 24 };

/* One case's inputs, the seed v and the weights w as numbers. */
typedef struct probe {
    trn_context *c;
    case_args a;
    bool wanted[CASE_MAX_IN];
    case_input v;              /* seed: shape of the output */
    case_input w[CASE_MAX_IN]; /* weights: shapes of the inputs */
} probe;

static bool skipped(const op_case *tc)
{
    return attr_has(tc, "special") || attr_has(tc, "equal") ||
           attr_real(tc, "scale", 1.0) > 10.0 ||
           !trn__ops[tc->op].differentiable;
}

static void fill(case_input *x, uint64_t *state)
{
    x->v = malloc((size_t)(x->n + 1) * sizeof *x->v);
    assert_non_null(x->v);
    for (int64_t i = 0; i < x->n; i++)
        x->v[i] = (long double)harness_uniform(state, -1.0, 1.0);
}

/* Input tensors that are leaves with gradient; plain memory for differences. */
static void leaves(probe *p, case_layout layout, trn_tensor **in)
{
    case_tensors(p->c, &p->a, layout, in);
    for (int i = 0; i < p->a.n_in; i++) {
        if (p->wanted[i])
            trn_set_requires_grad(in[i], true);
    }
}

static long double dot(trn_tensor *t, const case_input *w)
{
    if (t == NULL)
        return 0;
    long double sum = 0;
    void *data = harness_bytes_of(t, NULL);
    assert_int_equal(trn_tensor_numel(t), w->n);
    for (int64_t i = 0; i < w->n; i++)
        sum += w->v[i] * dtype_get(TRN_F64, data, i);
    free(data);
    return sum;
}

/* The wanted inputs one after the other; returns how many. */
static int chosen(const probe *p, trn_tensor **in, trn_tensor **some)
{
    int n = 0;
    for (int i = 0; i < p->a.n_in; i++) {
        if (p->wanted[i])
            some[n++] = in[i];
    }
    return n;
}

/* sum(v y) */
static long double value_of(probe *p)
{
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT];
    trn_step_begin(p->c);
    trn_no_grad_begin(p->c);
    case_tensors(p->c, &p->a, LAYOUT_PLAIN, in);
    case_apply(p->c, &p->a, in, out);
    trn_no_grad_end(p->c);
    harness_ok(p->c);
    long double s = dot(out[0], &p->v);
    trn_step_end(p->c);
    return s;
}

/* First gradients of sum(v y); v and gradients recorded for the second. */
static int first_gradients(probe *p, case_layout layout, bool record,
                           trn_tensor **in, trn_tensor **v, trn_tensor **g)
{
    trn_tensor *out[CASE_MAX_OUT] = {NULL}, *some[CASE_MAX_IN];
    trn_grad_options o = TRN_GRAD_INIT;
    o.create_graph = record;
    leaves(p, layout, in);
    *v = case_tensor(p->c, &p->v, LAYOUT_PLAIN);
    trn_set_requires_grad(*v, record);
    case_apply(p->c, &p->a, in, out);
    int n = chosen(p, in, some);
    trn_status status = trn_grad(1, out, n, some, v, &o, g);
    CHECK(status == TRN_OK, "%s: %s\n", case_text(&p->a), trn_errmsg(p->c));
    for (int j = 0; j < n; j++) {
        if (g[j] != NULL)
            assert_int_equal(trn_tensor_dtype(g[j]), TRN_F64);
    }
    return n;
}

/* S = sum_i w_i gx_i */
static long double slope_of(probe *p)
{
    trn_tensor *in[CASE_MAX_IN], *v, *g[CASE_MAX_IN];
    long double s = 0;
    trn_step_begin(p->c);
    int n = first_gradients(p, LAYOUT_PLAIN, false, in, &v, g);
    for (int i = 0, j = 0; j < n; i++) {
        if (p->wanted[i])
            s += dot(g[j++], &p->w[i]);
    }
    harness_ok(p->c);
    trn_step_end(p->c);
    return s;
}

/* A row of an embedding that gets no gradient by decree. */
static bool is_padding(const probe *p, const char *order, int64_t i)
{
    int64_t padding = attr_int(p->a.tc, "padding", -1);
    return p->a.tc->op == TRN_OP_embedding && padding >= 0 &&
           strcmp(order, "first") == 0 && i / p->a.in[0].dim[1] == padding;
}

/* The gradient in `got` of f with respect to x, at some of its elements. */
static void compare(probe *p, const char *order, case_input *x, trn_tensor *got,
                    long double (*f)(probe *p))
{
    if (x->n == 0)
        return;
    void *data = got == NULL ? NULL : harness_bytes_of(got, NULL);
    uint64_t state = 17;
    int64_t stride = x->n <= MAX_PROBES ? 1 : x->n / MAX_PROBES;
    for (int64_t i = 0; i < x->n;
         i += stride == 1 ? 1
                          : 1 + (int64_t)(harness_random(&state) %
                                          (uint64_t)(2 * stride))) {
        long double old = x->v[i];
        long double h = GRADIENT_STEP * fmaxl(1, fabsl(old));
        x->v[i] = dtype_round(TRN_F64, old + h);
        long double up = x->v[i], high = f(p);
        x->v[i] = dtype_round(TRN_F64, old - h);
        long double low = f(p);
        long double want = (high - low) / (up - x->v[i]);
        x->v[i] = old;
        if (is_padding(p, order, i))
            want = 0;
        long double found = data == NULL ? 0 : dtype_get(TRN_F64, data, i);
        long double size = 1 + fabsl(want) + fabsl(high);
        CHECK(fabsl(found - want) <= GRADIENT_TOLERANCE * size,
              "%s: %s gradient of input of rank %d, element %lld: %.12Lg, "
              "differences give %.12Lg\n",
              case_text(&p->a), order, x->rank, (long long)i, found, want);
    }
    free(data);
}

static void prepare(probe *p, trn_context *c, const op_case *tc)
{
    trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT] = {NULL};
    uint64_t state = 99;
    *p = (probe){.c = c};
    case_make(&p->a, tc, TRN_F64);
    for (int i = 0; i < p->a.n_in; i++) {
        /* A cast's input has one type, its output another: to f64 here. */
        p->wanted[i] = p->a.in[i].kind == KIND_VALUES;
        p->w[i] = p->a.in[i];
        fill(&p->w[i], &state);
    }
    trn_step_begin(c);
    case_tensors(c, &p->a, LAYOUT_PLAIN, in);
    CHECK(case_apply(c, &p->a, in, out) == 1, "%s: %s\n", case_text(&p->a),
          trn_errmsg(c));
    p->v = (case_input){
        .dtype = trn_tensor_dtype(out[0]),
        .rank = trn_tensor_rank(out[0]),
        .n = trn_tensor_numel(out[0]),
    };
    for (int d = 0; d < p->v.rank; d++)
        p->v.dim[d] = trn_tensor_dim(out[0], d);
    trn_step_end(c);
    fill(&p->v, &state);
}

static void finish(probe *p)
{
    for (int i = 0; i < p->a.n_in; i++)
        free(p->w[i].v);
    free(p->v.v);
    case_free(&p->a);
}

/* Two gradients may be one tensor: that of x + y is the seed for both. */
static void release_each(int n, trn_tensor **g)
{
    for (int j = 0; j < n; j++) {
        bool seen = false;
        for (int i = 0; i < j; i++)
            seen = seen || g[i] == g[j];
        if (!seen)
            trn_tensor_release(g[j]);
    }
}

static void check_first(probe *p)
{
    trn_tensor *in[CASE_MAX_IN], *v, *g[CASE_MAX_IN];
    trn_context *c = p->c;
    trn_step_begin(c);
    int n = first_gradients(p, LAYOUT_AS_GIVEN, false, in, &v, g);
    for (int j = 0; j < n; j++)
        trn_keep(g[j]);
    trn_step_end(c);
    for (int i = 0, j = 0; j < n; i++) {
        if (p->wanted[i])
            compare(p, "first", &p->a.in[i], g[j++], value_of);
    }
    release_each(n, g);
}

static void check_second(probe *p)
{
    trn_tensor *in[CASE_MAX_IN + 1], *v, *g[CASE_MAX_IN], *some[CASE_MAX_IN];
    trn_tensor *h[CASE_MAX_IN + 1], *sum = NULL;
    trn_context *c = p->c;
    trn_grad_options o = TRN_GRAD_INIT;
    trn_step_begin(c);
    int n = first_gradients(p, LAYOUT_AS_GIVEN, true, in, &v, g);
    for (int i = 0, j = 0; j < n; i++) {
        if (!p->wanted[i])
            continue;
        trn_tensor *w = case_tensor(c, &p->w[i], LAYOUT_PLAIN);
        trn_tensor *part = g[j] == NULL
                               ? NULL
                               : trn_sum(trn_mul(g[j], w), TRN_ALL_AXES, false);
        if (part != NULL)
            sum = sum == NULL ? part : trn_add(sum, part);
        j++;
    }
    harness_ok(c);
    assert_non_null(sum);
    chosen(p, in, some);
    some[n] = v;
    o.zeros = true;
    trn_status status = trn_grad(1, &sum, n + 1, some, NULL, &o, h);
    CHECK(status == TRN_OK, "%s: second: %s\n", case_text(&p->a),
          trn_errmsg(c));
    for (int j = 0; j <= n; j++)
        trn_keep(h[j]);
    trn_step_end(c);
    for (int i = 0, j = 0; j < n; i++) {
        if (p->wanted[i])
            compare(p, "second", &p->a.in[i], h[j++], slope_of);
    }
    compare(p, "second (seed)", &p->v, h[n], slope_of);
    release_each(n + 1, h);
}

/* Rows whose cases ran, so that none is forgotten. */
static bool ran[TRN_OP_LIMIT];

/* A cast to a smaller type is not smooth; its gradient is a cast back. */
static bool is_smooth(const op_case *tc)
{
    return tc->op != TRN_OP_cast || attr_dtype(tc, "to", TRN_F32) == TRN_F64;
}

static void run_cases(trn_context *c, void (*check)(probe *p))
{
    memset(ran, 0, sizeof ran);
    for (int i = 0; i < n_op_cases; i++) {
        probe p;
        if (skipped(&op_cases[i]) || !is_smooth(&op_cases[i]))
            continue;
        prepare(&p, c, &op_cases[i]);
        check(&p);
        finish(&p);
        ran[op_cases[i].op] = true;
    }
    for (int op = 0; op < TRN_OP_LIMIT; op++) {
        CHECK(trn__ops[op].name == NULL || !trn__ops[op].differentiable ||
                  ran[op],
              "row %s: no case was differentiated\n", trn__ops[op].name);
    }
}

static void first_gradients_equal_central_differences(void **state)
{
    run_cases(*state, check_first);
}

static void second_gradients_equal_central_differences(void **state)
{
    run_cases(*state, check_second);
}

/* Linear: the gradient of a cast is the seed, cast. */
static void casts_between_float_types_pass_gradients(void **state)
{
    static const trn_dtype types[] = {TRN_F64, TRN_F32, TRN_BF16, TRN_F16};
    trn_context *c = *state;
    for (int i = 0; i < 16; i++) {
        trn_tensor *g = NULL;
        int64_t shape[1] = {2};
        trn_tensor *x = trn_full(c, types[i / 4], 1, shape, 1.0);
        trn_set_requires_grad(x, true);
        trn_tensor *y = trn_cast(x, types[i % 4]);
        trn_tensor *v = trn_full(c, types[i % 4], 1, shape, 0.5);
        trn_grad(1, &y, 1, &x, &v, NULL, &g);
        harness_ok(c);
        assert_int_equal(trn_tensor_dtype(g), types[i / 4]);
        harness_equal(g, 2, 0.5, 0.5);
    }
}

static void gradients_in_small_types_have_the_type_of_the_input(void **state)
{
    static const trn_dtype types[] = {TRN_F32, TRN_BF16, TRN_F16};
    trn_context *c = *state;
    for (int i = 0; i < n_op_cases; i++) {
        if (!trn__ops[op_cases[i].op].differentiable ||
            op_cases[i].op == TRN_OP_cast)
            continue;
        for (int d = 0; d < 3; d++) {
            case_args a;
            trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT], *g[1];
            int x = op_cases[i].op == TRN_OP_where ||
                            op_cases[i].op == TRN_OP_assign
                        ? 1
                        : 0;
            case_make(&a, &op_cases[i], types[d]);
            trn_step_begin(c);
            case_tensors(c, &a, LAYOUT_AS_GIVEN, in);
            trn_set_requires_grad(in[x], true);
            assert_int_equal(case_apply(c, &a, in, out), 1);
            trn_grad(1, out, 1, &in[x], out, NULL, g);
            CHECK(trn_errcode(c) == TRN_OK, "%s: %s\n", case_text(&a),
                  trn_errmsg(c));
            CHECK(trn_tensor_dtype(g[0]) == types[d], "%s: gradient is %s\n",
                  case_text(&a), trn_dtype_name(trn_tensor_dtype(g[0])));
            trn_step_end(c);
            case_free(&a);
        }
    }
}

static void rows_without_gradient_say_so_when_asked(void **state)
{
    trn_context *c = *state;
    for (int i = 0; i < n_op_cases; i++) {
        case_args a;
        trn_tensor *in[CASE_MAX_IN], *out[CASE_MAX_OUT];
        if (trn__ops[op_cases[i].op].differentiable ||
            trn__ops[op_cases[i].op].writes != 0)
            continue;
        case_make(&a, &op_cases[i], TRN_F32);
        trn_step_begin(c);
        case_tensors(c, &a, LAYOUT_AS_GIVEN, in);
        for (int j = 0; j < a.n_in; j++) {
            if (a.in[j].kind == KIND_VALUES)
                trn_set_requires_grad(in[j], true);
        }
        assert_int_equal(case_apply(c, &a, in, out), 1);
        assert_false(trn_requires_grad(out[0]));
        assert_int_equal(trn_backward_with(out[0], out[0], false),
                         TRN_ERR_NOGRAD);
        harness_error(c, TRN_ERR_NOGRAD, "trn_backward");
        trn_step_end(c);
        case_free(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRN_TEST(first_gradients_equal_central_differences),
        TRN_TEST(second_gradients_equal_central_differences),
        TRN_TEST(casts_between_float_types_pass_gradients),
        TRN_TEST(gradients_in_small_types_have_the_type_of_the_input),
        TRN_TEST(rows_without_gradient_say_so_when_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
