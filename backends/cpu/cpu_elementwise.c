/* SPDX-License-Identifier: Apache-2.0
 *
 * UNARY, BINARY and COMPARE rows, where, add_scalar, mul_scalar.
 *
 * A job is its operands and an `apply` that calls a kernel on n contiguous
 * elements of the compute type.  Operands that are all contiguous in that type
 * are given to it directly, in big ranges; others go through chunks of
 * TRN__CPU_CHUNK elements, loaded and stored by cpu_read.h.
 */
#include "backends/cpu/cpu_elementwise.h"
#include "backends/cpu/cpu_read.h"

#include <stdatomic.h>
#include <string.h>

#define MAX_IN 3

typedef struct job job;

/* Elements first .. of the output; first is needed for reports alone. */
typedef void apply_fn(job *j, int64_t first, int64_t n, const void *const *in,
                      void *y);

struct job {
    trn_device *dev;
    apply_fn *apply;
    const trn__cpu_loops *loops;
    trn__integer_unary_fn *integer_unary;
    trn__integer_binary_fn *integer_binary;
    trn__integer_div_fn *integer_div;
    uint32_t n_in;
    uint32_t scalar_dtype; /* the compute type, for scalar */
    uint32_t out_dtype;
    char *y;
    double scalar;       /* the bytes of a scalar operand in the compute type */
    _Atomic int64_t bad; /* lowest position of a zero divisor */
    trn__cpu_reader in[MAX_IN];
};

static void run_chunks(void *arg, int64_t begin, int64_t end)
{
    job *j = arg;
    trn__cpu_chunk buf[MAX_IN], out;
    const void *in[MAX_IN] = {NULL, NULL, NULL};
    const size_t size = trn__cpu_size(j->out_dtype);
    const bool direct = trn__cpu_compute(j->out_dtype) == j->out_dtype;
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        char *y = j->y + (size_t)at * size;
        for (uint32_t i = 0; i < j->n_in; i++)
            in[i] = trn__cpu_load(j->dev, &j->in[i], at, n, &buf[i]);
        j->apply(j, at, n, in, direct ? (void *)y : &out);
        if (!direct)
            trn__cpu_store(j->dev, j->out_dtype, n, &out, y);
    }
}

static void run_direct(void *arg, int64_t begin, int64_t end)
{
    job *j = arg;
    const void *in[MAX_IN] = {NULL, NULL, NULL};
    for (uint32_t i = 0; i < j->n_in; i++)
        in[i] = j->in[i].base + begin * j->in[i].size;
    j->apply(j, begin, end - begin, in,
             j->y + (size_t)begin * trn__cpu_size(j->out_dtype));
}

static bool is_direct(const trn_arg *a)
{
    return trn__cpu_compute(a->dtype) == a->dtype && trn__cpu_linear(a);
}

/* Runs the job over the output's elements. */
static void run_job(job *j, const trn_op_call *call, int64_t grain)
{
    const trn_arg *y = call->out[0];
    const int64_t n = trn__cpu_numel(y);
    bool direct = is_direct(y);
    if (n == 0)
        return;
    j->n_in = call->n_in;
    j->out_dtype = y->dtype;
    j->y = trn__cpu_data(y);
    for (uint32_t i = 0; i < j->n_in; i++)
        direct = direct && is_direct(call->in[i]);
    for (uint32_t i = 0; i < j->n_in; i++) {
        if (!direct) {
            trn__cpu_reader_init(&j->in[i], call->in[i]);
            continue;
        }
        j->in[i].base = trn__cpu_data(call->in[i]);
        j->in[i].size = (uint32_t)trn__cpu_size(call->in[i]->dtype);
    }
    trn__cpu_for(j->dev, n, grain, direct ? run_direct : run_chunks, j);
}

bool trn__cpu_is_dear(uint32_t op)
{
    return op == TRN_OP_exp || op == TRN_OP_log || op == TRN_OP_tanh ||
           op == TRN_OP_pow || op == TRN_OP_sigmoid || op == TRN_OP_silu ||
           op == TRN_OP_gelu_tanh || op == TRN_OP_sin || op == TRN_OP_cos ||
           op == TRN_OP_erf || op == TRN_OP_atan2 || op == TRN_OP_gelu;
}

