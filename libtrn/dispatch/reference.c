/* SPDX-License-Identifier: Apache-2.0
 *
 * reference_op: a call on host memory by the CPU device's kernels, for devices
 * that have none of their own.
 *
 * It may come from a thread of the device while the program uses the context,
 * so the CPU device here is a second one, with services that touch nothing of
 * the context but its shared memory and what never changes after trn_open.
 * Work is cut by sizes alone, so one thread gives the bits of many.
 */
#include <string.h>

#include "libtrn/context/struct_size.h"
#include "libtrn/dispatch/host.h"

extern const trn_backend trn__cpu_backend; /* backends/cpu */

static void *shared_alloc(void *host, size_t bytes)
{
    return trn__alloc_shared(host, bytes);
}

static void shared_dealloc(void *host, void *memory)
{
    trn__free_shared(host, memory);
}

static void serial_for(void *host, int64_t n, int64_t grain, trn_range_fn fn,
                       void *arg)
{
    (void)host;
    (void)grain;
    if (n > 0)
        fn(arg, 0, n);
}

static int32_t one_thread(void *host)
{
    (void)host;
    return 1;
}

static void no_log(void *host, uint32_t level, const char *text)
{
    (void)host;
    (void)level;
    (void)text;
}

static const char *option(void *host, const char *name)
{
    trn_context *c = host;
    return strcmp(name, "cpu_isa") == 0 ? c->cpu_isa : NULL;
}

static int32_t only_status(void *host, int32_t status, const char *message)
{
    (void)host;
    (void)message;
    return status;
}

trn_status trn__reference_open(trn_context *c)
{
    trn__reference *r = &c->reference;
    if (pthread_mutex_init(&r->lock, NULL) != 0)
        return trn__fail_memory(c, "trn_open", sizeof r->lock);
    r->ready = true;
    r->services = (trn_host_services){
        .size = (uint32_t)sizeof r->services,
        .version = TRN_BACKEND_VERSION,
        .host = c,
        .alloc = shared_alloc,
        .dealloc = shared_dealloc,
        .parallel_for = serial_for,
        .n_threads = one_thread,
        .log = no_log,
        .option = option,
        .fail = only_status,
    };
    return TRN_OK;
}

void trn__reference_close(trn_context *c)
{
    trn__reference *r = &c->reference;
    if (!r->ready)
        return;
    trn__cpu_backend.close(r->device);
    pthread_mutex_destroy(&r->lock);
    *r = (trn__reference){.ready = false};
}

static bool is_view(uint32_t op)
{
    switch (op) {
#define VIEW_UNARY(nm)
#define VIEW_BINARY(nm)
#define VIEW_COMPARE(nm)
#define VIEW_VIEW(nm) case TRN_OP_##nm:
#define VIEW_REDUCE(nm)
#define VIEW_RANDOM(nm)
#define VIEW_UPDATE(nm)
#define VIEW_SPECIAL(nm)
#define TRN_OP(id, nm, cls, n_in, writes, attrs, kind, grad, domain, formula) \
    VIEW_##cls(nm)
#include "trn/ops.def"
        return true;
    default:
        return false;
    }
}

static void view_expand(const trn_arg *y, trn_arg *x)
{
    trn_arg v = *y;
    v.buffer = x->buffer;
    v.offset = x->offset;
    for (uint32_t d = 0; d < y->rank; d++) {
        uint32_t extra = y->rank - x->rank;
        v.stride[d] = d < extra || x->shape[d - extra] != y->shape[d]
                          ? 0
                          : x->stride[d - extra];
    }
    *x = v;
}

/* Lays x's elements out as those of the view.  A reshape keeps their order, so
 * nothing is to be done. */
static int32_t view_layout(const trn_op_call *call, trn_arg *x)
{
    const trn_arg *y = call->out[0];
    const trn_arg from = *x;
    const trn_perm_attrs *perm = call->attrs;
    const trn_slice_attrs *slice = call->attrs;
    switch (call->op) {
    case TRN_OP_reshape:
        return TRN_OK;
    case TRN_OP_permute:
        for (uint32_t d = 0; d < x->rank; d++) {
            x->shape[d] = from.shape[perm->perm.axis[d]];
            x->stride[d] = from.stride[perm->perm.axis[d]];
        }
        return TRN_OK;
    case TRN_OP_expand:
        view_expand(y, x);
        return TRN_OK;
    case TRN_OP_slice:
        x->offset += slice->start * from.stride[slice->axis];
        x->shape[slice->axis] = y->shape[slice->axis];
        if (y->shape[slice->axis] > 1)
            x->stride[slice->axis] *= slice->step;
        return TRN_OK;
    default:
        return TRN_ERR_UNSUPPORTED;
    }
}

static int32_t run_view(trn_device *dev, const trn_op_call *call)
{
    trn_arg x = *call->in[0];
    const trn_arg *in[1] = {&x};
    trn_op_call copy = *call;
    int32_t status = view_layout(call, &x);
    if (status != TRN_OK)
        return status;
    copy.op = TRN_OP_copy;
    copy.in = in;
    copy.attrs = NULL;
    copy.attrs_size = 0;
    return trn__cpu_backend.run_op(dev, &copy);
}

/* Under the lock. */
static int32_t open_device(trn__reference *r)
{
    return r->device != NULL
               ? TRN_OK
               : trn__cpu_backend.open(&r->services, "", &r->device);
}

const char *trn__reference_isa(trn_context *c)
{
    trn__reference *r = &c->reference;
    if (!r->ready)
        return NULL;
    pthread_mutex_lock(&r->lock);
    const bool open = open_device(r) == TRN_OK;
    pthread_mutex_unlock(&r->lock);
    return open ? trn__cpu_backend.describe(r->device) : NULL;
}

static int32_t run(trn__reference *r, const trn_op_call *call)
{
    const trn_backend *cpu = &trn__cpu_backend;
    int32_t status = open_device(r);
    if (status != TRN_OK)
        return status;
    if (is_view(call->op))
        return run_view(r->device, call);
    if (!cpu->supports(r->device, call))
        return TRN_ERR_UNSUPPORTED;
    return cpu->run_op(r->device, call);
}

bool trn__reference_supports(void *host, const trn_op_call *call)
{
    (void)host; /* the answer depends on the call alone, as any `supports` */
    return is_view(call->op) || trn__cpu_backend.supports(NULL, call);
}

int32_t trn__reference_op(void *host, const trn_op_call *call)
{
    trn_context *c = host;
    trn__fp_env saved;
    trn_op_call known = {.size = (uint32_t)sizeof known};
    if (!c->reference.ready || call == NULL ||
        !trn__struct_take(TRN__SIZED_trn_op_call, &known, call))
        return TRN_ERR_ARG;
    pthread_mutex_lock(&c->reference.lock);
    trn__fp_enter(&saved);
    int32_t status = run(&c->reference, &known);
    trn__fp_leave(&saved);
    pthread_mutex_unlock(&c->reference.lock);
    return status;
}
