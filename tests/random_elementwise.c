/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions of random programs that compute element by element.
 *
 * Mostly where a function is smooth and of moderate size, since f32 and f64 are
 * compared too; now and then, `raw`, wherever the operands lie.
 */
#include "random_parts.h"

typedef enum domain { ANYWHERE, BELOW_1, TURNS, FROM_1_ON } domain;

typedef struct function {
    trn_tensor *(*of)(trn_tensor *x);
    domain domain;
} function;

static const function functions[] = {
    {trn_neg, ANYWHERE},  {trn_exp, BELOW_1},     {trn_log, FROM_1_ON},
    {trn_tanh, ANYWHERE}, {trn_sqrt, FROM_1_ON},  {trn_relu, ANYWHERE},
    {trn_abs, ANYWHERE},  {trn_rsqrt, FROM_1_ON}, {trn_sigmoid, ANYWHERE},
    {trn_silu, ANYWHERE}, {trn_gelu, ANYWHERE},   {trn_gelu_tanh, ANYWHERE},
    {trn_sin, TURNS},     {trn_cos, TURNS},       {trn_erf, ANYWHERE},
};

enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

trn_tensor *random_one_plus_square(trn_tensor *x)
{
    return trn_add_scalar(trn_mul(x, x), 1.0);
}

static bool is_raw(const random_instr *in)
{
    return in->j < 20;
}

static trn_tensor *moved_into(domain d, trn_tensor *x)
{
    switch (d) {
    case BELOW_1:
        return trn_tanh(x);
    case TURNS: /* more than one way round, in both directions */
        return trn_mul_scalar(trn_tanh(x), 8.0);
    case FROM_1_ON:
        return random_one_plus_square(x);
    case ANYWHERE:
        break;
    }
    return x;
}

trn_tensor *random_do_nop(random_world *w, const random_instr *in)
{
    (void)w;
    (void)in;
    return NULL;
}

trn_tensor *random_do_unary(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_float, NULL);
    const function *f = &functions[in->i % N_FUNCTIONS];
    return f->of(is_raw(in) ? x : moved_into(f->domain, x));
}

/* Where a value lies at a jump, two devices may be on either side of it; so
 * these are not so frequent. */
trn_tensor *random_do_steps(random_world *w, const random_instr *in)
{
    static trn_tensor *(*const steps[])(trn_tensor * x) = {
        trn_sign, trn_floor, trn_ceil, trn_round, trn_trunc};
    return steps[in->i % 5](random_find(w, in->a, random_is_float, NULL));
}

/* The functions of two numbers that have poles or cuts. */
static trn_tensor *curved(int which, bool raw, trn_tensor *x, trn_tensor *y)
{
    trn_tensor *base;
    switch (which) {
    case 0:
        return trn_div(x, raw ? y : random_one_plus_square(y));
    case 1:
        base = raw ? x : random_one_plus_square(x);
        return trn_pow(base, raw ? y : trn_tanh(y));
    default:
        return trn_atan2(x, raw ? y : random_one_plus_square(y));
    }
}

trn_tensor *random_do_binary(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_small_float, NULL);
    trn_tensor *y = random_find(w, in->b, random_broadcasts, x);
    int which = in->i % 11;
    switch (which) {
    case 0:
    case 1:
        return trn_add(x, y);
    case 2:
    case 3:
        return trn_sub(x, y);
    case 4:
    case 5:
        return trn_mul(x, y);
    case 6:
        return trn_maximum(x, y);
    case 7:
        return trn_minimum(x, y);
    default:
        return curved(which - 8, is_raw(in), x, y);
    }
}

static trn_tensor *compared(int which, trn_tensor *x, trn_tensor *y)
{
    static trn_tensor *(*const comparisons[])(trn_tensor *, trn_tensor *) = {
        trn_greater,    trn_equal,         trn_less,
        trn_less_equal, trn_greater_equal, trn_not_equal};
    return comparisons[which % 6](x, y);
}

trn_tensor *random_do_compare(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_small_float, NULL);
    trn_tensor *y = random_find(w, in->b, random_broadcasts, x);
    return compared(in->i, x, y);
}

trn_tensor *random_do_where(random_world *w, const random_instr *in)
{
    trn_tensor *x = random_find(w, in->a, random_is_small_float, NULL);
    trn_tensor *y = random_find(w, in->b, random_broadcasts, x);
    return trn_where(compared(in->j, x, y), in->i & 1 ? x : y,
                     in->i & 2 ? x : y);
}

trn_tensor *random_do_add_scalar(random_world *w, const random_instr *in)
{
    return trn_add_scalar(random_find(w, in->a, random_is_float, NULL),
                          random_value(w, in));
}

trn_tensor *random_do_mul_scalar(random_world *w, const random_instr *in)
{
    return trn_mul_scalar(random_find(w, in->a, random_is_float, NULL),
                          random_value(w, in));
}
