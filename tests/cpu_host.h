/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of the CPU device alone: a tiny host (malloc, a serial and a
 * shuffled parallel_for), operands of any layout with seeded contents, and
 * element access by literal index arithmetic.
 */
#ifndef TRN_TESTS_CPU_HOST_H
#define TRN_TESTS_CPU_HOST_H

#include "kernel_sets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/cpu/cpu.h"
#include "kernels/convert.h"

enum { MAX_DEVICES = 4, MAX_ARGS = 4096 };

typedef struct fake_host {
    bool shuffle;
    const char *isa;
    int64_t live;   /* allocations that are not freed */
    bool no_memory; /* alloc gives NULL */
    char message[200];
} fake_host;

static fake_host hosts[MAX_DEVICES];
static trn_host_services services[MAX_DEVICES];
static trn_device *devices[MAX_DEVICES];
static int n_devices;
static void *storage[MAX_ARGS];
static int n_storage;

static inline void *host_alloc(void *host, size_t bytes)
{
    fake_host *h = host;
    if (h->no_memory)
        return NULL;
    h->live++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static inline void host_dealloc(void *host, void *memory)
{
    fake_host *h = host;
    h->live -= memory != NULL;
    free(memory);
}

/* Serial, or ranges of one grain from the last to the first, odd ones first. */
static inline void host_for(void *host, int64_t n, int64_t grain,
                            trn_range_fn fn, void *arg)
{
    const fake_host *h = host;
    const int64_t chunks = (n + grain - 1) / grain;
    if (!h->shuffle) {
        fn(arg, 0, n);
        return;
    }
    for (int odd = 1; odd >= 0; odd--)
        for (int64_t c = chunks - 1; c >= 0; c--)
            if (c % 2 == odd)
                fn(arg, c * grain,
                   c * grain + grain < n ? c * grain + grain : n);
}

static inline int32_t host_threads(void *host)
{
    return ((fake_host *)host)->shuffle ? 3 : 1;
}

static inline const char *host_option(void *host, const char *name)
{
    return strcmp(name, "cpu_isa") == 0 ? ((fake_host *)host)->isa : NULL;
}

static inline int32_t host_fail(void *host, int32_t status, const char *message)
{
    fake_host *h = host;
    snprintf(h->message, sizeof h->message, "%s", message);
    return status;
}

static inline int32_t open_device(int i, const char *isa, bool shuffle)
{
    hosts[i] = (fake_host){.isa = isa, .shuffle = shuffle};
    services[i] = (trn_host_services){
        .size = sizeof services[i],
        .version = TRN_BACKEND_VERSION,
        .host = &hosts[i],
        .alloc = host_alloc,
        .dealloc = host_dealloc,
        .parallel_for = host_for,
        .n_threads = host_threads,
        .option = host_option,
        .fail = host_fail,
    };
    return trn__cpu_backend.open(&services[i], "", &devices[i]);
}

/* generic and, where it runs, avx2; each serial and shuffled. */
static inline int open_all(void **state)
{
    (void)state;
    trn__kernel_set sets[MAX_SETS];
    static const char *const isa[] = {"generic", "avx2"};
    n_devices = 0;
    for (int s = 0; s < kernel_sets(sets); s++)
        for (int shuffle = 0; shuffle < 2; shuffle++)
            if (open_device(n_devices++, isa[s], shuffle) != TRN_OK)
                return -1;
    return 0;
}

/* Teardown of each test. */
static inline int free_operands(void **state)
{
    (void)state;
    while (n_storage > 0)
        free(storage[--n_storage]);
    return 0;
}

#define CPU_TEST(f) cmocka_unit_test_teardown(f, free_operands)

static inline int close_all(void **state)
{
    (void)state;
    int leaked = 0;
    for (int i = 0; i < n_devices; i++) {
        trn__cpu_backend.close(devices[i]);
        leaked |= hosts[i].live != 0;
    }
    return leaked ? -1 : 0;
}

typedef enum layout { PLAIN, SWAPPED, GAPS, REPEATED, N_LAYOUTS } layout;

static inline int64_t numel(const trn_arg *a)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < a->rank; d++)
        n *= a->shape[d];
    return n;
}

/* Storage offset of logical element i. */
static inline int64_t place(const trn_arg *a, int64_t i)
{
    int64_t at = a->offset;
    for (uint32_t d = a->rank; d-- > 0;) {
        at += i % a->shape[d] * a->stride[d];
        i /= a->shape[d];
    }
    return at;
}