static int64_t grain_of(uint32_t op)
{
    return trn__cpu_is_dear(op) ? TRN__CPU_DEAR : TRN__CPU_CHEAP;
}

const trn__integer_kernels *trn__cpu_integers(uint32_t dtype)
{
    return trn__integer_kernels_of(dtype == TRN_BOOL ? TRN_U8
                                                     : (trn_dtype)dtype);
}

static int32_t no_integer(trn_device *dev)
{
    return dev->host->fail(dev->host->host, TRN_ERR_DTYPE,
                           "the CPU device has no integer kernel for this op");
}

#define APPLY(name, call)                                                     \
    static void name(job *j, int64_t first, int64_t n, const void *const *in, \
                     void *y)                                                 \
    {                                                                         \
        (void)first;                                                          \
        call;                                                                 \
    }

APPLY(unary_f32, j->loops->unary_f32(n, in[0], y))
APPLY(unary_f64, j->loops->unary_f64(n, in[0], y))
APPLY(unary_int, j->integer_unary(n, in[0], y))
APPLY(binary_f32, j->loops->binary_f32(n, in[0], in[1], y))
APPLY(binary_f64, j->loops->binary_f64(n, in[0], in[1], y))
APPLY(binary_int, j->integer_binary(n, in[0], in[1], y))
APPLY(compare_f32, j->loops->compare_f32(n, in[0], in[1], y))
APPLY(compare_f64, j->loops->compare_f64(n, in[0], in[1], y))

static void div_int(job *j, int64_t first, int64_t n, const void *const *in,
                    void *y)
{
    const int64_t zero = j->integer_div(n, in[0], in[1], y);
    if (zero < 0)
        return;
    const int64_t bad = first + zero;
    int64_t seen = atomic_load(&j->bad);
    while (bad < seen && !atomic_compare_exchange_weak(&j->bad, &seen, bad))
        ;
}

trn__integer_unary_fn *trn__cpu_integer_unary(uint32_t op, uint32_t dtype)
{
    const trn__integer_kernels *ints = trn__cpu_integers(dtype);
    if (ints == NULL)
        return NULL;
    switch (op) {
    case TRN_OP_neg:
        return ints->neg;
    case TRN_OP_relu:
        return ints->relu;
    case TRN_OP_abs:
        return ints->abs;
    case TRN_OP_sign:
        return ints->sign;
    default:
        return NULL;
    }
}

int32_t trn__cpu_unary(trn_device *dev, const trn_op_call *call)
{
    job j;
    const uint32_t dtype = trn__cpu_compute(call->in[0]->dtype);
    j.dev = dev;
    j.loops = &dev->loops[call->op];
    if (dtype == TRN_F32) {
        j.apply = unary_f32;
    } else if (dtype == TRN_F64) {
        j.apply = unary_f64;
    } else {
        j.apply = unary_int;
        j.integer_unary = trn__cpu_integer_unary(call->op, dtype);
        if (j.integer_unary == NULL)
            return no_integer(dev);
    }
    run_job(&j, call, grain_of(call->op));
    return TRN_OK;
}

trn__integer_binary_fn *trn__cpu_integer_binary(uint32_t op, uint32_t dtype)
{
    const trn__integer_kernels *ints = trn__cpu_integers(dtype);
    if (ints == NULL)
        return NULL;
    switch (op) {
    case TRN_OP_add:
        return dtype == TRN_BOOL ? NULL : ints->add;
    case TRN_OP_sub:
        return dtype == TRN_BOOL ? NULL : ints->sub;
    case TRN_OP_mul:
        return ints->mul;
    case TRN_OP_maximum:
        return ints->maximum;
    case TRN_OP_greater:
        return ints->greater;
    case TRN_OP_equal:
        return ints->equal;
    case TRN_OP_minimum:
        return ints->minimum;
    case TRN_OP_less:
        return ints->less;
    case TRN_OP_less_equal:
        return ints->less_equal;
    case TRN_OP_greater_equal:
        return ints->greater_equal;
    case TRN_OP_not_equal:
        return ints->not_equal;
    default:
        return NULL;
    }
}

