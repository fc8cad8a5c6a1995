/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaders: making one, its position, the next batch; loaders over tensors.
 *
 * Samples stay in host memory as they are; a batch is gathered there and
 * written to tensors that the loader owns and uses again, as long as nobody
 * else holds them.  All that decides which batch comes next is the position:
 * the order of a pass is made again from its number when the position has moved
 * elsewhere.
 */
#include <string.h>

#include "libtrn/context/struct_size.h"
#include "libtrn/data/data.h"

/* ---- making ---- */

trn_status trn__loader_check(trn_context *c, const char *what,
                             int64_t batch_size,
                             const trn_loader_options *options,
                             trn_loader_options *out)
{
    *out = (trn_loader_options)TRN_LOADER_INIT;
    TRN_TRY(trn__pending(c));
    TRN_TRY(trn__options_take(c, what, TRN__SIZED_trn_loader_options, out,
                              options));
    if (batch_size < 1)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: batch_size is %lld; expected 1 or more", what,
                         (long long)batch_size);
    return TRN_OK;
}

trn_status trn__loader_select(trn_context *c, const char *what, int64_t n,
                              trn_loader_options *o)
{
    if (o->first < 0 || o->first > n)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: options.first is %lld; expected 0 to %lld, the "
                         "number of samples",
                         what, (long long)o->first, (long long)n);
    if (o->count < -1 || o->count > n - o->first)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: options.count is %lld; expected 0 to %lld from "
                         "sample %lld of %lld, or -1 for all",
                         what, (long long)o->count, (long long)(n - o->first),
                         (long long)o->first, (long long)n);
    if (o->count == -1)
        o->count = n - o->first;
    return TRN_OK;
}

static void drop_ring(trn__batch_ring *ring)
{
    for (int i = 0; i < TRN__RING_SIZE; i++) {
        trn__unref(ring->inputs[i]);
        trn__unref(ring->targets[i]);
    }
}

static void free_parts(trn_loader *l)
{
    trn_context *c = l->c;
    drop_ring(&l->full);
    drop_ring(&l->last);
    trn__free(c, l->inputs.memory);
    trn__free(c, l->targets.memory);
    trn__free(c, l->order);
    trn__free(c, l->stage);
    trn__free(c, l);
}

static void loader_destroy(trn__owned *self)
{
    trn_loader *l = (trn_loader *)self;
    trn__counter_remove(&l->position);
    free_parts(l);
}

/* A tensor for `size` samples that belongs to no scope and no step. */
static trn_tensor *batch_tensor(trn_context *c, const char *what,
                                const trn__column *column, int64_t size)
{
    int64_t shape[TRN_MAX_RANK] = {size};
    memcpy(shape + 1, column->shape, sizeof column->shape);
    trn__desc desc;
    uint64_t bytes;
    if (trn__desc_make(c, what, column->dtype, (int)column->rank + 1, shape,
                       &desc, &bytes) != TRN_OK)
        return NULL;
    trn_tensor *t = trn__own_tensor(trn__tensor_new(c, what, &desc));
    if (t != NULL)
        t->storage->step = 0; /* an open step must not take it for its own */
    return t;
}

static trn_status fill_ring(trn_loader *l, const char *what,
                            trn__batch_ring *ring, int64_t size)
{
    for (int i = 0; i < TRN__RING_SIZE; i++) {
        ring->inputs[i] = batch_tensor(l->c, what, &l->inputs, size);
        if (ring->inputs[i] == NULL)
            return l->c->status;
        ring->targets[i] = batch_tensor(l->c, what, &l->targets, size);
        if (ring->targets[i] == NULL)
            return l->c->status;
    }
    return TRN_OK;
}

/* All memory that the loader will need is taken here, so that batches take
 * none.  The rings come first: they check that the sizes do not overflow. */
static trn_status make_parts(trn_loader *l, const char *what, bool drop_last,
                             bool shuffle)
{
    trn_context *c = l->c;
    int64_t n_full = l->n_samples / l->batch_size;
    int64_t rest = drop_last ? 0 : l->n_samples % l->batch_size;
    l->n_batches = n_full + (rest > 0);
    l->order_epoch = -1;
    if (n_full > 0)
        TRN_TRY(fill_ring(l, what, &l->full, l->batch_size));
    if (rest > 0)
        TRN_TRY(fill_ring(l, what, &l->last, rest));
    size_t sample =
        l->inputs.bytes > l->targets.bytes ? l->inputs.bytes : l->targets.bytes;
    size_t stage = (size_t)(n_full > 0 ? l->batch_size : rest) * sample;
    l->stage = trn__alloc(c, stage);
    if (l->stage == NULL)
        return trn__fail_memory(c, what, stage);
    if (!shuffle)
        return TRN_OK;
    int64_t order;
    if (trn__mul_size(l->n_samples, sizeof *l->order, &order))
        l->order = trn__alloc(c, (size_t)order);
    if (l->order == NULL)
        return trn__fail_memory(c, what,
                                (uint64_t)l->n_samples * sizeof *l->order);
    return TRN_OK;
}

