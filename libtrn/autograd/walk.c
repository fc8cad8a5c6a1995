/* SPDX-License-Identifier: Apache-2.0
 *
 * The walk: collect the records, latest first, and run their gradient rules.
 *
 * Records are numbered as they are made, so decreasing numbers are a reverse
 * topological order.  Each rule runs in a scope of its own: what it makes on
 * its way is freed at once, and what a record saved as soon as its rule is
 * done.
 */
#include <string.h>

#include "libtrn/autograd/walk.h"

/* Doubles a list of `element` bytes each when it is full. */
static trn_status make_room(trn__walk *w, void **list, int64_t n, int64_t *room,
                            size_t element)
{
    if (n < *room)
        return TRN_OK;
    int64_t more = *room == 0 ? 64 : 2 * *room;
    void *bigger = trn__alloc(w->c, (size_t)more * element);
    if (bigger == NULL)
        return trn__fail_memory(w->c, w->what, (uint64_t)more * element);
    if (n > 0)
        memcpy(bigger, *list, (size_t)n * element);
    trn__free(w->c, *list);
    *list = bigger;
    *room = more;
    return TRN_OK;
}

static trn_status push(trn__walk *w, trn__record *r)
{
    if (r->walk == w->number)
        return TRN_OK;
    if (r->consumed)
        return trn__fail(w->c, TRN_ERR_STATE,
                         "%s: the record of %s was freed by an earlier walk; "
                         "expected retain_graph there",
                         w->what, trn__ops[r->op].name);
    void *list = w->records;
    TRN_TRY(make_room(w, &list, w->n_records, &w->room, sizeof(void *)));
    w->records = list;
    TRN_ASSERT(w->records != NULL);
    r->walk = w->number;
    trn__record_ref(r);
    w->records[w->n_records++] = r;
    return TRN_OK;
}

trn_status trn__walk_collect(trn__walk *w, trn_tensor *root)
{
    if (root->record == NULL)
        return TRN_OK;
    int64_t done = w->n_records;
    TRN_TRY(push(w, root->record));
    for (; done < w->n_records; done++) { /* breadth first; sorted later */
        trn__record *r = w->records[done];
        for (int i = 0; i < r->n_in; i++) {
            if (r->parent[i] != NULL)
                TRN_TRY(push(w, r->parent[i]));
        }
    }
    return TRN_OK;
}

/* Heap sort: no memory, no recursion.  Latest first = a heap of the earliest.
 */
static void sift(trn__record **a, int64_t i, int64_t n)
{
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= n)
            return;
        if (child + 1 < n && a[child + 1]->seq < a[child]->seq)
            child++;
        if (a[i]->seq <= a[child]->seq)
            return;
        trn__record *t = a[i];
        a[i] = a[child];
        a[child] = t;
        i = child;
    }
}

void trn__walk_sort(trn__walk *w)
{
    trn__record **a = w->records;
    for (int64_t i = w->n_records / 2; i-- > 0;)
        sift(a, i, w->n_records);
    for (int64_t n = w->n_records - 1; n > 0; n--) {
        trn__record *t = a[0];
        a[0] = a[n];
        a[n] = t;
        sift(a, 0, n);
    }
}

/* *sum += grad; takes a reference of its own. */
static trn_status accumulate(trn__walk *w, trn_tensor **sum, trn_tensor *grad)
{
    if (*sum == NULL) {
        *sum = trn__ref(grad);
        return TRN_OK;
    }
    trn_tensor *both = trn_add(*sum, grad);
    if (both == NULL)
        return w->c->status;
    trn__unref(*sum);
    *sum = trn__ref(both);
    return TRN_OK;
}

static trn_status add_to_leaf(trn__walk *w, trn_tensor *leaf, trn_tensor *grad)
{
    if (leaf->walk != w->number) {
        void *list = w->leaves;
        TRN_TRY(
            make_room(w, &list, w->n_leaves, &w->leaf_room, sizeof *w->leaves));
        w->leaves = list;
        leaf->walk = w->number;
        leaf->slot = w->n_leaves++;
        w->leaves[leaf->slot] = (trn__walk_leaf){trn__ref(leaf), NULL};
    }
    return accumulate(w, &w->leaves[leaf->slot].grad, grad);
}

trn_status trn__walk_add(trn__walk *w, trn_tensor *t, trn_tensor *grad)
{
    if (t->record != NULL)
        return accumulate(w, &t->record->grad, grad);
    return t->requires_grad ? add_to_leaf(w, t, grad) : TRN_OK;
}

static trn_status check_version(trn__walk *w, const trn__record *r,
                                const char *part, int i, uint64_t then,
                                const trn__storage *s)
{
    if (s->version == then)
        return TRN_OK;
    return trn__fail(w->c, TRN_ERR_MODIFIED,
                     "%s: %s needs its %s %d for the gradient, which was "
                     "changed in place after it was recorded (version %llu, "
                     "now %llu); expected trn_copy() of it before the change",
                     w->what, trn__ops[r->op].name, part, i,
                     (unsigned long long)then, (unsigned long long)s->version);
}

