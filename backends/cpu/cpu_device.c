/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of the CPU device: opening with a choice of kernel set and of
 * what multiplies matrices, and memory, whose handles are host addresses.
 */
#include "backends/cpu/cpu_blas.h"
#include "backends/cpu/cpu_program.h"
#include "trn/context.h" /* levels of the log */

#ifdef TRN_FREE_ORDER
#include "kernels/free_order/free_order.h"
#endif

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#define TRN__CPU_X86 1
#include <cpuid.h>
#else
#define TRN__CPU_X86 0
#endif

static bool has_avx2(void)
{
#if TRN__CPU_X86
    /* Not every compiler's __builtin_cpu_supports knows f16c. */
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
#else
    return false;
#endif
}

/* The option "cpu_isa"; the argument of "cpu:<isa>" comes before it. */
static int32_t choose_set(const trn_host_services *host, const char *argument,
                          trn__kernel_set *set)
{
    const char *isa = argument;
    if (isa == NULL || isa[0] == '\0')
        isa = host->option(host->host, "cpu_isa");
    if (isa == NULL || isa[0] == '\0')
        isa = "auto";
    trn__set_generic(set);
    if (strcmp(isa, "generic") == 0)
        return TRN_OK;
#if TRN__CPU_X86
    if ((strcmp(isa, "avx2") == 0 || strcmp(isa, "auto") == 0) && has_avx2()) {
        trn__overlay_avx2(set);
#ifdef TRN_FREE_ORDER
        trn__overlay_free_order(set, trn__free_order);
#endif
        return TRN_OK;
    }
#endif
    if (strcmp(isa, "auto") == 0)
        return TRN_OK;
    char text[160];
    snprintf(text, sizeof text,
             "trn_open: cpu_isa (TRN_CPU_ISA) is \"%.40s\"; this CPU has auto, "
             "generic%s",
             isa, has_avx2() ? ", avx2" : "");
    return host->fail(host->host, TRN_ERR_UNSUPPORTED, text);
}

/* The option "matmul". */
static int32_t choose_products(const trn_host_services *host, trn_device *dev)
{
    char text[200];
    const int32_t status = trn__blas_open(host, &dev->blas);
    snprintf(dev->description, sizeof dev->description, "%s", dev->set.name);
    if (status != TRN_OK || dev->blas == NULL)
        return status;
    snprintf(dev->description, sizeof dev->description,
             "%s, matmul by %s: not reproducible", dev->set.name,
             dev->blas->name);
    snprintf(text, sizeof text,
             "trn_open: matmul by %s: the bits of f32 and f64 products depend "
             "on processor and threads",
             dev->blas->name);
    host->log(host->host, TRN_LOG_WARNING, text);
    return TRN_OK;
}

static int32_t cpu_open(const trn_host_services *host, const char *argument,
                        trn_device **device)
{
    trn_device *dev = host->alloc(host->host, sizeof *dev);
    *device = NULL;
    if (dev == NULL)
        return host->fail(host->host, TRN_ERR_NOMEM,
                          "out of memory opening the CPU device");
    memset(dev, 0, sizeof *dev);
    dev->host = host;
    int32_t status = choose_set(host, argument, &dev->set);
    if (status == TRN_OK)
        status = choose_products(host, dev);
    if (status != TRN_OK) {
        host->dealloc(host->host, dev);
        return status;
    }
    trn__cpu_fill_loops(dev);
    *device = dev;
    return TRN_OK;
}

static void cpu_close(trn_device *dev)
{
    if (dev != NULL)
        dev->host->dealloc(dev->host->host, dev);
}

static trn_buffer *cpu_alloc(trn_device *dev, uint64_t bytes)
{
    if (bytes > SIZE_MAX)
        return NULL;
    return trn__cpu_alloc(dev, (size_t)bytes);
}

static void cpu_free(trn_device *dev, trn_buffer *buffer)
{
    if (buffer != NULL)
        trn__cpu_free(dev, buffer);
}

static int32_t cpu_write(trn_device *dev, trn_buffer *buffer, uint64_t offset,
                         const void *data, uint64_t bytes)
{
    (void)dev;
    if (bytes > 0)
        memcpy((char *)(void *)buffer + offset, data, (size_t)bytes);
    return TRN_OK;
}

static int32_t cpu_read(trn_device *dev, const trn_buffer *buffer,
                        uint64_t offset, void *data, uint64_t bytes)
{
    (void)dev;
    if (bytes > 0)
        memcpy(data, (const char *)(const void *)buffer + offset,
               (size_t)bytes);
    return TRN_OK;
}

static const char *cpu_describe(trn_device *dev)
{
    return dev->description;
}

static bool cpu_reproducible(trn_device *dev)
{
    return dev->blas == NULL;
}

int32_t trn__cpu_no_memory(trn_device *dev)
{
    return dev->host->fail(dev->host->host, TRN_ERR_NOMEM,
                           "out of memory for the workspace of an op");
}

#define ALL_DTYPES                                      \
    (TRN_DTYPE_BIT(TRN_F64) | TRN_DTYPE_BIT(TRN_F32) |  \
     TRN_DTYPE_BIT(TRN_BF16) | TRN_DTYPE_BIT(TRN_F16) | \
     TRN_DTYPE_BIT(TRN_I64) | TRN_DTYPE_BIT(TRN_I32) |  \
     TRN_DTYPE_BIT(TRN_U32) | TRN_DTYPE_BIT(TRN_U8) | TRN_DTYPE_BIT(TRN_BOOL))

const trn_backend trn__cpu_backend = {
    .size = sizeof(trn_backend),
    .version = TRN_BACKEND_VERSION,
    .name = "cpu",
    .caps = TRN_CAP_EAGER | TRN_CAP_GRAPH | TRN_CAP_HOST_MEMORY,
    .stores = ALL_DTYPES,
    .computes = ALL_DTYPES,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .write = cpu_write,
    .read = cpu_read,
    .run_op = trn__cpu_run_op,
    .compile = trn__cpu_compile,
    .execute = trn__cpu_execute,
    .wait = trn__cpu_wait,
    .poll = trn__cpu_poll,
    .release = trn__cpu_release,
    .supports = trn__cpu_supports,
    .describe = cpu_describe,
    .program_bytes = trn__cpu_program_bytes,
    .op_limit = TRN_OP_KNOWN,
    .reproducible = cpu_reproducible,
};
