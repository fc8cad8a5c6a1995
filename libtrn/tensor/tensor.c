/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of tensors and storages: free lists, scopes, references.
 *
 * A tensor is on the ring of its scope (the open step's, or the context's),
 * which holds one reference; the user, the tape, modules hold others.  In check
 * builds a freed tensor's struct rests in a queue before it is used again, so
 * that a handle which outlived its step is reported as stale.
 */
#include <string.h>

#include "libtrn/tensor/tensor.h"

#ifdef TRN_CHECK
#define QUARANTINE 4096
#else
#define QUARANTINE 0
#endif

static trn_status tensors_open(trn_context *c)
{
    c->tensors = trn__alloc_zeroed(c, sizeof *c->tensors);
    if (c->tensors == NULL)
        return trn__fail_memory(c, "trn_open", sizeof *c->tensors);
    c->tensors->scope = &c->tensors->base;
    return TRN_OK;
}

static void tensors_close(trn_context *c)
{
    trn__tensors *ts = c->tensors;
    if (ts == NULL)
        return;
    trn__ring_clear(&ts->step);
    trn__ring_clear(&ts->base);
    while (ts->free_tensors != NULL) {
        trn_tensor *t = ts->free_tensors;
        ts->free_tensors = t->next;
        trn__free(c, t);
    }
    while (ts->free_storages != NULL) {
        trn__storage *s = ts->free_storages;
        ts->free_storages = s->next_free;
        trn__free(c, s);
    }
    trn__free(c, ts);
    c->tensors = NULL;
}

const trn__layer trn__tensor_layer = {
    .open = tensors_open,
    .close = tensors_close,
};

static void ring_add(trn__ring *ring, trn_tensor *t)
{
    t->ring = ring;
    t->prev = ring->last;
    t->next = NULL;
    *(ring->last == NULL ? &ring->first : &ring->last->next) = t;
    ring->last = t;
    ring->n++;
}

static void ring_remove(trn_tensor *t)
{
    trn__ring *ring = t->ring;
    TRN_ASSERT(ring != NULL);
    *(t->prev == NULL ? &ring->first : &t->prev->next) = t->next;
    *(t->next == NULL ? &ring->last : &t->next->prev) = t->prev;
    t->ring = NULL;
    ring->n--;
}

void trn__ring_clear(trn__ring *ring)
{
    while (ring->last != NULL) {
        trn_tensor *t = ring->last;
        ring_remove(t);
        t->refs -= t->user_refs;
        t->user_refs = 0;
        trn__unref(t);
    }
}

void trn__step_ring_clear(trn_context *c)
{
    trn__ring *step = &c->tensors->step;
    while (step->last != NULL) {
        trn_tensor *t = step->last;
        ring_remove(t);
        if (t->user_refs > 0) { /* that reference is now the context's */
            t->user_refs--;
            ring_add(&c->tensors->base, t);
        }
        trn__unref(t);
    }
}

static trn_tensor *struct_new(trn_context *c)
{
    trn__tensors *ts = c->tensors;
    trn_tensor *t = ts->free_tensors;
    if (t == NULL || ts->n_free < QUARANTINE)
        return trn__alloc(c, sizeof *t);
    ts->free_tensors = t->next;
    if (ts->free_tensors == NULL)
        ts->last_free = NULL;
    ts->n_free--;
    return t;
}

static void struct_free(trn_context *c, trn_tensor *t)
{
    trn__tensors *ts = c->tensors;
    ts->n_free++;
#ifdef TRN_CHECK
    t->stale = true;
    t->next = NULL;
    if (ts->last_free != NULL)
        ts->last_free->next = t;
    else
        ts->free_tensors = t;
    ts->last_free = t;
#else
    t->next = ts->free_tensors;
    ts->free_tensors = t;
#endif
}

static trn__storage *storage_new(trn_context *c, const char *what,
                                 uint64_t bytes)
{
    trn__tensors *ts = c->tensors;
    trn__storage *s = ts->free_storages;
    if (s != NULL)
        ts->free_storages = s->next_free;
    else
        s = trn__alloc(c, sizeof *s);
    if (s == NULL) {
        trn__fail_memory(c, what, sizeof *s);
        return NULL;
    }
    *s = (trn__storage){
        .c = c,
        .bytes = bytes,
        .step = ts->in_step ? ts->step_serial : 0,
        .refs = 1,
    };
    return s;
}

void trn__storage_ref(trn__storage *s)
{
    s->refs++;
}