static inline double get(const trn_arg *a, int64_t i)
{
    const void *p = a->buffer;
    const int64_t at = place(a, i);
    switch (a->dtype) {
    case TRN_F64:
        return ((const double *)p)[at];
    case TRN_F32:
        return (double)((const float *)p)[at];
    case TRN_BF16:
        return (double)trn__bf16_to_f32(((const uint16_t *)p)[at]);
    case TRN_F16:
        return (double)trn__f16_to_f32(((const uint16_t *)p)[at]);
    case TRN_I64:
        return (double)((const int64_t *)p)[at];
    case TRN_I32:
        return ((const int32_t *)p)[at];
    case TRN_U32:
        return ((const uint32_t *)p)[at];
    default:
        return ((const uint8_t *)p)[at];
    }
}

/* v must be a value of the type, but for the rounding of floats. */
static inline void set(const trn_arg *a, int64_t i, double v)
{
    void *p = a->buffer;
    const int64_t at = place(a, i);
    switch (a->dtype) {
    case TRN_F64:
        ((double *)p)[at] = v;
        break;
    case TRN_F32:
        ((float *)p)[at] = (float)v;
        break;
    case TRN_BF16:
        ((uint16_t *)p)[at] = trn__f32_to_bf16(trn__f64_to_f32_odd(v));
        break;
    case TRN_F16:
        ((uint16_t *)p)[at] = trn__f32_to_f16(trn__f64_to_f32_odd(v));
        break;
    case TRN_I64:
        ((int64_t *)p)[at] = (int64_t)v;
        break;
    case TRN_I32:
        ((int32_t *)p)[at] = (int32_t)v;
        break;
    case TRN_U32:
        ((uint32_t *)p)[at] = (uint32_t)v;
        break;
    default:
        ((uint8_t *)p)[at] = (uint8_t)v;
    }
}

/* An operand of zeros.  REPEATED: its first dimension has stride 0. */
static inline trn_arg zeros(uint32_t dtype, int rank, const int64_t *shape,
                            layout how)
{
    trn_arg a = {.dtype = dtype, .rank = (uint32_t)rank};
    int64_t next = how == GAPS ? 2 : 1;
    a.offset = how == GAPS ? 3 : 0;
    for (int k = 0; k < rank; k++) {
        const int d = how == SWAPPED ? k : rank - 1 - k;
        a.shape[d] = shape[d];
        a.stride[d] = how == REPEATED && d == 0 ? 0 : next;
        next *= shape[d] + (how == GAPS);
    }
    assert_true(n_storage < MAX_ARGS);
    a.buffer = calloc((size_t)next + 8, 8);
    storage[n_storage++] = a.buffer;
    return a;
}

static inline trn_arg ones_of(uint32_t dtype, int rank, const int64_t *shape,
                              layout how, uint64_t seed)
{
    trn_arg a = zeros(dtype, rank, shape, how);
    for (int64_t i = 0; i < numel(&a); i++) {
        const double u = (double)(next_bits(&seed) >> 11) * 0x1p-53;
        if (dtype <= TRN_F16)
            set(&a, i, (u - 0.5) * 6.0);
        else if (dtype == TRN_BOOL)
            set(&a, i, u < 0.5);
        else
            set(&a, i, floor(u * (dtype == TRN_U8 ? 200.0 : 2000.0)));
    }
    return a;
}

/* `want` rounded to y's type, by value, sign of zero and place of NaN. */
static inline void check_element(const trn_arg *y, int64_t i, double want,
                                 const char *what)
{
    double room = 0;
    const trn_arg one = {.buffer = (void *)&room, .dtype = y->dtype};
    set(&one, 0, want);
    const double w = get(&one, 0), got = get(y, i);
    const bool same =
        w == got ? signbit(w) == signbit(got) : w != w && got != got;
    if (!same)
        fail_msg("%s: element %d is %a, not %a", what, (int)i, got, w);
}

static inline int32_t run_on(int device, trn_op op, int n_in, const trn_arg *in,
                             const trn_arg *out, const void *attrs,
                             const double *values, trn_op_report *report)
{
    const trn_arg *ins[4] = {&in[0], &in[1], &in[2], &in[3]};
    const trn_arg *outs[1] = {out};
    const trn_op_call call = {
        .size = sizeof call,
        .op = op,
        .n_in = (uint32_t)n_in,
        .n_out = out != NULL,
        .in = ins,
        .out = outs,
        .attrs = attrs,
        .values = values,
        .key = UINT64_C(0x0123456789abcdef),
        .draw = 5,
        .report = report,
    };
    return trn__cpu_backend.run_op(devices[device], &call);
}

#endif