/* Input i as the rule sees it: the tensor, or a shape. */
static trn_status restore_input(trn__walk *w, trn__record *r, int i,
                                trn__call *k)
{
    if (r->saved[i] != NULL) {
        k->in[i] = trn__ref(r->saved[i]);
        return check_version(w, r, "input", i, r->saved_version[i],
                             r->saved[i]->storage);
    }
    k->in[i] = trn__tensor_ghost(w->c, &r->in_desc[i]);
    if (k->in[i] == NULL)
        return w->c->status;
    k->in[i]->requires_grad = r->parent[i] != NULL || r->leaf[i] != NULL;
    return TRN_OK;
}

/* The output, connected to its record so that it can be differentiated. */
static trn_status restore_output(trn__walk *w, trn__record *r, trn__call *k)
{
    if (r->out_storage == NULL)
        return TRN_OK;
    TRN_TRY(check_version(w, r, "output", 0, r->out_version, r->out_storage));
    trn__desc desc = {.dtype = r->out.dtype, .rank = r->out.rank};
    memcpy(desc.shape, r->out.shape, sizeof desc.shape);
    k->out = trn__tensor_ghost(w->c, &desc);
    if (k->out == NULL)
        return w->c->status;
    k->out->arg = r->out;
    k->out->storage = r->out_storage;
    trn__storage_ref(r->out_storage);
    if (w->create_graph) {
        k->out->record = r;
        trn__record_ref(r);
    }
    return TRN_OK;
}

static trn_status restore(trn__walk *w, trn__record *r, trn__call *k)
{
    *k = (trn__call){
        .c = w->c,
        .op = r->op,
        .n_in = r->n_in,
        .n_values = r->n_values,
        .attrs = r->attrs_size > 0 ? r->attrs : NULL,
        .attrs_size = r->attrs_size,
        .key = r->key,
        .draw = r->draw,
        .draw_no = r->draw_no,
        .foreign =
            w->c->capture != NULL && r->trace_step != w->c->capture->serial,
    };
    memcpy(k->values, r->values, sizeof k->values);
    memcpy(k->scalar, r->scalar, sizeof k->scalar);
    for (int i = 0; i < r->n_in; i++)
        TRN_TRY(restore_input(w, r, i, k));
    return restore_output(w, r, k);
}

static trn_status distribute(trn__walk *w, trn__record *r, trn_tensor **gin)
{
    for (int i = 0; i < r->n_in; i++) {
        if (gin[i] == NULL)
            continue;
        TRN_ASSERT(
            gin[i]->arg.rank ==
            (r->saved[i] != NULL ? r->saved[i]->arg.rank : r->in_desc[i].rank));
        if (r->parent[i] != NULL)
            TRN_TRY(accumulate(w, &r->parent[i]->grad, gin[i]));
        else if (r->leaf[i] != NULL)
            TRN_TRY(add_to_leaf(w, r->leaf[i], gin[i]));
    }
    return TRN_OK;
}

static trn_status run_rule(trn__walk *w, trn__record *r)
{
    trn__call k;
    trn__scope scope;
    trn_tensor *gin[TRN__MAX_IN] = {NULL, NULL, NULL, NULL};
    trn__scope_enter(w->c, &scope);
    trn_status status = restore(w, r, &k);
    if (status == TRN_OK) {
        trn__ops[r->op].grad(&k, r->grad, gin);
        status = w->c->status;
    }
    if (status == TRN_OK)
        status = distribute(w, r, gin);
    for (int i = 0; i < r->n_in; i++)
        trn__unref(k.in[i]);
    trn__unref(k.out);
    trn__scope_leave(w->c, &scope, NULL);
    return status;
}

trn_status trn__walk_run(trn__walk *w,
                         trn_status (*complete)(void *user, trn__record *r),
                         void *user)
{
    trn_status status = TRN_OK;
    bool mode = trn__grad_mode(w->c, w->create_graph);
    for (int64_t i = 0; i < w->n_records && status == TRN_OK; i++) {
        trn__record *r = w->records[i];
        if (r->grad != NULL) {
            if (complete != NULL)
                status = complete(user, r);
            if (status == TRN_OK)
                status = run_rule(w, r);
            trn_tensor *grad = r->grad;
            r->grad = NULL;
            trn__unref(grad);
        }
        if (!w->retain && status == TRN_OK)
            trn__record_consume(w->c, r);
    }
    trn__grad_mode(w->c, mode);
    return status;
}

void trn__walk_end(trn__walk *w)
{
    for (int64_t i = 0; i < w->n_records; i++) {
        trn__record *r = w->records[i];
        trn_tensor *grad = r->grad;
        r->grad = NULL;
        trn__unref(grad);
        trn__record_unref(w->c, r);
    }
    for (int64_t i = 0; i < w->n_leaves; i++) {
        trn__unref(w->leaves[i].grad);
        trn__unref(w->leaves[i].leaf);
    }
    trn__free(w->c, w->records);
    trn__free(w->c, w->leaves);
}

void trn__walk_consume(trn_context *c, trn_tensor *root)
{
    trn__walk w = {.c = c, .what = "capture", .number = ++c->tape->walks};
    if (trn__walk_collect(&w, root) == TRN_OK) {
        for (int64_t i = 0; i < w.n_records; i++)
            trn__record_consume(c, w.records[i]);
    }
    trn__walk_end(&w);
}