static int32_t divide_integers(job *j, const trn_op_call *call)
{
    const trn__integer_kernels *ints =
        trn__integer_kernels_of((trn_dtype)call->in[0]->dtype);
    if (ints == NULL)
        return no_integer(j->dev);
    j->integer_div = ints->div;
    j->apply = div_int;
    run_job(j, call, TRN__CPU_DEAR);
    const int64_t bad = atomic_load(&j->bad);
    if (bad == INT64_MAX)
        return TRN_OK;
    if (call->report != NULL)
        *call->report = (trn_op_report){
            .kind = TRN_REPORT_ZERO_DIVISOR,
            .input = 1,
            .position = bad,
        };
    return TRN_ERR_VALUE;
}

int32_t trn__cpu_binary(trn_device *dev, const trn_op_call *call)
{
    job j;
    const uint32_t dtype = trn__cpu_compute(call->in[0]->dtype);
    j.dev = dev;
    j.loops = &dev->loops[call->op];
    atomic_init(&j.bad, INT64_MAX);
    if (dtype == TRN_F32) {
        j.apply = binary_f32;
    } else if (dtype == TRN_F64) {
        j.apply = binary_f64;
    } else if (call->op == TRN_OP_div) {
        return divide_integers(&j, call);
    } else {
        j.apply = binary_int;
        j.integer_binary = trn__cpu_integer_binary(call->op, dtype);
        if (j.integer_binary == NULL)
            return no_integer(dev);
    }
    run_job(&j, call, grain_of(call->op));
    return TRN_OK;
}

int32_t trn__cpu_compare(trn_device *dev, const trn_op_call *call)
{
    job j;
    const uint32_t dtype = trn__cpu_compute(call->in[0]->dtype);
    j.dev = dev;
    j.loops = &dev->loops[call->op];
    if (dtype == TRN_F32) {
        j.apply = compare_f32;
    } else if (dtype == TRN_F64) {
        j.apply = compare_f64;
    } else {
        j.apply = binary_int;
        j.integer_binary = trn__cpu_integer_binary(call->op, dtype);
        if (j.integer_binary == NULL)
            return no_integer(dev);
    }
    run_job(&j, call, TRN__CPU_CHEAP);
    return TRN_OK;
}

#define SELECT(name, type)                                                    \
    static void name(job *j, int64_t first, int64_t n, const void *const *in, \
                     void *y)                                                 \
    {                                                                         \
        const uint8_t *c = in[0];                                             \
        const type *a = in[1], *b = in[2];                                    \
        type *out = y;                                                        \
        (void)j, (void)first;                                                 \
        for (int64_t i = 0; i < n; i++)                                       \
            out[i] = c[i] ? a[i] : b[i];                                      \
    }

/* Bits are chosen, whatever they mean. */
SELECT(select_8, uint8_t)
SELECT(select_16, uint16_t)
SELECT(select_32, uint32_t)
SELECT(select_64, uint64_t)

/* The operands as integers of their size, so that no chunk is converted. */
static trn_arg raw(const trn_arg *a)
{
    static const uint8_t of_size[] = {0, TRN_U8, 0, 0,      TRN_U32,
                                      0, 0,      0, TRN_I64};
    trn_arg r = *a;
    if (trn__cpu_size(a->dtype) != 2)
        r.dtype = of_size[trn__cpu_size(a->dtype)];
    return r;
}

static void select_halves(void *arg, int64_t begin, int64_t end)
{
    job *j = arg;
    trn__cpu_chunk buf[MAX_IN];
    const void *in[MAX_IN];
    for (int64_t at = begin; at < end; at += TRN__CPU_CHUNK) {
        const int64_t n = trn__i64_min(end - at, TRN__CPU_CHUNK);
        for (int i = 0; i < MAX_IN; i++)
            in[i] = trn__cpu_fetch(&j->in[i], at, n, &buf[i]);
        select_16(j, at, n, in, j->y + at * 2);
    }
}