trn_loader *trn__loader_new(trn_context *c, const char *what,
                            int64_t batch_size, const trn_loader_options *o,
                            const trn__column *inputs,
                            const trn__column *targets)
{
    trn_loader *l = trn__alloc_zeroed(c, sizeof *l);
    if (l == NULL) {
        trn__free(c, inputs->memory);
        trn__free(c, targets->memory);
        trn__fail_memory(c, what, sizeof *l);
        return NULL;
    }
    l->c = c;
    l->inputs = *inputs;
    l->targets = *targets;
    l->n_samples = o->count;
    l->batch_size = batch_size;
    trn_status status = make_parts(l, what, o->drop_last, o->shuffle);
    if (status == TRN_OK && o->shuffle) {
        l->generator = trn_generator_new(c, o->stream);
        status = c->status;
    }
    if (status != TRN_OK) {
        free_parts(l);
        return NULL;
    }
    l->position.held = true;
    trn__counter_add(c, &l->position);
    trn__own(c, &l->owned, loader_destroy);
    return l;
}

/* ---- the next batch ---- */

static void make_order(trn_loader *l, int64_t epoch)
{
    if (l->generator == NULL || l->order_epoch == epoch)
        return;
    trn__permutation(l->generator, (uint64_t)epoch, l->n_samples, l->order);
    l->order_epoch = epoch;
}

/* May t be overwritten?  Not if a view, the tape or the user has a share in it,
 * and it must come back as new: what a user did to it ends with its batch. */
static bool is_free(const trn_tensor *t)
{
    return t->refs == 1 && t->storage->refs == 1 && !t->requires_grad &&
           t->grad == NULL && t->record == NULL && t->map == NULL;
}

static trn_status write_side(trn_loader *l, trn_tensor **t,
                             const trn__column *column, int64_t begin,
                             int64_t size)
{
    trn_context *c = l->c;
    if (!is_free(*t)) {
        trn_tensor *fresh = batch_tensor(c, "trn_data_next", column, size);
        if (fresh == NULL)
            return c->status;
        trn__unref(*t);
        *t = fresh;
    }
    for (int64_t i = 0; i < size; i++) {
        int64_t at = l->order == NULL ? begin + i : l->order[begin + i];
        memcpy(l->stage + (size_t)i * column->bytes,
               column->first + (size_t)at * column->pitch, column->bytes);
    }
    trn__storage *s = (*t)->storage;
    s->version++;
    return trn__storage_write(s, 0, l->stage, (uint64_t)size * column->bytes);
}

static trn_status make_batch(trn_loader *l, int64_t epoch, int64_t index,
                             trn_batch *out)
{
    int64_t begin = index * l->batch_size;
    int64_t left = l->n_samples - begin;
    bool full = left >= l->batch_size;
    int64_t size = full ? l->batch_size : left;
    trn__batch_ring *ring = full ? &l->full : &l->last;
    trn_tensor **inputs = &ring->inputs[ring->turn];
    trn_tensor **targets = &ring->targets[ring->turn];
    make_order(l, epoch);
    TRN_TRY(write_side(l, inputs, &l->inputs, begin, size));
    TRN_TRY(write_side(l, targets, &l->targets, begin, size));
    ring->turn = (ring->turn + 1) % TRN__RING_SIZE;
    *out = (trn_batch){
        .inputs = *inputs,
        .targets = *targets,
        .size = size,
        .epoch = epoch,
        .index = index,
    };
    return TRN_OK;
}

/*
 * Who asks for the next batch outside a step is done with the one before: it
 * counts from now on.  In a step the step decides, over all batches asked for
 * in it.  The end needs no step to count: nothing was handed out.
 */
static void move_on(trn_loader *l, bool end)
{
    trn__counter *p = &l->position;
    bool in_step = l->c->tensors->in_step;
    if (!in_step)
        p->committed = p->value;
    p->value++;
    if (!in_step && end)
        p->committed = p->value;
}