void trn__storage_unref(trn__storage *s)
{
    trn_context *c = s->c;
    if (--s->refs > 0)
        return;
    if (s->release != NULL)
        s->release(s->release_user, s->release_data);
    if (s->buffer != NULL && !s->borrowed)
        c->backend->free(c->device, s->buffer);
    s->next_free = c->tensors->free_storages;
    c->tensors->free_storages = s;
}

void trn__scope_add(trn_context *c, trn_tensor *t)
{
    ring_add(c->tensors->scope, t);
}

void trn__scope_enter(trn_context *c, trn__scope *s)
{
    s->ring = (trn__ring){NULL, NULL, 0};
    s->outer = c->tensors->scope;
    c->tensors->scope = &s->ring;
}

trn_tensor *trn__scope_leave(trn_context *c, trn__scope *s, trn_tensor *keep)
{
    c->tensors->scope = s->outer;
    if (keep != NULL && keep->ring == &s->ring) {
        ring_remove(keep);
        ring_add(s->outer, keep);
    }
    if (keep != NULL && s->outer == &c->tensors->step)
        keep->inner = false; /* the user has it now */
    while (s->ring.last != NULL) {
        trn_tensor *t = s->ring.last;
        ring_remove(t);
        trn__unref(t);
    }
    return keep;
}

static trn_tensor *tensor_init(trn_context *c, const trn__desc *desc)
{
    trn_tensor *t = struct_new(c);
    if (t == NULL)
        return NULL;
    memset((char *)t + sizeof t->arg, 0, sizeof *t - sizeof t->arg);
    t->arg.buffer = NULL;
    t->arg.dtype = desc->dtype;
    t->arg.rank = desc->rank;
    t->arg.offset = 0;
    memcpy(t->arg.shape, desc->shape, sizeof desc->shape);
    trn__row_major(&t->arg);
    t->c = c;
    t->refs = 1;
    return t;
}

trn_tensor *trn__tensor_ghost(trn_context *c, const trn__desc *desc)
{
    trn_tensor *t = tensor_init(c, desc);
    if (t == NULL)
        trn__fail_memory(c, "a tensor", sizeof *t);
    return t;
}

trn_buffer *trn__buffer_new(trn_context *c, const trn_arg *like, uint64_t bytes)
{
    const trn_backend *b = c->backend;
    if (b->alloc_like == NULL)
        return b->alloc(c->device, bytes);
    trn_arg plain = *like;
    plain.buffer = NULL;
    plain.offset = 0;
    trn__row_major(&plain);
    /* What comes back does not point to it. */
    /* cppcheck-suppress returnDanglingLifetime */
    return b->alloc_like(c->device, &plain, bytes);
}

trn_tensor *trn__tensor_new(trn_context *c, const char *what,
                            const trn__desc *desc)
{
    trn_arg like = {.dtype = desc->dtype, .rank = desc->rank};
    uint64_t bytes = (uint64_t)trn__numel(desc->rank, desc->shape) *
                     trn_dtype_size((trn_dtype)desc->dtype);
    trn__storage *s = storage_new(c, what, bytes);
    if (s == NULL)
        return NULL;
    memcpy(like.shape, desc->shape, sizeof like.shape);
    if (bytes > 0)
        s->buffer = trn__buffer_new(c, &like, bytes);
    trn_tensor *t = NULL;
    if (bytes == 0 || s->buffer != NULL)
        t = tensor_init(c, desc);
    if (t == NULL) {
        trn__storage_unref(s);
        trn__fail_memory(c, what, bytes);
        return NULL;
    }
    t->storage = s;
    t->arg.buffer = s->buffer;
    trn__scope_add(c, t);
    return t;
}

trn_tensor *trn__tensor_lazy(trn_context *c, const trn__desc *desc)
{
    uint64_t bytes = (uint64_t)trn__numel(desc->rank, desc->shape) *
                     trn_dtype_size((trn_dtype)desc->dtype);
    trn__storage *s = storage_new(c, "a tensor", bytes);
    if (s == NULL)
        return NULL;
    trn_tensor *t = tensor_init(c, desc);
    if (t == NULL) {
        trn__storage_unref(s);
        trn__fail_memory(c, "a tensor", sizeof *t);
        return NULL;
    }
    t->storage = s;
    return t;
}

trn_tensor *trn__detach_from_scope(trn_tensor *t)
{
    if (t != NULL && t->ring != NULL)
        ring_remove(t);
    return t;
}

/* Contexts that capture make a view again from what it is a view of. */
static bool remember_base(trn_tensor *a, trn_tensor *base)
{
    if (!a->c->tensors->keep_views)
        return true;
    a->view = trn__alloc_zeroed(a->c, sizeof *a->view);
    if (a->view == NULL)
        return false;
    a->view->base = trn__ref(base);
    return true;
}

