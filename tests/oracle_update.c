/* SPDX-License-Identifier: Apache-2.0
 *
 * The oracle of the optimizers' rows.  Constants are those that case_call()
 * gives, rounded to the computing type.
 */
#include <math.h>

#include "oracle.h"

static long double attr(const case_args *a, const char *name, double otherwise)
{
    return oracle_value(a->dtype, attr_real(a->tc, name, otherwise));
}

static void sgd(const case_args *a, oracle_tensor *p, oracle_tensor *b)
{
    long double lr = attr(a, "lr", 0.1), wd = attr(a, "wd", 0.01);
    long double mu = attr(a, "mu", 0.9), undamped = attr(a, "undamped", 1.0);
    for (int64_t i = 0; i < p->n; i++) {
        long double x = a->in[0].v[i], g = a->in[1].v[i];
        long double d = g + wd * x, s = d;
        long double size = fabsl(g) + fabsl(wd * x);
        if (b != NULL) {
            long double old = a->in[2].v[i];
            b->v[i] = mu * old + undamped * d;
            b->size[i] = fabsl(mu * old) + fabsl(undamped) * size;
            s = attr_int(a->tc, "nesterov", 0) ? d + mu * b->v[i] : b->v[i];
            size += b->size[i];
        }
        p->v[i] = x - lr * s;
        p->size[i] = fabsl(x) + lr * size;
    }
}

static void adamw(const case_args *a, oracle_tensor *p, oracle_tensor *m,
                  oracle_tensor *v)
{
    static const double given[7] = {0.999, 0.1, 0.999, 0.001, 0.01, 0.5, 1e-8};
    long double k[7];
    for (int i = 0; i < 7; i++)
        k[i] = oracle_value(a->dtype, given[i]);
    for (int64_t i = 0; i < p->n; i++) {
        long double x = a->in[0].v[i], g = a->in[1].v[i];
        long double m0 = a->in[2].v[i], v0 = a->in[3].v[i];
        m->v[i] = m0 + k[1] * (g - m0);
        v->v[i] = k[2] * v0 + k[3] * g * g;
        long double root = sqrtl(v->v[i]) / k[5] + k[6];
        p->v[i] = x * k[0] - k[4] * m->v[i] / root;
        m->size[i] = fabsl(m0) + fabsl(g);
        v->size[i] = v->v[i];
        p->size[i] = fabsl(x) + k[4] * m->size[i] / root;
    }
}

void oracle_update(const case_args *a, oracle_result *r)
{
    const case_input *x = &a->in[0];
    int n_out = a->tc->op == TRN_OP_adamw_update ? 3 : a->n_in - 1;
    for (int i = 0; i < n_out; i++)
        oracle_make(r, i, a->dtype, x->rank, x->dim);
    if (a->tc->op == TRN_OP_adamw_update)
        adamw(a, &r->out[0], &r->out[1], &r->out[2]);
    else
        sgd(a, &r->out[0], n_out > 1 ? &r->out[1] : NULL);
    r->tolerance = TOLERANCE_COMPOSITE;
}
