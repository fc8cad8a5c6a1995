/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of the optimizer updates, for one element type; kernel_set.h has
 * the formulas.  No include guard: a set's update file includes this once for
 * f32 and once for f64, with defined
 *
 *   REAL          float or double
 *   SMALLEST      its smallest normal number
 *   SQRT(x)       its square root, one instruction without errno
 *   SGD, ADAMW    the structs of its VALUEs
 *   NAME(update)  the kernel's name
 *   TYPED(name)   name with the type's suffix
 *
 * Every operation is rounded by itself (-ffp-contract=off), as the tensor ops
 * of the decomposition do it, and the vectoriser keeps that: so there is one
 * source for all sets and it is the formula.
 */

/* What the op flush_subnormal does: see reproducibility.md, "subnormals". */
static inline REAL TYPED(flush)(REAL x)
{
    const REAL size = x < 0 ? -x : x;
    return size < SMALLEST ? 0 : x;
}

static void TYPED(sgd_plain)(int64_t n, const SGD *s, REAL *p, const REAL *g)
{
    const REAL lr = s->lr;
    const REAL weight_decay = s->weight_decay;
    for (int64_t i = 0; i < n; i++) {
        const REAL d = g[i] + weight_decay * p[i];
        p[i] = p[i] - lr * d;
    }
}

static void TYPED(sgd_momentum)(int64_t n, const SGD *s, REAL *p, const REAL *g,
                                REAL *buf)
{
    const REAL lr = s->lr;
    const REAL weight_decay = s->weight_decay;
    const REAL momentum = s->momentum;
    const REAL one_minus_dampening = s->one_minus_dampening;
    for (int64_t i = 0; i < n; i++) {
        const REAL d = g[i] + weight_decay * p[i];
        const REAL b =
            TYPED(flush)(momentum * buf[i] + one_minus_dampening * d);
        buf[i] = b;
        p[i] = p[i] - lr * b;
    }
}

static void TYPED(sgd_nesterov)(int64_t n, const SGD *s, REAL *p, const REAL *g,
                                REAL *buf)
{
    const REAL lr = s->lr;
    const REAL weight_decay = s->weight_decay;
    const REAL momentum = s->momentum;
    const REAL one_minus_dampening = s->one_minus_dampening;
    for (int64_t i = 0; i < n; i++) {
        const REAL d = g[i] + weight_decay * p[i];
        const REAL b =
            TYPED(flush)(momentum * buf[i] + one_minus_dampening * d);
        buf[i] = b;
        p[i] = p[i] - lr * (d + momentum * b);
    }
}

void NAME(sgd)(int64_t n, const SGD *s, REAL *p, const REAL *g, REAL *buf)
{
    if (!buf)
        TYPED(sgd_plain)(n, s, p, g);
    else if (s->nesterov)
        TYPED(sgd_nesterov)(n, s, p, g, buf);
    else
        TYPED(sgd_momentum)(n, s, p, g, buf);
}

void NAME(adamw)(int64_t n, const ADAMW *s, REAL *p, const REAL *g, REAL *m,
                 REAL *v)
{
    const ADAMW a = *s; /* a copy: the stores cannot change it */
    for (int64_t i = 0; i < n; i++) {
        const REAL m1 = TYPED(flush)(m[i] + a.one_minus_beta1 * (g[i] - m[i]));
        const REAL v1 =
            TYPED(flush)(a.beta2 * v[i] + a.one_minus_beta2 * (g[i] * g[i]));
        const REAL step = a.step_size * m1;
        const REAL scale = SQRT(v1) / a.sqrt_correction2 + a.eps;
        m[i] = m1;
        v[i] = v1;
        p[i] = p[i] * a.decay - step / scale;
    }
}

#undef REAL
#undef SMALLEST
#undef SQRT
#undef SGD
#undef ADAMW
#undef NAME
#undef TYPED