trn_tensor *trn__tensor_alias(trn_tensor *t)
{
    trn__desc desc = {.dtype = t->arg.dtype, .rank = t->arg.rank};
    memcpy(desc.shape, t->arg.shape, sizeof desc.shape);
    trn_tensor *a = trn__tensor_ghost(t->c, &desc);
    if (a == NULL)
        return NULL;
    a->arg = t->arg;
    a->storage = t->storage;
    if (a->storage != NULL)
        a->storage->refs++;
    if (!remember_base(a, t)) {
        trn__unref(a);
        trn__fail_memory(t->c, "a view", sizeof *a->view);
        return NULL;
    }
    trn__scope_add(t->c, a);
    return a;
}

trn_tensor *trn__ref(trn_tensor *t)
{
    t->refs++;
    return t;
}

/* Frees t, whose last reference is gone; gives back what it was a view of,
 * with the reference that t held. */
static trn_tensor *tensor_free(trn_tensor *t)
{
    trn_context *c = t->c;
    trn_tensor *base = NULL;
    if (t->ring != NULL)
        ring_remove(t);
    if (t->map_owned)
        trn__free(c, t->map);
    if (t->view != NULL) {
        base = t->view->base;
        trn__free(c, t->view);
        t->view = NULL;
    }
    trn_tensor *grad = t->grad;
    struct trn__record *record = t->record;
    t->grad = NULL;
    t->record = NULL;
    if (t->storage != NULL)
        trn__storage_unref(t->storage);
    t->storage = NULL;
    struct_free(c, t);
    trn__unref(grad);
    if (record != NULL)
        c->tensors->release_record(c, record);
    return base;
}

void trn__unref(trn_tensor *t)
{
    while (t != NULL && --t->refs == 0)
        t = tensor_free(t); /* a chain of views ends in a loop */
}

trn_tensor *trn__own_tensor(trn_tensor *t)
{
    if (t != NULL && t->ring != NULL)
        ring_remove(t);
    return t;
}

void trn__adopt_tensor(trn_tensor *t)
{
    t->c->tensors->hold(t, 1);
    if (t->ring == NULL) {
        trn__ref(t);
    } else if (t->user_refs == 0) {
        ring_remove(t);
    } else { /* a reference of the user's takes the scope's place */
        t->user_refs--;
        ring_remove(t);
        ring_add(&t->c->tensors->base, t);
    }
}

trn_status trn__check_tensor(trn_context *c, const char *what, trn_tensor *t)
{
    if (t->stale || (t->storage == NULL && t->view != NULL))
        return trn__fail(c, TRN_ERR_STALE,
                         "%s: a tensor is used after its step ended; expected "
                         "trn_keep() before trn_step_end()",
                         what);
    if (t->c != c)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: a tensor belongs to another context; expected "
                         "all of one context",
                         what);
    return TRN_OK;
}

trn_tensor *trn_keep(trn_tensor *t)
{
    if (t == NULL)
        return NULL;
    trn_context *c = t->c;
    if (trn__pending(c) != TRN_OK || trn__check_tensor(c, "trn_keep", t))
        return NULL;
    if (t->ring == &c->tensors->step) {
        ring_remove(t);
        ring_add(&c->tensors->base, t);
    } else if (t->owner != NULL && t->ring == NULL) { /* a captured step's */
        ring_add(&c->tensors->base, trn__ref(t));
        t->kept = true;
    } else if (t->owner != NULL && !t->kept) { /* the ring has a retain's */
        t->user_refs++;
        trn__ref(t);
        t->kept = true;
    }
    c->tensors->hold(t, 1);
    return t;
}

trn_tensor *trn_tensor_retain(trn_tensor *t)
{
    if (t == NULL || trn__check_tensor(t->c, "trn_tensor_retain", t) != TRN_OK)
        return NULL;
    if (t->ring == NULL) /* a module's or optimizer's: the context watches */
        ring_add(&t->c->tensors->base, t);
    else
        t->user_refs++;
    t->c->tensors->hold(t, 1);
    return trn__ref(t);
}

void trn_tensor_release(trn_tensor *t)
{
    if (t == NULL || trn__check_tensor(t->c, "trn_tensor_release", t) != TRN_OK)
        return;
    if (t->user_refs > 0)
        t->user_refs--;
    else if (t->ring != NULL)
        ring_remove(t);
    else
        return; /* a module's or optimizer's: not the caller's to give back */
    trn__unref(t);
}
