/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of a checkpoint: what is on it, and the user's texts.
 */
#include <string.h>

#include "libtrn/data/data.h"
#include "libtrn/io/checkpoint.h"
#include "libtrn/io/container.h"
#include "libtrn/nn/module.h"
#include "libtrn/optim/optim.h"
#include "trn/step.h"

void trn__notes_free(trn_context *c, trn__note *list)
{
    while (list != NULL) {
        trn__note *n = list;
        list = n->next;
        trn__free(c, n);
    }
}

trn_status trn__note_add(trn_context *c, trn__note **list, const char *key,
                         const char *text)
{
    size_t n_key = strlen(key) + 1, n_text = strlen(text) + 1;
    trn__note *n = trn__alloc(c, sizeof *n + n_key + n_text);
    if (n == NULL)
        return trn__fail_memory(c, "a checkpoint", n_key + n_text);
    n->next = NULL;
    n->text = n->key + n_key;
    memcpy(n->key, key, n_key);
    memcpy(n->key + n_key, text, n_text);
    while (*list != NULL)
        list = &(*list)->next;
    *list = n;
    return TRN_OK;
}

static void checkpoint_destroy(trn__owned *self)
{
    trn_checkpoint *k = (trn_checkpoint *)self;
    while (k->first != NULL) {
        trn__object *o = k->first;
        k->first = o->next;
        if (o->kind == TRN__OBJECT_TENSOR)
            trn__unref(o->it);
        trn__free(k->c, o);
    }
    trn__notes_free(k->c, k->notes);
    trn__free(k->c, k);
}

trn_checkpoint *trn_checkpoint_new(trn_context *c)
{
    if (trn__pending(c) != TRN_OK)
        return NULL;
    trn_checkpoint *k = trn__alloc_zeroed(c, sizeof *k);
    if (k == NULL) {
        trn__fail_memory(c, "trn_checkpoint_new", sizeof *k);
        return NULL;
    }
    k->c = c;
    k->calls = &trn__system_calls;
    trn__own(c, &k->owned, checkpoint_destroy);
    return k;
}

/* ---- the list ---- */

static trn_status check_name(trn_checkpoint *k, const char *what,
                             trn__object_kind kind, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return trn__fail(k->c, TRN_ERR_ARG,
                         "%s: the name is %s; expected some text", what,
                         name == NULL ? "NULL" : "\"\"");
    for (const trn__object *o = k->first; o != NULL; o = o->next) {
        if (o->kind == kind && strcmp(o->name, name) == 0)
            return trn__fail(k->c, TRN_ERR_ARG,
                             "%s: the name \"%.400s\" is taken; expected a new "
                             "one",
                             what, name);
    }
    return TRN_OK;
}

/* owner: the context of `it`, which may be NULL. */
static trn_status add(trn_checkpoint *k, const char *what,
                      trn__object_kind kind, const char *name, void *it,
                      const trn_context *owner)
{
    if (k == NULL)
        return TRN_ERR_ARG;
    trn_context *c = k->c;
    TRN_TRY(trn__pending(c));
    TRN_TRY(check_name(k, what, kind, name));
    if (it == NULL || owner != c)
        return trn__fail(c, TRN_ERR_ARG,
                         "%s: \"%.400s\" is %s; expected one "
                         "of the checkpoint's context",
                         what, name, it == NULL ? "NULL" : "another context's");
    size_t n = strlen(name) + 1;
    trn__object *o = trn__alloc(c, sizeof *o + n);
    if (o == NULL)
        return trn__fail_memory(c, what, sizeof *o + n);
    o->next = NULL;
    o->kind = kind;
    o->it = it;
    memcpy(o->name, name, n);
    *(k->last == NULL ? &k->first : &k->last->next) = o;
    k->last = o;
    return TRN_OK;
}

trn_status trn_checkpoint_module(trn_checkpoint *k, const char *name,
                                 trn_module *m)
{
    return add(k, "trn_checkpoint_module", TRN__OBJECT_MODULE, name, m,
               trn_nn_context(m));
}

trn_status trn_checkpoint_optim(trn_checkpoint *k, const char *name,
                                trn_optim *o)
{
    return add(k, "trn_checkpoint_optim", TRN__OBJECT_OPTIM, name, o,
               o == NULL ? NULL : o->c);
}

trn_status trn_checkpoint_generator(trn_checkpoint *k, const char *name,
                                    trn_generator *g)
{
    return add(k, "trn_checkpoint_generator", TRN__OBJECT_GENERATOR, name, g,
               g == NULL ? NULL : g->c);
}

trn_status trn_checkpoint_loader(trn_checkpoint *k, const char *name,
                                 trn_loader *l)
{
    return add(k, "trn_checkpoint_loader", TRN__OBJECT_LOADER, name, l,
               l == NULL ? NULL : l->c);
}