int trn_data_next(trn_loader *l, trn_batch *out)
{
    if (out != NULL)
        memset(out, 0, sizeof *out);
    if (l == NULL || trn__pending(l->c) != TRN_OK ||
        trn__may_go_on(l->c) != TRN_OK)
        return 0;
    if (out == NULL) {
        trn__fail(l->c, TRN_ERR_ARG,
                  "trn_data_next: out is NULL; expected a trn_batch");
        return 0;
    }
    uint64_t pass = (uint64_t)l->n_batches + 1;
    int64_t epoch = (int64_t)(l->position.value / pass);
    int64_t index = (int64_t)(l->position.value % pass);
    bool end = index == l->n_batches;
    if (!end && make_batch(l, epoch, index, out) != TRN_OK)
        return 0;
    move_on(l, end);
    return !end;
}

trn_status trn_data_seek(trn_loader *l, int64_t epoch, int64_t batch)
{
    if (l == NULL)
        return TRN_ERR_ARG;
    trn_context *c = l->c;
    TRN_TRY(trn__pending(c));
    int64_t position;
    if (!trn__mul_size(epoch, l->n_batches + 1, &position) || batch < 0 ||
        batch > l->n_batches || position > INT64_MAX - l->n_batches)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_data_seek: epoch is %lld, batch is %lld; "
                         "expected an epoch of 0 or more and a batch from 0 "
                         "to %lld",
                         (long long)epoch, (long long)batch,
                         (long long)l->n_batches);
    l->position.value = l->position.committed = (uint64_t)(position + batch);
    return TRN_OK;
}

int64_t trn_data_samples(const trn_loader *l)
{
    return l == NULL ? 0 : l->n_samples;
}

int64_t trn_data_batches(const trn_loader *l)
{
    return l == NULL ? 0 : l->n_batches;
}

/* ---- over tensors ---- */

/* Copies the rows [first, first + count) of t. */
static trn_status copy_column(trn_tensor *t, const trn_loader_options *o,
                              trn__column *out)
{
    const trn_arg *arg = &t->arg;
    size_t element = trn_dtype_size((trn_dtype)arg->dtype);
    size_t bytes = (size_t)trn__numel(arg->rank, arg->shape) * element;
    *out = (trn__column){.dtype = arg->dtype, .rank = arg->rank - 1};
    memcpy(out->shape, arg->shape + 1, out->rank * sizeof *arg->shape);
    out->bytes = (size_t)trn__numel(out->rank, out->shape) * element;
    out->pitch = out->bytes;
    char *all = trn__alloc(t->c, bytes);
    if (all == NULL)
        return trn__fail_memory(t->c, "trn_data_tensors", bytes);
    out->memory = all;
    out->first = all;
    TRN_TRY(trn_tensor_read(t, all, bytes));
    if (o->count == arg->shape[0])
        return TRN_OK;
    size_t used = (size_t)o->count * out->bytes;
    char *part = trn__alloc(t->c, used);
    if (part == NULL)
        return trn__fail_memory(t->c, "trn_data_tensors", used);
    memcpy(part, all + (size_t)o->first * out->bytes, used);
    trn__free(t->c, all);
    out->memory = part;
    out->first = part;
    return TRN_OK;
}

static trn_status check_pair(trn_context *c, trn_tensor *inputs,
                             trn_tensor *targets)
{
    if (inputs == NULL || targets == NULL)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_data_tensors: %s is NULL; expected two tensors",
                         inputs == NULL ? "inputs" : "targets");
    TRN_TRY(trn__check_tensor(c, "trn_data_tensors", inputs));
    TRN_TRY(trn__check_tensor(c, "trn_data_tensors", targets));
    if (inputs->arg.rank < 1 || targets->arg.rank < 1 ||
        inputs->arg.shape[0] != targets->arg.shape[0])
        return trn__fail(c, TRN_ERR_SHAPE,
                         "trn_data_tensors: inputs are %s, targets are %s; "
                         "expected the same number of samples along the "
                         "first axis",
                         trn__describe(&inputs->arg).s,
                         trn__describe(&targets->arg).s);
    return TRN_OK;
}

trn_loader *trn_data_tensors(trn_context *c, trn_tensor *inputs,
                             trn_tensor *targets, int64_t batch_size,
                             const trn_loader_options *options)
{
    static const char what[] = "trn_data_tensors";
    trn_loader_options o = TRN_LOADER_INIT;
    trn__column in = {0}, out = {0};
    if (trn__loader_check(c, what, batch_size, options, &o) != TRN_OK ||
        check_pair(c, inputs, targets) != TRN_OK ||
        trn__loader_select(c, what, inputs->arg.shape[0], &o) != TRN_OK)
        return NULL;
    if (copy_column(inputs, &o, &in) != TRN_OK ||
        copy_column(targets, &o, &out) != TRN_OK) {
        trn__free(c, in.memory);
        trn__free(c, out.memory);
        return NULL;
    }
    return trn__loader_new(c, what, batch_size, &o, &in, &out);
}