int32_t trn__cpu_where(trn_device *dev, const trn_op_call *call)
{
    job j;
    const size_t size = trn__cpu_size(call->out[0]->dtype);
    j.dev = dev;
    if (size == 2) {
        j.y = trn__cpu_data(call->out[0]);
        for (int i = 0; i < MAX_IN; i++)
            trn__cpu_reader_init(&j.in[i], call->in[i]);
        const int64_t n = trn__cpu_numel(call->out[0]);
        if (n > 0)
            trn__cpu_for(dev, n, TRN__CPU_CHEAP, select_halves, &j);
        return TRN_OK;
    }
    const trn_arg a = raw(call->in[1]), b = raw(call->in[2]);
    const trn_arg y = raw(call->out[0]);
    const trn_arg *in[] = {call->in[0], &a, &b}, *out[] = {&y};
    const trn_op_call bits = {.n_in = MAX_IN, .in = in, .out = out};
    j.apply = size == 1 ? select_8 : size == 4 ? select_32 : select_64;
    run_job(&j, &bits, TRN__CPU_CHEAP);
    return TRN_OK;
}

/* Calls the binary kernel with the scalar repeated as its second operand. */
static void apply_scalar(job *j, int64_t first, int64_t n,
                         const void *const *in, void *y, apply_fn *binary)
{
    trn__cpu_chunk filled;
    const size_t size = trn__cpu_size(j->scalar_dtype);
    const trn__cpu_reader one = {
        .base = (char *)(void *)&j->scalar,
        .size = (uint32_t)size,
    };
    trn__cpu_collect(&one, 0, trn__i64_min(n, TRN__CPU_CHUNK), &filled);
    for (int64_t at = 0; at < n; at += TRN__CPU_CHUNK) {
        const void *pair[] = {(const char *)in[0] + (size_t)at * size, &filled};
        binary(j, first + at, trn__i64_min(n - at, TRN__CPU_CHUNK), pair,
               (char *)y + (size_t)at * size);
    }
}

APPLY(scalar_f32, apply_scalar(j, first, n, in, y, binary_f32))
APPLY(scalar_f64, apply_scalar(j, first, n, in, y, binary_f64))
APPLY(scalar_int, apply_scalar(j, first, n, in, y, binary_int))

void trn__cpu_scalar(uint32_t dtype, double value, void *out)
{
    int64_t whole;
    if (dtype <= TRN_F16) {
        trn__convert(TRN_F64, (trn_dtype)dtype, 1, &value, out);
        return;
    }
    trn__convert(TRN_F64, TRN_I64, 1, &value, &whole);
    trn__convert(TRN_I64, (trn_dtype)dtype, 1, &whole, out);
}

static int32_t run_scalar(trn_device *dev, const trn_op_call *call, uint32_t op)
{
    job j;
    const uint32_t dtype = trn__cpu_compute(call->in[0]->dtype);
    j.dev = dev;
    j.loops = &dev->loops[op];
    j.scalar_dtype = dtype;
    trn__cpu_scalar(dtype, call->values[0], &j.scalar);
    if (dtype == TRN_F32) {
        j.apply = scalar_f32;
    } else if (dtype == TRN_F64) {
        j.apply = scalar_f64;
    } else {
        j.apply = scalar_int;
        j.integer_binary = trn__cpu_integer_binary(op, dtype);
        if (j.integer_binary == NULL)
            return no_integer(dev);
    }
    run_job(&j, call, TRN__CPU_CHEAP);
    return TRN_OK;
}

int32_t trn__cpu_add_scalar(trn_device *dev, const trn_op_call *call)
{
    return run_scalar(dev, call, TRN_OP_add);
}

int32_t trn__cpu_mul_scalar(trn_device *dev, const trn_op_call *call)
{
    return run_scalar(dev, call, TRN_OP_mul);
}