trn_status trn_checkpoint_tensor(trn_checkpoint *k, const char *name,
                                 trn_tensor *t)
{
    const char *what = "trn_checkpoint_tensor";
    if (k == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(k->c));
    if (t != NULL)
        TRN_TRY(trn__check_tensor(k->c, what, t));
    if (t != NULL && !trn__is_contiguous(&t->arg))
        return trn__fail(k->c, TRN_ERR_ARG,
                         "%s: %s is strided; expected a contiguous tensor",
                         what, trn__describe(&t->arg).s);
    TRN_TRY(add(k, what, TRN__OBJECT_TENSOR, name, t, k->c));
    trn__adopt_tensor(t); /* it outlives a step that made it */
    return TRN_OK;
}

/* ---- texts ---- */

trn_status trn_checkpoint_set_text(trn_checkpoint *k, const char *key,
                                   const char *text)
{
    const char *what = "trn_checkpoint_set_text";
    if (k == NULL)
        return TRN_ERR_ARG;
    TRN_TRY(trn__pending(k->c));
    if (key == NULL || key[0] == '\0')
        return trn__fail(k->c, TRN_ERR_ARG,
                         "%s: the key is %s; expected some text", what,
                         key == NULL ? "NULL" : "\"\"");
    if (text != NULL && !trn__is_utf8(text))
        return trn__fail(k->c, TRN_ERR_ARG,
                         "%s: the text of \"%.400s\" is not UTF-8", what, key);
    trn__note **at = &k->notes;
    while (*at != NULL && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    trn__note *old = *at;
    if (text != NULL)
        TRN_TRY(trn__note_add(k->c, &k->notes, key, text));
    if (old != NULL) {
        *at = old->next;
        trn__free(k->c, old);
    }
    return TRN_OK;
}

const char *trn_checkpoint_text(const trn_checkpoint *k, const char *key)
{
    if (k == NULL || key == NULL)
        return NULL;
    for (const trn__note *n = k->notes; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0)
            return n->text;
    }
    return NULL;
}

/* ---- saving and loading ---- */

static trn_status check(trn_context *c, const char *what, const char *path)
{
    TRN_TRY(trn__pending(c));
    if (path == NULL || path[0] == '\0')
        return trn__fail(c, TRN_ERR_ARG, "%s: the path is %s", what,
                         path == NULL ? "NULL" : "\"\"");
    if (c->tensors->in_step)
        return trn__fail(c, TRN_ERR_STATE,
                         "%s: a step is open; expected trn_step_end() first",
                         what);
    return trn_sync(c);
}

trn_status trn_checkpoint_save(trn_checkpoint *k, const char *path)
{
    if (k == NULL)
        return TRN_ERR_ARG;
    trn__items l = {.c = k->c};
    TRN_TRY(check(k->c, "trn_checkpoint_save", path));
    if (trn__checkpoint_items(k, TRN__PART_ALL, &l) == TRN_OK)
        trn__container_write(&l, k->calls, path);
    trn__items_free(&l);
    return k->c->status;
}

/* Takes the texts of a file. */
static trn_status take_notes(trn_checkpoint *k, trn__note **list,
                             const trn__items *texts)
{
    for (int64_t i = 0; i < texts->n; i++) {
        char *key = trn__item_name(k->c, texts->at[i].path);
        if (key != NULL)
            trn__note_add(k->c, list, key, texts->at[i].text);
        trn__free(k->c, key);
    }
    return k->c->status;
}

static trn_status load(trn_checkpoint *k, const char *path, bool part)
{
    trn_context *c = k->c;
    trn__items l = {.c = c}, texts = {.c = c};
    trn__note *notes = NULL;
    TRN_TRY(check(c, "trn_checkpoint_load", path));
    if (trn__checkpoint_items(k, part ? TRN__PART_LISTED : TRN__PART_LOADED,
                              &l) == TRN_OK &&
        trn__container_read(&l, &texts, part, k->calls, path) == TRN_OK &&
        take_notes(k, &notes, &texts) == TRN_OK &&
        trn__checkpoint_check(&l, path) == TRN_OK &&
        trn__checkpoint_commit(&l, path) == TRN_OK) {
        trn__note *old = k->notes;
        k->notes = notes;
        notes = old;
    }
    trn__notes_free(c, notes);
    trn__items_free(&l);
    trn__items_free(&texts);
    return c->status;
}

trn_status trn_checkpoint_load(trn_checkpoint *k, const char *path)
{
    return k == NULL ? TRN_ERR_ARG : load(k, path, false);
}

trn_status trn_checkpoint_load_part(trn_checkpoint *k, const char *path)
{
    return k == NULL ? TRN_ERR_ARG : load(k, path, true);
}

trn_status trn_checkpoint_print(trn_context *c, const char *path,
                                trn_put_fn put, void *user)
{
    TRN_TRY(check(c, "trn_checkpoint_print", path));
    if (put == NULL)
        return trn__fail(c, TRN_ERR_ARG,
                         "trn_checkpoint_print: put is NULL; expected a "
                         "function");
    return trn__container_print(c, &trn__system_calls, path, put, user);
}
